"""A titled block of lines: a rule with the title, the text below it, and a bar on its left where it joins another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from rich.cells import cell_len
from textual.events import Resize

from console.tui.widgets.lines import Line, Lines

Join = Literal["", "┬", "┼", "├"]


class Panel(Lines):
    """A rule and a body that fills the rest; a body longer than the panel shows its beginning or its end.

    Args:
        title: what stands in the rule.
        join: how the rule meets the bar on the left; empty without a bar.
        end: show the end of a body that does not fit, as a log does.
    """

    def __init__(self, title: str, *, id: str, join: Join = "", end: bool = False) -> None:
        super().__init__(id=id)
        self._title = title
        self._aside = ""
        self._join: Join = join
        self._end = end
        self._body: tuple[Line, ...] = ()
        self._mark = -1

    @property
    def body_height(self) -> int:
        """Rows of the body that fit."""
        return max(0, self.size.height - 1)

    @property
    def body_width(self) -> int:
        """Cells of a row of the body."""
        return max(0, self.size.width - (2 if self._join else 1))

    def join(self, join: Join) -> None:
        """Meet another neighbour from now on."""
        if join != self._join:
            self._join = join
            self._draw()

    def tell(self, title: str, body: Sequence[Line], aside: str = "", mark: int = -1) -> None:
        """Replace title, body and what stands at the right end of the rule; a sign stands before row `mark`."""
        self._title, self._body, self._aside, self._mark = title, tuple(body), aside, mark
        self._draw()

    def on_resize(self, _: Resize) -> None:
        """Cut the body anew."""
        self._draw()

    def _draw(self) -> None:
        height, width = self.body_height, self.size.width
        body = self._body[-height:] if self._end and height else self._body[:height]
        margin: Line = (("│", "line"), (" ", "")) if self._join else ((" ", ""),)
        rows = [*body, *[()] * (height - len(body))] if self._join else body
        margins = [(("▸", "strong"),) if i == self._mark else margin for i in range(len(rows))]
        self.show([self._rule(width), *((*before, *row) for before, row in zip(margins, rows, strict=True))])

    def _rule(self, width: int) -> Line:
        start = f"{self._join}─ " if self._join else "─ "
        aside = f" {self._aside} ─" if self._aside else ""
        gap = width - cell_len(start) - cell_len(self._title) - 1 - cell_len(aside)
        if gap < 1:
            aside, gap = "", max(0, width - cell_len(start) - cell_len(self._title) - 1)
        return (
            (start, "line"),
            (self._title, "title"),
            (" " + "─" * gap, "line"),
            (aside[:-1], "dim"),
            (aside[-1:], "line"),
        )
