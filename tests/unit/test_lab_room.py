"""A full disk is nothing that an arm did: no boot is counted, nothing half-made stays, and the run goes on later."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.errors import ConsoleError
from console.lab.folder import read_folder
from console.lab.journal import read_events, write_json
from console.lab.launch import launch
from console.lab.plan import make_plan
from console.lab.runner import Runner
from console.lab.view import read_run
from console.paths import Paths
from console.server.life import Server
from console.server.room import NoRoom
from tests.unit.lab_runs import BASE, make_run


@pytest.fixture
def own_signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("own_signals")
def test_no_room_for_an_arm_is_no_result_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_run()
    monkeypatch.setattr("console.server.room.free_bytes", lambda _: 1024**2)
    server = Server(made.paths)
    assert Runner(read_folder(made.folder), server).run() == "interrupted"
    server.close()
    view = read_run(made.folder)
    assert (view.state, view.resumable, view.boots) == ("interrupted", True, ())
    assert "there is no room" in str(view.problem)
    assert not [event for event in read_events(made.folder) if event["event"] == "boot-end"]


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(("number", "state"), [(errno.ENOSPC, "interrupted"), (errno.EACCES, "failed")])
def test_a_file_that_cannot_be_written_interrupts_where_the_disk_is_full(
    number: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_run()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), "boots")

    monkeypatch.setattr(Server, "start", refuse)
    server = Server(made.paths)
    assert Runner(read_folder(made.folder), server).run() == state
    server.close()
    assert os.strerror(number) in str(read_run(made.folder).problem)


def _plan() -> Any:
    return make_plan("aa", BASE, size="small", rounds=1)


def test_a_run_that_finds_no_room_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths.from_env()
    monkeypatch.setattr("console.server.room.free_bytes", lambda _: 1024**2)
    with pytest.raises(NoRoom):
        launch(paths, _plan())
    assert not list(paths.runs.glob("*"))


def test_a_folder_that_could_not_be_written_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = Paths.from_env()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("console.lab.launch.write_lent", refuse)
    with pytest.raises(ConsoleError, match="folder cannot be written"):
        launch(paths, _plan())
    assert not list(paths.runs.glob("*"))


def test_a_file_that_cannot_be_replaced_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "plan.json").mkdir()
    with pytest.raises(OSError, match=r"plan\.json"):
        write_json(tmp_path / "plan.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]
