"""A pointer on the dashboard: choose a figure, and read below what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.events import Key, Resize
from textual.screen import ModalScreen

from console.tui import explanations
from console.tui.commands import Bindings
from console.tui.stories import labelled
from console.tui.widgets.form import Field
from console.tui.widgets.lines import Line, Lines

if TYPE_CHECKING:
    from console.tui.screens.dashboard import Dashboard

_WIDEST = 100
_KEYS = (("←↓↑→ tab", "strong"), (" another figure   ", "dim"), ("esc", "strong"), (" back", "dim"))
_OFF_ROW = 20
"""Cells that a row up or down counts when the pointer moves to the side: it keeps to its row where it can."""
_CELL = 2
"""A cell is about twice as high as wide."""


def explicable(dashboard: Dashboard) -> list[tuple[Field, explanations.Explanation]]:
    """The figures on the screen that can be explained, in reading order."""
    *_, reading = dashboard.forms
    found = [
        (field, about)
        for form in dashboard.forms
        if form.display
        for field in form.shown
        if (about := explanations.explanation(field.name or "", card=form is not reading))
    ]
    return sorted(found, key=lambda one: (one[0].region.y, one[0].region.x))


class Explain(ModalScreen[None]):
    """Arrows move the pointer to the next figure in their direction, tab to the next one in order."""

    BINDINGS: ClassVar[Bindings] = [
        Binding("escape,q,i,enter", "close", show=False),
        Binding("ctrl+c", "close", show=False),
        Binding("up,k", "move(0, -1)", show=False),
        Binding("down,j", "move(0, 1)", show=False),
        Binding("left,h", "move(-1, 0)", show=False),
        Binding("right,l", "move(1, 0)", show=False),
        Binding("tab", "step(1)", show=False),
        Binding("shift+tab", "step(-1)", show=False),
    ]

    def __init__(self, dashboard: Dashboard) -> None:
        super().__init__()
        self._dashboard = dashboard
        self._at: Field | None = None
        self._idle_key = ""
        """The key pressed last, if it does nothing here."""

    def compose(self) -> ComposeResult:
        with Vertical(id="explain"):
            yield Lines(id="explain-body")

    def on_mount(self) -> None:
        """The pointer begins where it was left, else on the hit rate."""
        fields = explicable(self._dashboard)
        wanted = [field for field, _ in fields if field.name == "hit"]
        self._point(wanted[0] if wanted else fields[0][0] if fields else None)

    def on_resize(self, _: Resize) -> None:
        """The figures have moved; one that is drawn no more is left."""
        self.call_after_refresh(self.tell)

    def tell(self) -> None:
        """Window and n of the figure have changed."""
        fields = explicable(self._dashboard)
        if self._at not in [field for field, _ in fields]:
            self._point(fields[0][0] if fields else None)
            return
        found, field = next((found, field) for field, found in fields if field is self._at)
        self.query_one("#explain-body", Lines).show(self._text(found, field))

    def _text(self, found: explanations.Explanation, field: Field) -> list[Line]:
        width = min(_WIDEST, self.app.size.width - 4)
        over = explanations.span(found, field.name or "", self._dashboard.reading)
        return [
            ((f"{found.title}  ", "title"), (field.text.strip(), "strong")),
            *labelled("is", found.what, width),
            *labelled("from", found.source, width),
            *labelled("over", over, width),
            ((self._idle_key, "warn"), *_KEYS),
        ]

    def on_key(self, event: Key) -> None:
        """A key of a page, say, does nothing here: then the last line says so, beside those that do."""
        known = event.key in self._bindings.key_to_bindings or event.key in self.app._bindings.key_to_bindings
        sign = event.character if event.is_printable and event.character else event.key
        self._idle_key = "" if known else f"{sign} does nothing here   "
        self.tell()

    def _point(self, field: Field | None) -> None:
        if self._at is not None:
            self._at.point(False)
        self._at = field
        if field is not None:
            field.point(True)
            self.tell()

    def action_move(self, right: int, down: int) -> None:
        """To the nearest figure in that direction."""
        if self._at is None:
            return
        x, y = self._at.region.x, self._at.region.y

        def far(other: Field) -> float:
            dx, dy = other.region.x - x, other.region.y - y
            ahead, aside = (dx * right, abs(dy) * _OFF_ROW) if right else (dy * down * _CELL, abs(dx))
            return ahead + aside if ahead > 0 else float("inf")

        others = [field for field, _ in explicable(self._dashboard) if field is not self._at]
        best = min(others, key=far, default=None)
        if best is not None and far(best) < float("inf"):
            self._point(best)

    def action_step(self, by: int) -> None:
        """The next figure in reading order."""
        fields = [field for field, _ in explicable(self._dashboard)]
        if self._at in fields:
            self._point(fields[(fields.index(self._at) + by) % len(fields)])

    def action_close(self) -> None:
        """Back to the dashboard."""
        self._point(None)
        self.dismiss(None)
