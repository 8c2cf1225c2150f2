"""What the console does to server and runs. Each blocks until it is done: called in a worker, told through `say`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from console.errors import NothingError
from console.server.status import ServerStatus

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.presets import Preset
    from console.server.stop import StopReport
    from console.tui.services import Say, Services

Tell = Callable[[ServerStatus], None]


_DRAIN_S = 600.0


class _EnoughError(Exception):
    """The user does not wait for the requests in flight any longer."""


class Actions:
    """The long jobs behind the keys.

    Args:
        services: the ports.
        say: what is being done, in a line.
        tell: a status that the job came upon.
    """

    def __init__(self, services: Services, say: Say, tell: Tell) -> None:
        self._services = services
        self._say = say
        self._tell = tell
        self.enough = threading.Event()
        """Set: do not wait for requests in flight any longer."""

    def start(self, preset: Preset) -> str | None:
        """Start a preset and see it ready, or see why not."""
        self._say(f"starting {preset.name}")
        self._services.server.start(preset)
        return self.follow()

    def follow(self) -> str | None:
        """See a start to its end; one that takes too long is stopped."""
        self._say("")
        for status in self._services.server.follow_start():
            self._tell(status)
        return None

    def stop(self) -> str | None:
        """Stop the server whole; what stays behind is told with its reason."""
        self._say("stopping the server")
        return _left(self._services.server.stop(on_event=self._say))

    def drain_and_stop(self) -> str | None:
        """Wait until no request is in flight, or the user will not wait any longer; then stop."""
        self.enough.clear()
        with suppress(_EnoughError):
            self._services.server.drain(_DRAIN_S, self._drained)
        return self.stop()

    def _drained(self, text: str) -> None:
        self._say(f"{text}; x stops it now")
        if self.enough.is_set():
            raise _EnoughError

    def switch(self, preset: Preset) -> str | None:
        """Stop what runs, if anything does, and start another preset; the status tells how that went."""
        from console.server.switch import switch

        end = switch(self._services.server, preset, say=self._say, tell=self._tell)
        if end.error is not None:
            raise end.error
        return None

    def go_back(self, preset: Preset) -> str | None:
        """Start what was ready last."""
        return self.switch(preset)

    def restart(self, name: str) -> str | None:
        """Stop what runs, if it still does, and start the same preset again, as it is written now."""
        found = self._services.catalog().presets.get(name) or self._services.server.preset()
        if found is None:
            raise NothingError(
                f"{name} cannot be started again", "no preset of that name is left", "select another one"
            )
        return self.switch(found)

    def run(self, plan: Plan) -> str | None:
        """Begin the A/B run that was shown; it goes on by itself."""
        self._say(f"starting the {plan.kind} run")
        self._services.start_run(plan)
        return None

    def probe(self) -> str | None:
        """Test the prefix cache; the verdict is told."""
        self._say("sending one prompt three times")
        return self._services.probe_prefix(self._say)

    def stop_run(self) -> str | None:
        """End the A/B run; the lab puts back what ran before."""
        self._say("stopping the A/B run; what ran before is started again")
        self._services.stop_run()
        return None

    def adopt(self, run_id: str, arm: str) -> str | None:
        """Write the winner as a preset."""
        path = self._services.adopt(run_id, arm)
        return f"wrote {path}"


def _left(report: StopReport) -> str | None:
    """What a stop left behind."""
    if not report.left:
        return None
    return "still there: " + "; ".join(f"{f'pid {pid}: ' if pid else ''}{why}" for pid, why in report.left)
