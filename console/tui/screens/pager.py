"""Lines over the whole screen: the log, an A/B run in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.screen import Screen

from console.tui.widgets.footer import KeyLine
from console.tui.widgets.lines import Line
from console.tui.widgets.panel import Panel

_KEYS = (
    ("esc", "back", True, 0),
    ("↑↓", "line", True, 0),
    ("pgup pgdn", "page", True, 0),
    ("home end", "first, last", True, 0),
)
Content = Callable[[int], tuple[str, Sequence[Line]]]
"""Width in cells → title and lines."""


class Pager(Screen[None]):
    """A window on lines that may grow; at their end it follows them, elsewhere it stands still.

    Args:
        content: asked whenever something changed.
        follow: begin at the end.
        simulated: the figures are the stand-in engine's.
    """

    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("escape,q,l,v,question_mark", "close", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home,g", "move(-1000000)", show=False),
        Binding("end,G", "move(1000000)", show=False),
    ]

    def __init__(self, content: Content, *, follow: bool, simulated: bool) -> None:
        super().__init__()
        self._panel = Panel("", id="page")
        self._keys = KeyLine(id="keys")
        self._content = content
        self._top: int | None = None if follow else 0
        self._simulated = simulated
        self._lines: Sequence[Line] = ()

    def compose(self) -> ComposeResult:
        yield self._panel
        yield self._keys

    def on_mount(self) -> None:
        """The keys never change here."""
        self._keys.tell(_KEYS)

    def on_resize(self, _: Resize) -> None:
        """Wrapped anew."""
        self.call_after_refresh(self.tell)

    def tell(self) -> None:
        """Something may have changed."""
        panel = self._panel
        title, self._lines = self._content(panel.body_width)
        last = max(0, len(self._lines) - panel.body_height)
        top = last if self._top is None else min(self._top, last)
        shown = self._lines[top : top + panel.body_height]
        where = "end" if top == last else f"{top + len(shown)} of {len(self._lines)}"
        panel.tell(title, shown, f"{where}{' · SIMULATED' if self._simulated else ''}")

    def action_close(self) -> None:
        """Back to the dashboard."""
        self.dismiss(None)

    def action_page(self, by: int) -> None:
        """A page less one line."""
        self.action_move(by * max(1, self._panel.body_height - 1))

    def action_move(self, by: int) -> None:
        """Some lines; at the end it follows again."""
        last = max(0, len(self._lines) - self._panel.body_height)
        top = max(0, min((last if self._top is None else self._top) + by, last))
        self._top = None if top == last and last else top
        self.tell()
