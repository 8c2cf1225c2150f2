"""A life that is over: how it ended, why, and what it left."""

from __future__ import annotations

import signal
from dataclasses import replace

from console.paths import Paths
from console.server.failure import read_failure
from console.server.found import leftovers
from console.server.phase import LogWatch
from console.server.process import boot_id
from console.server.ready import Canary, read_canary
from console.server.room import closed_note, full_note, is_full
from console.server.state import ExitRecord, ServerRecord, read_exit
from console.server.status import Diagnosis, Phase, ServerStatus, State

_CLEAN = 3
_KILLED = 9
_TOLD_TO_END = 128 + signal.SIGTERM
"""How a shell, and some programs, report that SIGTERM ended them."""


class Ended:
    """Looks at what a life has left on disk and in /proc."""

    def __init__(self, paths: Paths, record: ServerRecord, watch: LogWatch) -> None:
        self._paths = paths
        self._record = record
        self._watch = watch
        self._clean = 0
        """Looks in a row that found nothing left."""

    def status(self, known: ServerStatus) -> ServerStatus:
        """Stopped, or failed with the reason.

        Args:
            known: what is known of this life beside its state.
        """
        record = self._record
        end, note = self._end()
        left = self._left()
        known = replace(known, failed_at=end.at if end else None)
        if left:
            note = f"{len(left)} processes of this server are left: `qwen-console down` ends them"
            return replace(known, state=State.FAILED, ours=left, note=note, diagnosis=self.cause(end))
        failure = read_failure(self._paths)
        if failure and failure.life == record.life and (end is None or end.asked):
            return replace(known, state=State.FAILED, diagnosis=failure.diagnosis, note=note, failed_at=failure.at)
        gone = replace(known, preset=None, url=None, failed_at=None)
        if end is None and record.keeper.boot != boot_id():
            return replace(gone, note="the machine was restarted while the server ran")
        if record.child is None or (end and end.asked):
            return replace(gone, note=note)
        if end and end.code == 0 and self._was_ready() and self._watch.cause_of_death(0) is None:
            # Of its own accord and in order, after it had been ready: somebody told it so and not its keeper.
            return replace(gone, note=note)
        if end is None and closed_note(self._paths.state) and self._unknown():
            return replace(gone, note="how it ended is not on record: the state folder could not be written")
        if end is None:
            lost = "its keeper was lost: how the server ended is not on record"
            note = full_note(self._paths.state) if is_full(self._paths.state) else note or lost
        return replace(known, state=State.FAILED, diagnosis=self.cause(end), note=note)

    def _unknown(self) -> bool:
        """Whether its log knows of nothing that it died of."""
        found = self._watch.cause_of_death(None)
        return found is None or found.cause == "unknown"

    def _left(self) -> tuple[int, ...]:
        """What lives of it; what is gone does not come back, so all of /proc is not looked through for ever."""
        if self._clean >= _CLEAN:
            return ()
        left = tuple(who.pid for who in leftovers(self._record, self._paths.exit_record))
        self._clean = 0 if left else self._clean + 1
        return left

    def cause(self, end: ExitRecord | None) -> Diagnosis:
        """Why it ended: by its log, by its first request, else by the way it went."""
        code = (end.code if end.signal is None else -end.signal) if end else None
        found = self._watch.cause_of_death(code)
        canary = read_canary(self._paths, self._record.life)
        if canary and not canary.ok:
            return refused(canary, found)
        if (found is None or found.cause == "unknown") and is_full(self._paths.state):
            return self._without_room()
        return found or self._unexplained(end)

    def _without_room(self) -> Diagnosis:
        return Diagnosis(
            cause="unknown",
            what="the server ended, and the disk of its log is full",
            why=f"{full_note(self._paths.state)}: what it said last is lost, and it may have died of it",
            fix=f"make room at {self._paths.state}, then start it again",
            phase=self._watch.start().phase,
        )

    def _end(self) -> tuple[ExitRecord | None, str | None]:
        end, note = read_exit(self._paths.exit_record)
        return (end if end is not None and end.life == self._record.life else None), note

    def _was_ready(self) -> bool:
        canary = read_canary(self._paths, self._record.life)
        return canary is not None and canary.ok

    def _unexplained(self, end: ExitRecord | None) -> Diagnosis:
        phase = Phase.READY if self._was_ready() else self._watch.start().phase
        fix = "`qwen-console logs -n 100` shows its last lines; `journalctl -k` tells when the kernel ran out of memory"
        if end is None:
            why = "how it ended is not on record, and its log does not say"
        elif end.signal == _KILLED:
            return Diagnosis(
                cause="unknown",
                what="the server was killed (SIGKILL)",
                why="none of ours did it, and its log cannot know: somebody, or the kernel's OOM killer",
                fix="`journalctl -k | grep -i -e oom -e killed` tells which; then start it again",
                phase=phase,
            )
        elif end.signal == signal.SIGTERM or end.code == _TOLD_TO_END:
            return Diagnosis(
                cause="unknown",
                what="the server was told to end (SIGTERM), and not by this console",
                why="somebody's `kill`, a logout or a service manager; its log cannot know who",
                fix="`qwen-console up` starts it again; `qwen-console doctor` tells whether a logout ends processes",
                phase=phase,
            )
        elif end.signal is not None:
            why = f"{signal_name(end.signal)} ended it, sent by none of ours; its log does not say why"
        else:
            why = f"it ended with code {end.code}; its log does not say why"
        return Diagnosis(cause="unknown", what="the server ended by itself", why=why, fix=fix, phase=phase)


def signal_name(number: int) -> str:
    """`SIGTERM`, or its number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def refused(canary: Canary, found: Diagnosis | None) -> Diagnosis:
    """Why the first request failed: the log knows best, if it knows."""
    if found and found.cause != "unknown":
        return found
    return Diagnosis(
        cause=canary.cause or "unknown",
        what="the server started, but its first request failed",
        why=canary.why or "",
        fix="`qwen-console logs -n 100` shows what the engine said",
        evidence=found.evidence if found else (),
        phase=Phase.WARM_UP,
    )
