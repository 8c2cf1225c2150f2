"""The lab's process: every boot of the plan in order, then what ran before runs again."""

from __future__ import annotations

import signal
import sys
import traceback
from types import FrameType

from console.errors import ConsoleError
from console.lab.boot import Boot
from console.lab.folder import Folder
from console.lab.journal import Journal
from console.lab.report import write_reports
from console.lab.restore import restore
from console.lab.workload import Jobs
from console.server.life import Server

_CRASHES = 2
"""An arm that crashed so often is not booted again: a third time shows nothing new."""


class StopAsked(KeyboardInterrupt):
    """Somebody asked the run to end. A KeyboardInterrupt, since asyncio hands only that through."""


class Runner:
    """One run, from its first boot to the restoration."""

    def __init__(self, folder: Folder, server: Server) -> None:
        self._folder = folder
        self._plan = folder.plan
        self._server = server
        self._armed = False
        self._made: dict[int, Jobs] = {}

    def run(self) -> str:
        """Do it; the state in which the run ended (done, interrupted, failed)."""
        signal.signal(signal.SIGTERM, self._asked)
        signal.signal(signal.SIGINT, self._asked)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with Journal(self._folder.path) as journal:
            journal.add("run-start", id=self._folder.id, kind=self._plan.kind, preset=self._plan.base.name)
            journal.sync()
            state, note = self._guarded(journal)
            journal.add("measured", state=state)
            restore(self._server, self._folder, journal)
            journal.add("run-end", state=state, note=note)
            journal.sync()
        write_reports(self._folder.path)
        return state

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise StopAsked(signal.Signals(number).name)

    def _guarded(self, journal: Journal) -> tuple[str, str | None]:
        try:
            try:
                self._armed = True
                self._stop_before(journal)
                self._boots(journal)
            finally:
                # From here on a request to stop changes nothing: what is left is the clean end.
                self._armed = False
        except StopAsked as asked:
            return "interrupted", f"stopped by {asked}"
        except ConsoleError as error:
            return "failed", f"{error.what}: {error.why}" if error.why else error.what
        except Exception as error:  # noqa: BLE001 - the edge of this process: what ran before must run again
            traceback.print_exc(file=sys.stderr)
            return "failed", f"an error in the lab itself, {type(error).__name__}: {error}; see lab.log"
        return "done", None

    def _stop_before(self, journal: Journal) -> None:
        if self._server.record() is None:
            return
        journal.add("step", n=None, text="stopping what runs")
        try:
            self._server.stop()
        except ConsoleError as error:
            # What is already gone needs no stop; what cannot be stopped makes the first start say so.
            journal.add("step", n=None, text=error.what)

    def _boots(self, journal: Journal) -> None:
        crashes = {arm.name: 0 for arm in self._plan.arms}
        last_round = 1
        for number, round_number, arm in self._plan.boots():
            if round_number != last_round:
                journal.add("round-end", round=last_round)
                journal.sync()
                last_round = round_number
            alive = [name for name, count in crashes.items() if count < _CRASHES]
            if arm not in alive or len(alive) < 2:
                why = "it crashed twice" if arm not in alive else "no other arm is left to compare it with"
                journal.add("boot-skipped", n=number, arm=arm, round=round_number, why=why)
                continue
            place = (number, round_number, arm)
            end = Boot(self._plan, place, self._server, journal, self._folder.path, self._made).run()
            crashes[arm] += end.crash is not None
        for name, count in crashes.items():
            if count >= _CRASHES:
                journal.add("warning", text=f"{name} crashed {count} times and was not booted again")
        journal.add("round-end", round=last_round)
