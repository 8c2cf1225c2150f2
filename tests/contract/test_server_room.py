"""No room for the log and the state: refused before a start, told while a server runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from console.errors import ConsoleError
from console.paths import Paths
from console.server.room import make_state
from console.server.status import State
from tests.contract.life_house import House, open_house


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("a small disk can be mounted by root only")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=True)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def house(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    del disk
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _fill(folder: Path) -> None:
    with suppress(OSError), (folder / "ballast").open("ab", buffering=0) as ballast:
        while ballast.write(b"x" * 4096):
            pass


def test_a_start_without_room_is_refused(house: House, disk: Path) -> None:
    _fill(disk)
    with pytest.raises(ConsoleError, match="no room"):
        house.server.start(house.preset())
    (disk / "ballast").unlink()
    house.up()
    house.server.stop()


def test_a_server_on_a_full_disk_goes_on_and_stops_whole(house: House, disk: Path) -> None:
    house.up("workers", grace_s=0.5)
    _fill(disk)
    status = house.another().status()
    assert status.state is State.READY
    assert "is full" in (status.note or "")
    assert house.server.stop().left == ()
    house.must_be_empty()


def test_a_server_that_dies_on_a_full_disk_is_explained(house: House, disk: Path) -> None:
    house.server.start(house.preset("never-listens"))
    _fill(disk)
    os.kill(house.child.pid, 9)
    status = list(house.server.follow_start())[-1]
    assert status.state is State.FAILED
    assert status.diagnosis is not None
    assert "disk of its log is full" in status.diagnosis.what
    assert str(house.paths.state) in status.diagnosis.fix


def test_a_state_folder_that_cannot_be_made_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConsoleError, match="is a file, not a folder"):
        make_state(Paths.from_env())
