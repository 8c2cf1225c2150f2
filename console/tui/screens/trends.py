"""The graphs over the whole screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding

from console.tui.commands import Bindings
from console.tui.graphs import MEASURES, MORE_MEASURES
from console.tui.screens.page import Page
from console.tui.widgets.footer import KeyLine
from console.tui.widgets.graphs import Graphs

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_SPANS_S = (300.0, 900.0, 3600.0)
_ROOMY = 100, 30
_KEYS = (("esc", "back", True, 0), ("+ -", "longer, shorter", True, 0))


class Trends(Page):
    """What is drawn on a roomy dashboard, larger and over other spans."""

    BINDINGS: ClassVar[Bindings] = [
        Binding("plus,equals_sign", "span(1)", show=False),
        Binding("minus", "span(-1)", show=False),
    ]

    # Textual declares these as plain attributes of a screen, so they cannot be marked as the class's own.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_ROOMY[0], "-wide")]  # noqa: RUF012

    def __init__(self, app: ConsoleApp) -> None:
        super().__init__("trends")
        roomy = app.size.width >= _ROOMY[0] and app.size.height >= _ROOMY[1]
        self._graphs = Graphs(
            (*MEASURES, *MORE_MEASURES) if roomy else MEASURES,
            id="trends",
            aside="SIMULATED" if app.simulated else "",
        )
        self._keys = KeyLine(id="keys")
        self._shows = app

    def compose(self) -> ComposeResult:
        yield self._graphs
        yield self._keys

    def on_mount(self) -> None:
        """What the console has seen since it came up."""
        self._keys.tell(_KEYS)
        self.tell()

    def tell(self) -> None:
        """A second has passed."""
        self._graphs.tell(self._shows.rings.__getitem__, self._shows.dashboard.report)

    def action_span(self, by: int) -> None:
        """A longer or a shorter time."""
        at = _SPANS_S.index(self._graphs.span_s)
        self._graphs.span_s = _SPANS_S[max(0, min(len(_SPANS_S) - 1, at + by))]
        self._graphs.draw()
