"""What the console does to server and runs. Each blocks until it is done: called in a worker, told through `say`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from console.errors import NothingError
from console.server.status import ServerStatus, State

if TYPE_CHECKING:
    from console.presets import Preset
    from console.tui.services import Services

Say = Callable[[str], None]
Tell = Callable[[ServerStatus], None]


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
        report = self._services.server.stop(on_event=self._say)
        if report.left:
            return "still there: " + "; ".join(f"{f'pid {pid}: ' if pid else ''}{why}" for pid, why in report.left)
        return None

    def switch(self, preset: Preset) -> str | None:
        """Stop what runs, if it still does, and start another preset."""
        if self._services.server.status(probe=False).state not in (State.STOPPED, State.FAILED):
            left = self.stop()
            if left:
                return left
        return self.start(preset)

    def restart(self, name: str) -> str | None:
        """Stop what runs, if it still does, and start the same preset again, as it is written now."""
        found = self._services.catalog().presets.get(name) or self._services.server.preset()
        if found is None:
            raise NothingError(
                f"{name} cannot be started again", "no preset of that name is left", "select another one"
            )
        return self.switch(found)

    def run(self, kind: str, preset: Preset) -> str | None:
        """Begin an A/B run; it goes on by itself."""
        self._say(f"planning the {kind} run")
        self._services.start_run(kind, preset)
        return None

    def stop_run(self) -> str | None:
        """End the A/B run; the lab puts back what ran before."""
        self._say("stopping the A/B run; what ran before is started again")
        self._services.stop_run()
        return None

    def adopt(self, run_id: str, arm: str) -> str | None:
        """Write the winner as a preset."""
        path = self._services.adopt(run_id, arm)
        return f"wrote {path}"
