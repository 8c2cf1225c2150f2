"""What the console does to server and runs. Each blocks until it is done: called in a worker, told through `say`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from console.errors import NothingError
from console.server.run_lock import run_is_live
from console.server.status import ServerStatus
from console.tui.keycaps import cap

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.presets import Preset
    from console.server.stop import StopReport
    from console.tui.services import Say, Services

Tell = Callable[[ServerStatus], None]
TellRun = Callable[[str], None]

_DRAIN_S = 600.0
_PATIENCE_S = 60.0
"""For a start that is broken off to notice."""
_RUN_PATIENCE_S = 5.0
"""For a run that has just been begun to be there."""
_LOOK_EVERY_S = 0.1


class _EnoughError(Exception):
    """The user does not wait for the requests in flight any longer, or does not want this start any more."""


class Actions:
    """The long jobs behind the keys.

    Args:
        services: the ports.
        say: what is being done, in a line.
        tell: a status that the job came upon.
        tell_run: the id of a run that was begun.
    """

    def __init__(self, services: Services, say: Say, tell: Tell, tell_run: TellRun) -> None:
        self._services = services
        self._say = say
        self._tell = tell
        self._tell_run = tell_run
        self.enough = threading.Event()
        """Set: do not wait for requests in flight any longer."""
        self._given_up = threading.Event()
        self._raising = 0

    @contextmanager
    def _bringing_up(self) -> Iterator[None]:
        """While a server is on its way up; `break_off` ends it."""
        self._given_up.clear()
        self._raising += 1
        try:
            with suppress(_EnoughError):
                yield
        finally:
            self._raising -= 1

    def _unless_given_up(self) -> None:
        if self._given_up.is_set():
            raise _EnoughError

    def start(self, preset: Preset) -> str | None:
        """Start a preset and see it ready, or see why not."""
        self._say(f"starting {preset.name}")
        with self._bringing_up():
            self._services.server.start(preset)
            self._follow()
        return None

    def follow_found(self) -> str | None:
        """See a start to its end that was found under way; one that takes too long is stopped, one of a run is not
        ours to judge."""
        if run_is_live(self._services.paths):
            return None
        with self._bringing_up():
            self._follow()
        return None

    def _follow(self) -> None:
        self._say("")
        for status in self._services.server.follow_start():
            self._unless_given_up()
            self._tell(status)

    def stop(self) -> str | None:
        """Stop the server whole; what stays behind is told with its reason."""
        self._say("stopping the server")
        return _left(self._services.server.stop(on_event=self._say, reason="the console"))

    def break_off(self) -> str | None:
        """Stop a start, wherever it stands: before its process is there, too."""
        self._say("breaking off the start")
        self._given_up.set()
        report: StopReport | None = None
        end = time.monotonic() + _PATIENCE_S
        while True:
            # Read before the attempt: what it finds nothing of may be about to come.
            coming = self._raising > 0
            with suppress(NothingError):
                report = self._services.server.stop(on_event=self._say, reason="the console")
            if not coming or time.monotonic() > end:
                return _left(report) if report else None
            time.sleep(_LOOK_EVERY_S)

    def drain_and_stop(self) -> str | None:
        """Wait until no request is in flight, or the user will not wait any longer; then stop."""
        self.drain("stops it now")
        return self.stop()

    def drain(self, at_once: str) -> str | None:
        """Wait for the requests in flight, as long as the user does; `at_once` says what the key for a stop does."""
        self.enough.clear()

        def tell(text: str) -> None:
            self._say(f"{text}; {cap('stop')} {at_once}")
            if self.enough.is_set():
                raise _EnoughError

        with suppress(_EnoughError):
            self._services.server.drain(_DRAIN_S, tell)
        return None

    def switch(self, preset: Preset) -> str | None:
        """Stop what runs, if anything does, and start another preset; the status tells how that went."""
        from console.server.switch import switch

        def say(text: str) -> None:
            self._unless_given_up()
            self._say(text)

        def tell(status: ServerStatus) -> None:
            # From here on the ladder of phases tells how far it is.
            say("")
            self._tell(status)

        with self._bringing_up():
            end = switch(self._services.server, preset, say=say, tell=tell)
            if end.error is not None:
                raise end.error
        return None

    def go_back(self, preset: Preset) -> str | None:
        """Start what was ready before."""
        return self.switch(preset)

    def run(self, plan: Plan) -> str | None:
        """Begin the A/B run that was shown; it goes on by itself."""
        self._say(f"starting the {plan.kind} run")
        self._tell_run(self._services.start_run(plan))
        return None

    def probe(self) -> str | None:
        """Test the prefix cache; the verdict is told."""
        self._say("sending one prompt three times")
        return self._services.probe_prefix(self._say)

    def stop_run(self, *, just_begun: bool = False) -> str | None:
        """End the A/B run; the lab puts back what ran before. One that was just begun is waited for."""
        self._say("stopping the A/B run; what ran before is started again")
        end = time.monotonic() + _RUN_PATIENCE_S
        while just_begun and run_is_live(self._services.paths) is None and time.monotonic() < end:
            time.sleep(_LOOK_EVERY_S)
        self._services.stop_run()
        return None

    def adopt(self, run_id: str, arm: str) -> str | None:
        """Write the winner as a preset."""
        path = self._services.adopt(run_id, arm)
        return f"wrote {path}; {path.stem} is selected, {cap('start')} starts it"


def _left(report: StopReport) -> str | None:
    """What a stop left behind."""
    if not report.left:
        return None
    return "still there: " + "; ".join(f"{f'pid {pid}: ' if pid else ''}{why}" for pid, why in report.left)
