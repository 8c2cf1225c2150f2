"""Why minutes of a living server get lost, as `status` tells it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from console.paths import Paths
from console.server.process import Identity, identify
from console.server.recording import Recording
from console.server.state import SCHEMA, ServerRecord, recorder_path, spec_path, write_json
from console.server.unrecorded import unrecorded

GONE = Identity(1, 1, "an earlier boot")


@pytest.fixture
def paths() -> Paths:
    found = Paths.from_env()
    found.make()
    return found


def record(keeper: Identity | None = None) -> ServerRecord:
    me = keeper or identify(os.getpid())
    assert me is not None
    return ServerRecord("a", me, me, (), "/log", "2029-01-01T00:00:00+00:00")


def test_a_server_that_is_recorded_says_nothing(paths: Paths) -> None:
    assert unrecorded(paths, record()) is None


def test_a_history_that_cannot_be_written_is_named_with_its_file(paths: Paths) -> None:
    note = "the history cannot be written (disk I/O error): minutes get lost, the server goes on"
    write_json(recorder_path(paths.server_record), {"schema": SCHEMA, "life": "a", "note": note})
    found = unrecorded(paths, record())
    assert found is not None
    assert (found.cause, found.why) == ("history-unwritable", note)
    assert "history.db" in found.fix
    write_json(recorder_path(paths.server_record), {"schema": SCHEMA, "life": "another", "note": note})
    assert unrecorded(paths, record()) is None


@pytest.mark.parametrize(("recorder", "cause"), [(["python"], "recorder-ended"), (None, None)])
def test_with_a_lost_keeper_its_recorder_is_lost(paths: Paths, recorder: list[str] | None, cause: str | None) -> None:
    spec = {"schema": SCHEMA, "life": "a", "recorder": recorder}
    write_json(spec_path(paths.server_record), spec)
    found = unrecorded(paths, record(GONE))
    assert (found and found.cause) == cause


def _recording(paths: Paths, command: list[str]) -> Recording:
    return Recording({"recorder": command, "record": str(paths.server_record), "life": "a"}, {})


def test_a_recorder_that_cannot_be_started_is_told(paths: Paths) -> None:
    _recording(paths, ["/no/such/recorder"]).start()
    found = unrecorded(paths, record())
    assert found is not None
    assert "could not be started: No such file" in found.why


def test_the_last_word_of_a_recorder_is_kept(paths: Paths) -> None:
    words = [sys.executable, "-c", "import sys; sys.exit('the reason of it')"]
    recording = _recording(paths, words)
    recording.start()
    for _ in range(4):
        pid, status = os.waitpid(recording.pid or 0, 0)
        recording.reaped(pid, status, again=True)
    found = unrecorded(paths, record())
    assert found is not None
    assert found.why.endswith("(the last time it ended with code 1: the reason of it)")
    assert Path(paths.state / "recorder.log").exists()
