"""State files that tell of an earlier life, as from a backup, while a server of ours lives: it is found and stopped."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import BusyError
from console.server.life import Server
from console.server.process import send
from console.server.state import read_server
from console.server.status import State
from console.server.stop import wait_gone
from tests.contract.life_house import DEADLINE_S, House, open_house

FILES = ("server.json", "exit.json", "keeper.json", "canary.json", "baseline.prom")


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def backup(house: House, folder: Path) -> Path:
    """The state files of a life that is over."""
    house.up()
    house.server.stop()
    folder.mkdir()
    for name in FILES:
        if (house.paths.state / name).exists():
            shutil.copy2(house.paths.state / name, folder / name)
    return folder


def restore(house: House, saved: Path, names: tuple[str, ...]) -> None:
    """As a backup program does it: new files under the old names."""
    for name in names:
        (house.paths.state / name).unlink(missing_ok=True)
        if (saved / name).exists():
            shutil.copy2(saved / name, house.paths.state / name)


@pytest.mark.parametrize("names", [("server.json",), FILES, (*FILES, "server.lock")], ids=["record", "all", "and lock"])
@pytest.mark.parametrize("keeper_lost", [False, True])
def test_a_server_behind_an_older_record_is_found_and_stopped_whole(
    house: House, tmp_path: Path, names: tuple[str, ...], keeper_lost: bool
) -> None:
    saved = backup(house, tmp_path / "saved")
    ready = house.up("workers", grace_s=0.5)
    keeper = house.record.keeper
    if keeper_lost:
        send(keeper, signal.SIGKILL)
        assert wait_gone(keeper, time.monotonic() + DEADLINE_S)
    restore(house, saved, names)
    assert read_server(house.paths.server_record)[0] is not None, "it is whole, and of another life"
    other = house.another()
    status = other.status()
    assert (status.pid, status.url) == (ready.pid, ready.url)
    assert status.state in (State.READY, State.STARTING)
    assert "found by its" in (status.note or "")
    assert list(other.follow_start())[-1].state is State.READY
    with pytest.raises(BusyError, match=r"still runs|is up on"):
        house.another().start(house.preset())
    assert house.another().stop().left == ()
    house.must_be_empty()
    assert house.another().status().state in (State.STOPPED, State.FAILED)
    house.up()
    house.server.stop()


def test_what_another_folder_started_is_not_taken_for_ours(house: House, tmp_path: Path) -> None:
    house.up()
    pid = house.record.child
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(house.paths.state, elsewhere, ignore=shutil.ignore_patterns("*.log"))
    raw = json.loads((elsewhere / "server.json").read_text())
    (elsewhere / "server.json").write_text(json.dumps(raw | {"life": "of old", "keeper": [1, 1, "x"], "child": None}))
    (elsewhere / "keeper.json").unlink()
    server = Server(replace(house.paths, state=elsewhere))
    assert server.status(probe=False).pid is None
    server.close()
    assert house.record.child == pid
    house.server.stop()
