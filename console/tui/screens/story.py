"""What stands in place of the figures while there are none: how far a start is, or why there is no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.server.status import ServerStatus, State
from console.tui import stories
from console.tui.widgets.lines import Line, line
from console.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from console.presets import Preset

_LEAST_ROWS, _LEAST_LOW_ROWS = 8, 5


class Story(Panel):
    """One panel over the whole width."""

    def tell_status(self, status: ServerStatus, back: Preset | None, *, unreachable: bool) -> bool:
        """Show what there is to tell; whether there is anything.

        Args:
            status: the server.
            back: what was ready before.
            unreachable: a watched server does not answer.
        """
        width = self.app.size.width - 3
        if unreachable:
            self.tell("nothing to watch", stories.unreachable_story(status, width))
        elif status.restart_in_s is not None and status.diagnosis is not None:
            self.tell(stories.trouble_title(status), self._diagnosis(status, back, width), stories.again_aside(status))
        elif status.state is State.STARTING:
            body = stories.start_story(status, width, self.body_height or _LEAST_ROWS)
            self.tell(stories.start_title(status), body, stories.start_aside(status))
        elif status.state not in (State.FAILED, State.STALLED):
            return False
        elif status.diagnosis is None:
            looking = line("looking for the reason in its log …", "dim")
            self.tell(stories.trouble_title(status), [looking], stories.trouble_aside(status))
        else:
            self.tell(
                stories.trouble_title(status), self._diagnosis(status, back, width), stories.trouble_aside(status)
            )
        return True

    def _diagnosis(self, status: ServerStatus, back: Preset | None, width: int) -> list[Line]:
        assert status.diagnosis is not None
        height = max(self.body_height, _LEAST_LOW_ROWS if self.screen.has_class("-low") else _LEAST_ROWS)
        return stories.diagnosis_story(status.diagnosis, width, height, back=back.name if back else None)
