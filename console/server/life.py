"""The life of the server: start it, find it again, watch it, stop it whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from console.endpoint import Endpoint
from console.errors import NothingError
from console.paths import Paths
from console.presets import Preset
from console.server.derive import FIRST_REQUEST, READY_TIMEOUT, Observer
from console.server.facts import StartupFacts
from console.server.failure import Failure, read_failure, write_failure
from console.server.found import known_life, leftovers
from console.server.locks import is_held
from console.server.process import alive
from console.server.ready import read_canary
from console.server.run_lock import busy_with, run_is_live
from console.server.sockets import bind_problem, owner_of
from console.server.start import PortInUse, launch
from console.server.state import ServerRecord
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.server.stop import StopReport, stop_life, wait_gone

_LOOK_EVERY_S = 0.25
_OWN_DEATH_S = 15.0
"""A server whose engine crashed ends by itself within seconds; then its log holds the whole story."""
_PORT_S = 10.0
_PATIENCE_S = 10.0
"""For a start under way to say whom it started."""
_END = frozenset({State.READY, State.FAILED, State.STOPPED})


class Server:
    """The one server of this console; a thin view on what is on disk and in /proc, safe to build any time."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._observer: Observer | None = None

    def record(self) -> ServerRecord | None:
        """The last life on record, running or not."""
        return self._known()[0]

    def preset(self) -> Preset | None:
        """The preset of that life as resolved, with secrets from the server's environment."""
        observer = self._observe(self.record())
        return observer.preset if observer else None

    def endpoint(self) -> Endpoint | None:
        """Where the living server answers."""
        record = self.record()
        observer = self._observe(record)
        return observer.endpoint if observer and record and alive(record.child) else None

    def secrets(self) -> frozenset[str]:
        """Values that no log view and no report may show."""
        observer = self._observe(self.record())
        return observer.secrets if observer else frozenset()

    def facts(self) -> StartupFacts:
        """What the log of that life told about the server that really runs."""
        observer = self._observe(self.record())
        return observer.facts if observer else StartupFacts()

    def baseline(self) -> str | None:
        """The `/metrics` page right after the canary of that life."""
        record = self.record()
        if record is None or read_canary(self._paths, record.life) is None:
            return None
        try:
            return self._paths.baseline.read_text()
        except OSError:
            return None

    def status(self, *, probe: bool = True) -> ServerStatus:
        """One look; with `probe` it asks the server, and has the canary sent when that is due."""
        record, note = self._known()
        observer = self._observe(record)
        status = observer.status(probe=probe) if observer else ServerStatus()
        if status.state in (State.STOPPED, State.FAILED) and status.pid is None:
            status = self._without_life(status)
        return replace(status, note=status.note or note)

    def _without_life(self, status: ServerStatus) -> ServerStatus:
        if is_held(self._paths.server_lock):
            return ServerStatus(State.STARTING, Phase.START)
        failure = read_failure(self._paths)
        if failure and failure.life is None and not status.ours:
            return ServerStatus(State.FAILED, preset=failure.preset, diagnosis=failure.diagnosis)
        return status

    def start(self, preset: Preset, *, log: Path | None = None, for_run: str | None = None) -> None:
        """Start this preset's server; returns once its process runs, which is long before it is ready.

        Args:
            preset: what to run; port 0 takes a free one.
            log: the log file, when it is not to stand among the others.
            for_run: the id of the run that asks; anybody else is refused while a run is live.

        Raises:
            BusyError: a server of ours lives or is being started, or a run is live.
            ConsoleError: it cannot be started: no such command, the port taken …
        """
        self._paths.make()
        run = run_is_live(self._paths)
        if run is not None and run != for_run:
            raise busy_with(run)
        try:
            launch(self._paths, preset, log)
        except PortInUse as error:
            write_failure(self._paths, Failure(None, preset.name, error.diagnosis))
            raise

    def follow_start(self, timeout_s: float | None = None) -> Iterator[ServerStatus]:
        """The status at every change until the server is ready, failed or stopped.

        A server that is not ready after `timeout_s` seconds (default: its preset's `ready-timeout`) without the time
        of downloads is stopped; the last status says why.
        """
        seen, download_s, before = None, 0.0, time.monotonic()
        while True:
            status = self.status()
            now = time.monotonic()
            download_s += now - before if status.phase is Phase.DOWNLOAD else 0.0
            before = now
            if status.state is State.FAILED and status.pid is not None:
                status = self._put_down(status, "the first request failed", _patience_s(status.diagnosis))
            elif self._is_late(status, download_s, timeout_s):
                status = self._put_down(self._late(status), READY_TIMEOUT, 0.0)
            key = (status.state, status.phase, status.detail)
            if key != seen:
                seen = key
                yield status
            if status.state in _END:
                return
            time.sleep(_LOOK_EVERY_S)

    def _is_late(self, status: ServerStatus, download_s: float, timeout_s: float | None) -> bool:
        preset = self.preset()
        limit = timeout_s if timeout_s is not None else preset.server.ready_timeout if preset else None
        if limit is None or status.state is not State.STARTING or status.uptime_s is None:
            return False
        return status.uptime_s - download_s > limit

    def _late(self, status: ServerStatus) -> ServerStatus:
        observer = self._observe(self.record())
        found = observer.trouble() if observer else None
        return replace(status, diagnosis=found or _too_late(status))

    def _put_down(self, status: ServerStatus, reason: str, patience_s: float) -> ServerStatus:
        """A server that will not get ready: let it die its own death if it is about to, else stop it."""
        record = self.record()
        if record is None or status.diagnosis is None:
            return status
        write_failure(self._paths, Failure(record.life, status.preset, status.diagnosis))
        if not (record.child and wait_gone(record.child, time.monotonic() + patience_s)):
            with suppress(NothingError):
                self.stop(reason=reason)
        wait_gone(record.keeper, time.monotonic() + _OWN_DEATH_S)
        return self.status()

    def stop(self, *, on_event: Callable[[str], None] | None = None, reason: str = "down") -> StopReport:
        """Stop the server whole: until no process of it is left and its port is free, or the report says what stays.

        Raises:
            NothingError: there is no server of ours.
        """
        record = self._stoppable()
        if record is None:
            raise NothingError("there is no server to stop", "none of this console runs", "`qwen-console status`")
        report = stop_life(record, self._paths.server_record, self._paths.exit_record, reason=reason, on_event=on_event)
        problem = self._port_problem(record)
        return replace(report, left=(*report.left, (0, problem))) if problem else report

    def _stoppable(self) -> ServerRecord | None:
        """Who is to be stopped; a start under way is waited for until it says whom it started."""
        end = time.monotonic() + _PATIENCE_S
        while True:
            record = self.record()
            if record and (alive(record.keeper) or alive(record.child)):
                return record
            if record and leftovers(record, self._paths.exit_record):
                return record
            if not is_held(self._paths.server_lock) or time.monotonic() > end:
                return None
            time.sleep(0.05)

    def _port_problem(self, record: ServerRecord) -> str | None:
        """Wait until the port is free; why it is not. Somebody else who took it at once is no remnant of ours."""
        host, port = record.host or "", record.port or 0
        end = time.monotonic() + _PORT_S
        while port and bind_problem(host, port) is not None and owner_of(port) is None:
            if time.monotonic() > end:
                return f"port {port} is still not free, and nobody is seen to hold it"
            time.sleep(0.1)
        return None

    def _known(self) -> tuple[ServerRecord | None, str | None]:
        return known_life(self._paths.server_record)

    def _observe(self, record: ServerRecord | None) -> Observer | None:
        if record is None:
            return None
        if self._observer is None or self._observer.record != record:
            self.close()
            self._observer = Observer(self._paths, record)
        return self._observer

    def close(self) -> None:
        """Drop the kept connections; the next use opens new ones."""
        if self._observer is not None:
            self._observer.close()


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
