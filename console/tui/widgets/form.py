"""A form: a drawing that never changes, and values over it that do."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.segment import Segment
from textual.events import Resize
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from console.tui.tones import POINTED, tones
from console.tui.widgets.drawing import Drawing, Place, in_rule, on_a_row, widest

_LINES = re.compile(r"[─│┬┴┼├┤]+")


class Field:
    """One value at one place of a form; no widget: a dashboard has eighty."""

    def __init__(self, form: Form, name: str) -> None:
        self._form = form
        self.name = name
        self.place: Place | None = None
        self.text = ""
        self.tone = ""
        """What the value means; nothing, or a word of `console.tui.tones`."""
        self.pointed = False

    @property
    def region(self) -> Region:
        """Where it is on the screen."""
        place = self.place or Place(0, 0, 0, left=True, ruled=False)
        return Region(self._form.region.x + place.x, self._form.region.y + place.y, place.width, 1)

    def point(self, pointed: bool) -> None:
        """Make it stand out, or not any more."""
        self.pointed = pointed
        self._form.repaint(self)


class Form(Widget):
    """A drawing with its values; of several drawings it takes the widest that fits.

    A value that changes repaints its own cells, and equal text nothing.
    """

    def __init__(self, drawings: Sequence[Drawing], *, id: str, other: Sequence[Drawing] = ()) -> None:
        super().__init__(id=id)
        self._sets = (drawings, other)
        self._drawings = drawings
        self._drawing = drawings[0]
        self._old = False
        self._fields = {name: Field(self, name) for drawing in (*drawings, *other) for name in drawing.places}
        self._place()

    def on_mount(self) -> None:
        """Forms are as wide as the screen: taking the right drawing now spares a second layout and its repaint."""
        self._fit(0)

    @property
    def shown(self) -> list[Field]:
        """The fields for which the current drawing has a place."""
        return [field for field in self._fields.values() if field.place is not None]

    def __getitem__(self, name: str) -> Field:
        return self._fields[name]

    def room(self, name: str) -> int:
        """Cells that the current drawing has for a value."""
        place = self._fields[name].place
        return place.width if place else 0

    def show(self, name: str, text: str, tone: str = "") -> None:
        """Print a value; what the current drawing has no place for is kept for the next one."""
        field = self._fields[name]
        if (field.text, field.tone) != (text, tone):
            field.text, field.tone = text, tone
            self.repaint(field)

    def repaint(self, field: Field) -> None:
        """The cells of one value."""
        if place := field.place:
            self.refresh(Region(place.x, place.y, place.width, 1))

    @property
    def old(self) -> bool:
        """Whether the values are marked as no longer true."""
        return self._old

    def set_old(self, old: bool) -> None:
        """Mark all values as no longer true, or as fresh again."""
        if old != self._old:
            self._old = old
            self.refresh()

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
            self.refresh(layout=True)

    def _place(self) -> None:
        for name, field in self._fields.items():
            field.place = self._drawing.places.get(name)
        rows: dict[int, list[tuple[Place, Field]]] = {}
        for field in self._fields.values():
            if field.place:
                rows.setdefault(field.place.y, []).append((field.place, field))
        self._rows = {y: sorted(row, key=lambda one: one[0].x) for y, row in rows.items()}

    def render_line(self, y: int) -> Strip:
        """A line of the drawing with the values in it."""
        width = self.size.width
        text = self._drawing.line(y, width)
        styles = tones(self.app.theme)
        segments: list[Segment] = []
        at = 0
        for place, field in self._rows.get(y, ()):
            segments += self._fixed(text, at, place.x)
            tone = "old" if self._old else field.tone
            style = styles[tone] + POINTED if field.pointed else styles[tone]
            segments.append(Segment(place.fit(on_a_row(field.text)), style))
            at = place.x + place.width
        segments += self._fixed(text, at, width)
        return Strip(segments, width).crop(0, width)

    def _fixed(self, text: str, start: int, stop: int) -> list[Segment]:
        """A part of the drawing: rules and bars, titles in rules, labels elsewhere."""
        styles = tones(self.app.theme)
        segments: list[Segment] = []
        at = start
        for found in _LINES.finditer(text, start, stop):
            words = styles["title" if in_rule(text[:at]) else "label"]
            segments += [Segment(text[at : found.start()], words), Segment(found[0], styles["line"])]
            at = found.end()
        if at < stop:
            segments.append(Segment(text[at:stop], styles["title" if in_rule(text[:at]) else "label"]))
        return [segment for segment in segments if segment.text]
