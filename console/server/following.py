"""Watching a start to its end: ready, failed, or stopped because it took too long."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from console.errors import NothingError
from console.paths import Paths
from console.presets import Preset
from console.server.failure import Failure, write_failure
from console.server.starting import FIRST_REQUEST
from console.server.startup import StartupReader
from console.server.state import ServerRecord
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.server.stop import StopReport, wait_gone

READY_TIMEOUT = "ready-timeout"
"""Who asked, when a server was stopped because it did not get ready."""
_LOOK_EVERY_S = 0.25
_OWN_DEATH_S = 15.0
"""A server whose engine crashed ends by itself within seconds; then its log holds the whole story."""
_END = frozenset({State.READY, State.FAILED, State.STOPPED, State.FOREIGN})


class Startable(Protocol):
    """What is needed of the server that starts."""

    @property
    def paths(self) -> Paths: ...

    def status(self) -> ServerStatus: ...

    def record(self) -> ServerRecord | None: ...

    def preset(self) -> Preset | None: ...

    def start_log(self) -> StartupReader | None: ...

    def trouble(self) -> Diagnosis | None: ...

    def stop(self, *, reason: str, for_run: str | None) -> StopReport: ...


class Following:
    """One start, watched.

    Args:
        server: the server.
        timeout_s: seconds to ready without the time of downloads; its preset's `ready-timeout` without one.
        for_run: the id of the run that watches, which may put a start down while it is live.
    """

    def __init__(self, server: Startable, timeout_s: float | None, for_run: str | None = None) -> None:
        self._server = server
        self._for_run = for_run
        self._timeout_s = timeout_s
        self._download_s = 0.0
        self._life: str | None = None
        """Whose start it is."""

    def changes(self) -> Iterator[ServerStatus]:
        """The status at every change until the end."""
        seen: object = None
        before: float | None = None
        while True:
            status = self._server.status()
            if (lost := self._lost(status)) is not None:
                yield lost
                return
            now = time.monotonic()
            if status.phase is Phase.DOWNLOAD:
                # Of a start that somebody else began, all of it so far is taken to be the download.
                self._download_s += now - before if before is not None else status.uptime_s or 0.0
            before = now
            status = self._judged(status)
            cause = status.diagnosis and status.diagnosis.cause
            key = (status.state, status.phase, status.detail, cause, status.silence is None)
            if key != seen:
                seen = key
                yield status
            if status.state in _END:
                return
            time.sleep(_LOOK_EVERY_S)

    def _lost(self, status: ServerStatus) -> ServerStatus | None:
        """That another start has taken this one's place, where one has; what that one does is none of ours."""
        record = self._server.record()
        life = record.life if record is not None else None
        if self._life is None or life is None or life == self._life:
            self._life = self._life or life
            return None
        return ServerStatus(State.STOPPED, note=f"{status.preset or 'another preset'} was started in its place")

    def _judged(self, status: ServerStatus) -> ServerStatus:
        """A start that came to nothing, or takes too long, is put down first."""
        if status.state is State.FAILED and status.pid is not None:
            return self._put_down(status, "the first request failed", _patience_s(status.diagnosis))
        if self._is_late(status):
            diagnosis = self._server.trouble() or _too_late(status)
            return self._put_down(replace(status, diagnosis=diagnosis), READY_TIMEOUT, 0.0)
        return status

    def _is_late(self, status: ServerStatus) -> bool:
        if status.state is not State.STARTING or status.uptime_s is None:
            return False
        preset = None if self._timeout_s is not None else self._server.preset()
        limit = self._timeout_s if self._timeout_s is not None else preset.server.ready_timeout if preset else None
        if limit is None or status.uptime_s <= limit:
            return False
        log = self._server.start_log()
        logged_s = log.facts.download_seconds if log else None
        return status.uptime_s - max(self._download_s, logged_s or 0.0) > limit

    def _put_down(self, status: ServerStatus, reason: str, patience_s: float) -> ServerStatus:
        """A server that will not get ready: let it die its own death if it is about to, else stop it."""
        record = self._server.record()
        if record is None or status.diagnosis is None:
            return status
        write_failure(self._server.paths, Failure(record.life, status.preset, status.diagnosis))
        if not (record.child and wait_gone(record.child, time.monotonic() + patience_s)):
            with suppress(NothingError):
                self._server.stop(reason=reason, for_run=self._for_run)
        wait_gone(record.keeper, time.monotonic() + _OWN_DEATH_S)
        return self._server.status()


def _patience_s(diagnosis: Diagnosis | None) -> float:
    return _OWN_DEATH_S if diagnosis and diagnosis.cause == "engine-crashed" else 0.0


def _too_late(status: ServerStatus) -> Diagnosis:
    asked = status.detail == FIRST_REQUEST
    doing = f"{status.phase}: {status.detail}" if status.detail else str(status.phase)
    return Diagnosis(
        cause="engine-stalled" if asked else "unknown",
        what=f"the server was not ready after {status.uptime_s or 0:.0f} s and was stopped",
        why=f"it was still at: {doing}; its log names no error",
        fix="look at `qwen-console logs`, or give it longer: `--set server.ready-timeout=SECONDS`",
        phase=status.phase,
    )
