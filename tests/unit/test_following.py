"""Watching a start: what is told, and when it takes too long."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from console.paths import Paths
from console.presets import Preset, ServerOptions
from console.server import following
from console.server.failure import read_failure
from console.server.following import READY_TIMEOUT, Following
from console.server.process import Identity
from console.server.startup import StartupReader, read_startup
from console.server.state import ServerRecord
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.server.stop import StopReport

GONE = Identity(1, 1, "another boot")


class Script:
    """A server that is as the test says, look by look; the last look stays."""

    def __init__(self, folder: Path, looks: Iterable[ServerStatus], log: Iterable[str] = ()) -> None:
        self.paths = Paths(folder, folder, folder)
        self.stopped: list[str] = []
        self._looks = list(looks)
        self.lives = ["life"]
        """Whose record it is, look by look; the last one stays."""
        self._log = read_startup(log)

    def status(self) -> ServerStatus:
        if self.stopped:
            failure = read_failure(self.paths)
            return ServerStatus(State.FAILED, diagnosis=failure.diagnosis if failure else None)
        return self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]

    def record(self) -> ServerRecord:
        life = self.lives.pop(0) if len(self.lives) > 1 else self.lives[0]
        return ServerRecord(life, GONE, GONE, ("vllm",), "log", "now")

    def preset(self) -> Preset:
        return Preset(name="p", model="m", server=ServerOptions(ready_timeout=900.0))

    def start_log(self) -> StartupReader:
        return self._log

    def trouble(self) -> Diagnosis | None:
        return None

    def stop(self, *, reason: str, for_run: str | None) -> StopReport:  # noqa: ARG002
        self.stopped.append(reason)
        return StopReport("stopped", 0.0)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "_LOOK_EVERY_S", 0.0)
    # Its processes are of another boot, so gone; nobody waits for their own end.
    monkeypatch.setattr(following, "wait_gone", lambda *_: False)


def starting(uptime_s: float, phase: Phase = Phase.LOAD, detail: str | None = None) -> ServerStatus:
    return ServerStatus(State.STARTING, phase, pid=1, uptime_s=uptime_s, detail=detail)


READY = ServerStatus(State.READY, Phase.READY, pid=1, uptime_s=50.0)


def test_a_start_that_another_one_replaced_has_ended_and_the_other_is_not_told(tmp_path: Path) -> None:
    script = Script(tmp_path, [starting(1), starting(2, Phase.COMPILE), replace(starting(1), preset="q"), READY])
    script.lives = ["life", "life", "other"]
    seen = list(Following(script, None).changes())
    assert [one.phase for one in seen] == [Phase.LOAD, Phase.COMPILE, None]
    assert (seen[-1].state, seen[-1].note) == (State.STOPPED, "q was started in its place")
    assert script.stopped == []


def test_every_change_is_told_once(tmp_path: Path) -> None:
    looks = [starting(1), starting(2), starting(3, detail="weights 40 %"), starting(4, Phase.COMPILE), READY]
    seen = list(Following(Script(tmp_path, looks), None).changes())
    assert [(one.phase, one.detail) for one in seen] == [
        (Phase.LOAD, None),
        (Phase.LOAD, "weights 40 %"),
        (Phase.COMPILE, None),
        (Phase.READY, None),
    ]


def test_a_start_that_takes_too_long_is_stopped_and_explained(tmp_path: Path) -> None:
    server = Script(tmp_path, [starting(899), starting(901, Phase.COMPILE)])
    last = list(Following(server, None).changes())[-1]
    assert server.stopped == [READY_TIMEOUT]
    assert last.diagnosis is not None
    assert "901 s" in last.diagnosis.what
    assert "compile" in last.diagnosis.why


def test_another_limit_can_be_given(tmp_path: Path) -> None:
    server = Script(tmp_path, [starting(11)])
    list(Following(server, 10.0).changes())
    assert server.stopped == [READY_TIMEOUT]


def test_a_download_that_somebody_else_began_does_not_count(tmp_path: Path) -> None:
    looks = [starting(5000, Phase.DOWNLOAD), starting(5001, Phase.LOAD), starting(5100, Phase.COMPILE), READY]
    server = Script(tmp_path, looks)
    assert list(Following(server, None).changes())[-1] == READY
    assert server.stopped == []


def test_a_download_that_was_over_before_is_known_from_the_log(tmp_path: Path) -> None:
    said = "INFO 01-02 03:04:05 [weight_utils.py:1] Time spent downloading weights for acme/m: 4700.5 seconds"
    server = Script(tmp_path, [starting(5000), starting(5400), READY], [said])
    assert list(Following(server, None).changes())[-1] == READY
    late = Script(tmp_path, [starting(5000), starting(5700)], [said])
    list(Following(late, None).changes())
    assert late.stopped == [READY_TIMEOUT]


def test_a_first_request_that_failed_puts_the_server_down(tmp_path: Path) -> None:
    crashed = Diagnosis("engine-crashed", "w", "y", "f")
    server = Script(tmp_path, [ServerStatus(State.FAILED, pid=1, diagnosis=crashed)])
    last = list(Following(server, None).changes())[-1]
    assert server.stopped == ["the first request failed"]
    assert last.diagnosis == crashed
