"""Lines of toned text; only the lines that changed are sent."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from console.tui.tones import tones
from console.tui.widgets.drawing import on_a_row

Span = tuple[str, str]
"""Text and its tone: a word of `console.tui.tones`, or nothing."""
Line = tuple[Span, ...]


def line(text: str, tone: str = "") -> Line:
    """A line of one tone."""
    return ((text, tone),)


def ruled(title: str, width: int) -> Line:
    """A rule with a title."""
    return (("─ ", "line"), (title, "title"), (" " + "─" * max(0, width - cell_len(title) - 3), "line"))


class Lines(Widget):
    """A block of lines, cut at its edges; the same line again costs nothing."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()

    @property
    def shown(self) -> tuple[Line, ...]:
        """What stands there now."""
        return self._lines

    def show(self, lines: Sequence[Line]) -> None:
        """Replace the lines; repaints those that differ."""
        old, self._lines = self._lines, tuple(lines)
        if len(old) != len(self._lines) and self.styles.height is not None and self.styles.height.is_auto:
            self.refresh(layout=True)
            return
        changed = [
            y
            for y in range(max(len(old), len(self._lines)))
            if (old[y] if y < len(old) else None) != (self._lines[y] if y < len(self._lines) else None)
        ]
        if changed:
            self.refresh(*(Region(0, y, max(1, self.size.width), 1) for y in changed))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002
        """As many rows as there are lines."""
        return len(self._lines)

    def render_line(self, y: int) -> Strip:
        """One row, padded or cut to the width."""
        width = self.size.width
        styles = tones(self.app.theme)
        segments, left = [], width
        for said, tone in self._lines[y] if y < len(self._lines) else ():
            text = on_a_row(said)
            if cell_len(text) > left:
                text = set_cell_size(text, max(0, left - 1)) + "…" if left else ""
            left -= cell_len(text)
            segments.append(Segment(text, styles[tone]))
        segments.append(Segment(" " * left, styles[""]))
        return Strip(segments, width)
