"""A form: a drawing that never changes, and small fields over it that do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from textual.app import ComposeResult
from textual.events import Resize
from textual.geometry import NULL_OFFSET, NULL_SPACING, Region, Size
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from console.tui.widgets.drawing import Drawing, Place, in_rule, widest

_LINES = re.compile(r"[─│┬┴┼├┤]+")
TONES = ("dim", "good", "warn", "bad", "strong", "title", "badge")


class Field(Widget):
    """One value at one place. The reactive is the printed text: equal text is no repaint and no byte."""

    text: reactive[str] = reactive("", init=False)

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self.place: Place | None = None
        self._tone = ""

    @property
    def tone(self) -> str:
        """What the value means: one of `TONES`, or nothing."""
        return self._tone

    @tone.setter
    def tone(self, tone: str) -> None:
        if tone != self._tone:
            self.set_class(False, f"-{self._tone}")
            self.set_class(bool(tone), f"-{tone}")
            self._tone = tone

    def render_line(self, y: int) -> Strip:  # noqa: ARG002
        """The text, exactly as wide as its place; past `render`, since a busy screen has dozens of these."""
        text = self.place.fit(self.text) if self.place else self.text
        return Strip([Segment(text, self.visual_style.rich_style)], len(text))


class _AtPlaces(Layout):
    """Puts every field where the form's drawing has it."""

    name = "places"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:  # noqa: ARG002
        return [
            WidgetPlacement(Region(place.x, place.y, place.width, 1), NULL_OFFSET, NULL_SPACING, child)
            for child in children
            if isinstance(child, Field) and (place := child.place) is not None
        ]


_LAYOUT = _AtPlaces()


class Form(Widget):
    """A drawing with its fields; of several drawings it takes the widest that fits.

    Narrow fields keep a changed value cheap: Textual sends a changed widget whole, so a value of nine cells is nine
    cells on the line, not the row in which it stands.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"form--line", "form--title", "form--label"}

    def __init__(self, drawings: Sequence[Drawing], *, id: str, other: Sequence[Drawing] = ()) -> None:
        super().__init__(id=id)
        self._sets = (drawings, other)
        self._drawings = drawings
        self._drawing = drawings[0]
        self._fields = {name: Field(name) for drawing in (*drawings, *other) for name in drawing.places}
        self._place()

    @property
    def layout(self) -> Layout:
        """The drawing decides, not the stylesheet."""
        return _LAYOUT

    def compose(self) -> ComposeResult:
        # Forms are as wide as the screen: taking the right drawing now spares a second layout and its repaint.
        self._drawing = widest(self._drawings, self.app.size.width)
        self._place()
        yield from self._fields.values()

    @property
    def shown(self) -> list[Field]:
        """The fields for which the current drawing has a place."""
        return [field for field in self._fields.values() if field.place is not None]

    def __getitem__(self, name: str) -> Field:
        return self._fields[name]

    def show(self, name: str, text: str, tone: str = "") -> None:
        """Print a value; what the current drawing has no place for is kept for the next one."""
        field = self._fields[name]
        field.text = text
        field.tone = tone

    def use_other(self, other: bool) -> None:
        """Show the second set of drawings instead of the first."""
        self._drawings = self._sets[other]
        self._fit(self.size.width)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """As high as the drawing that fits the width."""
        return widest(self._drawings, width).height

    def on_resize(self, event: Resize) -> None:
        """Take the drawing for the new width."""
        self._fit(event.size.width)

    def _fit(self, width: int) -> None:
        # Before the first layout a widget has no size; forms are as wide as the screen.
        drawing = widest(self._drawings, width or self.app.size.width)
        if drawing is not self._drawing:
            self._drawing = drawing
            self._place()
            # Textual keeps arrangements by size, and knows nothing of drawings.
            self._clear_arrangement_cache()
            self.refresh(layout=True)

    def _place(self) -> None:
        for name, field in self._fields.items():
            field.place = self._drawing.places.get(name)
            field.display = field.place is not None

    def render_line(self, y: int) -> Strip:
        """A line of the drawing: rules and bars, titles in rules, labels elsewhere."""
        text = self._drawing.line(y, self.size.width)
        line, title, label = (self.get_visual_style(f"form--{part}").rich_style for part in ("line", "title", "label"))
        segments, at = [], 0
        for found in _LINES.finditer(text):
            words = title if in_rule(text[:at]) else label
            segments += [Segment(text[at : found.start()], words), Segment(found[0], line)]
            at = found.end()
        return Strip([*segments, Segment(text[at:], title if in_rule(text[:at]) else label)], self.size.width)
