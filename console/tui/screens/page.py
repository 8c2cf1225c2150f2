"""A screen over the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding
from textual.screen import Screen

from console.tui.commands import Bindings, bindings_of_pages
from console.tui.widgets.footer import KeyLine
from console.tui.widgets.lines import Line

HELP = "help"


class Page(Screen[None]):
    """A screen over the dashboard; from one a key leads to every other.

    Args:
        page: the command that opens it, whose key closes it again.
    """

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[Bindings] = [Binding("escape,q", "close", show=False), *bindings_of_pages()]

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page

    def tell(self) -> None:
        """Something may have changed."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """What went on while another one was in front."""
        self.call_after_refresh(self.tell)

    def whole(self) -> Sequence[Line]:
        """All lines, also those out of view; none where the screen is a picture."""
        return ()

    def note(self, text: str) -> None:
        """Something to know, in place of the keys; an empty text brings them back."""
        self.query_one("#keys", KeyLine).note(text)

    def say(self, text: str) -> None:
        """The same until the next key, some seconds at most."""
        if tell := getattr(self.app, "tell", None):
            tell(text)

    async def on_key(self) -> None:
        """Whatever it does: what stood in place of the keys was read."""
        await self.app.run_action("app.forget_told")

    def action_close(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)
