"""A graph of bars in eighths of a cell, now at its right edge; only the columns that changed are sent."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from console import units
from console.tui.graphs import Picture, eighths
from console.tui.tones import tones
from console.tui.widgets.drawing import on_a_row

_RISING = " ▁▂▃▄▅▆▇█"
_NEAR = 4
"""So few columns that did not change are sent along: leaving them out would cost more."""
_REVERSE = Style(reverse=True)


class Graph(Widget):
    """A title and bars below it; with a second series the bars stand and hang from the middle."""

    def __init__(self) -> None:
        super().__init__()
        self._picture = Picture("", (), 1.0)

    @property
    def columns(self) -> int:
        """How many columns of bars fit."""
        return self.size.width

    def show(self, picture: Picture) -> None:
        """Replace the picture; repaints the columns that differ."""
        old, self._picture = self._picture, picture
        if old == picture:
            return
        height, width = self.size.height, self.size.width
        if old.top != picture.top or len(old.up) != len(picture.up) or (old.down is None) != (picture.down is None):
            self.refresh()
            return
        regions = [Region(0, 0, width, 1)] if old.title != picture.title else []
        pairs = enumerate(zip(_columns(old), _columns(picture), strict=True))
        for start, stop in _runs([x for x, (before, after) in pairs if before != after]):
            regions.append(Region(start, 1, stop - start, max(1, height - 1)))
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """The title, or one row of bars."""
        width, picture = self.size.width, self._picture
        if y == 0:
            text = units.clip(on_a_row(picture.title), width).ljust(width)
            return Strip([Segment(text, tones(self.app.theme)["dim"])], width)
        rows = self.size.height - 1
        if picture.down is None:
            text = _standing(eighths(picture.up, picture.top, rows), rows - y)
            return self._row(text, "up")
        upper = (rows + 1) // 2
        if y <= upper:
            return self._row(_standing(eighths(picture.up, picture.top, upper), upper - y), "up")
        lower = rows - upper
        return self._hanging(eighths(picture.down, picture.top, max(1, lower)), y - upper - 1)

    def _row(self, text: str, part: str) -> Strip:
        width = self.size.width
        return Strip([Segment(text[:width].ljust(width), tones(self.app.theme)[part])], width)

    def _hanging(self, heights: tuple[int | None, ...], above: int) -> Strip:
        """Bars that hang down. There are no signs for these in most fonts: the rest of the cell is drawn, reversed."""
        width = self.size.width
        style = tones(self.app.theme)["down"]
        reversed_style = style + _REVERSE
        segments = []
        for height in heights[:width]:
            filled = 0 if height is None else max(0, min(8, height - above * 8))
            if 0 < filled < 8:
                segments.append(Segment(_RISING[8 - filled], reversed_style))
            else:
                segments.append(Segment("█" if filled else " ", style))
        segments.append(Segment(" " * max(0, width - len(heights)), style))
        return Strip(segments, width).simplify()


def _standing(heights: tuple[int | None, ...], below: int) -> str:
    """One row of bars that stand; `below` rows of theirs are below it."""
    return "".join(" " if height is None else _RISING[max(0, min(8, height - below * 8))] for height in heights)


def _columns(picture: Picture) -> list[tuple[float | None, float | None]]:
    """Both series, column by column."""
    return list(zip(picture.up, picture.down or (None,) * len(picture.up), strict=True))


def _runs(changed: list[int]) -> list[tuple[int, int]]:
    """Columns as stretches from one up to another, those that are near each other in one."""
    found: list[tuple[int, int]] = []
    for x in changed:
        if found and x - found[-1][1] <= _NEAR:
            found[-1] = (found[-1][0], x + 1)
        else:
            found.append((x, x + 1))
    return found
