"""The lab's process: every boot of the plan that is still missing, in order, then what ran before runs again."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from types import FrameType

from console.errors import ConsoleError
from console.lab.bench import Prompts
from console.lab.boot import Boot, Shared
from console.lab.conditions import Conditions
from console.lab.folder import Folder
from console.lab.journal import FULL, Journal, JournalError
from console.lab.progress import Progress, progress_of
from console.lab.replay import FILE as REPLAY_FILE
from console.lab.replay import read_recorded
from console.lab.report import write_reports
from console.lab.restore import restore
from console.lab.settling import settled_by
from console.server.life import Server
from console.server.room import NoRoom


class StopAsked(KeyboardInterrupt):
    """Somebody asked the run to end. A KeyboardInterrupt, since asyncio hands only that through."""


class Runner:
    """One run, from its first missing boot to the restoration."""

    def __init__(self, folder: Folder, server: Server) -> None:
        self._folder = folder
        self._plan = folder.plan
        self._server = server
        self._armed = False
        self._progress = progress_of(folder.path)

    def run(self) -> str:
        """Do it; the state in which the run ended (done, interrupted, failed)."""
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Journal(self._folder.path, ballast=True) as journal:
            begins = "resumed" if self._progress.begun else "run-start"
            state, note = self._guarded(journal, begins)
            journal.add("measured", state=state)
            restore(self._server, self._folder, journal)
            journal.add("run-end", state=state, note=note)
            journal.sync()
        try:
            write_reports(self._folder.path)
        except OSError as error:
            print(f"the report cannot be written: {error}", file=sys.stderr)
        return state

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise StopAsked(signal.Signals(number).name)

    def _guarded(self, journal: Journal, begins: str) -> tuple[str, str | None]:
        try:
            try:
                self._armed = True
                name, pid = self._plan.base.name, os.getpid()
                journal.add(begins, id=self._folder.id, kind=self._plan.kind, preset=name, pid=pid)
                journal.sync()
                self._stop_before(journal)
                self._boots(journal)
            finally:
                # From here on a request to stop changes nothing: what is left is the clean end.
                self._armed = False
        except StopAsked as asked:
            return "interrupted", "stopped on request" if str(asked) == "SIGTERM" else f"stopped by {asked}"
        except (JournalError, NoRoom) as error:
            # A full disk is nothing that an arm did: the boot at hand is made again.
            print(error, file=sys.stderr)
            return "interrupted", f"{error.what}: {error.why}"
        except ConsoleError as error:
            print(error, file=sys.stderr)
            return "failed", f"{error.what}: {error.why}" if error.why else error.what
        except OSError as error:
            traceback.print_exc(file=sys.stderr)
            state = "interrupted" if error.errno in FULL else "failed"
            return state, f"{error.filename or 'a file of the run'}: {error.strerror or error}"
        except Exception as error:  # noqa: BLE001 - the edge of this process: what ran before must run again
            traceback.print_exc(file=sys.stderr)
            return "failed", f"an error in the lab itself, {type(error).__name__}: {error}; see lab.log"
        return "done", None

    def _stop_before(self, journal: Journal) -> None:
        if self._server.record() is None:
            return
        journal.add("step", n=None, text="stopping what runs")
        try:
            self._server.stop(reason=f"the A/B run {self._folder.id}", for_run=self._folder.id)
        except ConsoleError as error:
            # What is already gone needs no stop; what cannot be stopped makes the first start say so.
            journal.add("step", n=None, text=error.what)

    def _boots(self, journal: Journal) -> None:
        shared = self._shared(journal)
        progress, begun = self._progress, time.monotonic()
        for number, round_number, arm in self._plan.boots():
            if number in progress.ended:
                continue
            if why := self._why_not(journal, progress, round_number, arm, time.monotonic() - begun):
                journal.add("boot-skipped", n=number, arm=arm, round=round_number, why=why)
                continue
            started = time.monotonic()
            end = Boot(shared, (number, round_number, arm)).run()
            progress.note(round_number, arm, time.monotonic() - started, end.crash)
            if progress.round_is_over(round_number, self._plan):
                journal.add("round-end", round=round_number)
                journal.sync()
        for text in progress.crash_notes():
            journal.add("warning", text=text)

    def _why_not(self, journal: Journal, progress: Progress, round_number: int, arm: str, spent_s: float) -> str | None:
        """Why this boot is left out, if it is."""
        if why := progress.given_up(arm, self._plan):
            return why
        if progress.over is None and progress.enters(round_number):
            progress.over = self._why_over(journal, progress, round_number, spent_s)
        return progress.over

    def _why_over(self, journal: Journal, progress: Progress, round_number: int, spent_s: float) -> str | None:
        """Before a round begins: whether the run ends here, because it is settled or because its time is up."""
        if settled := settled_by(self._folder.path, self._plan, round_number - 1):
            journal.add("settled", round=round_number - 1, text=settled)
            return f"settled after {round_number - 1} of {self._plan.rounds} rounds"
        left = progress.beyond_budget(self._plan, spent_s)
        if left is not None:
            journal.add("time-up", round=round_number - 1)
            journal.add("warning", text=f"ended after {round_number - 1} of {self._plan.rounds} rounds: {left}")
        return left

    def _shared(self, journal: Journal) -> Shared:
        recorded = self._folder.path / REPLAY_FILE
        prompts = Prompts(read_recorded(recorded) if recorded.exists() else ())
        base = self._plan.base
        # A secret by what it is made of is told by no name: the journal must not hold it.
        left_out = (*self._plan.differs, *(f"env.{name}" for name in base.secrets))
        conditions = Conditions(left_out, self._progress.environment)
        return Shared(
            self._plan, self._server, journal, self._folder.path, prompts, conditions, set(self._progress.primed)
        )
