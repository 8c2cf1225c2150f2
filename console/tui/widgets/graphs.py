"""Several graphs in a grid under one rule."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container, Grid
from textual.events import Resize

from console.tui.graphs import Kind, Picture, of_card, picture, spanned, step_for
from console.tui.widgets.graph import Graph
from console.tui.widgets.lines import Lines, ruled

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.series import Series

_CARDS = 2
"""Cards that have graphs: those for which the console is made."""


class Graphs(Container):
    """Measures first, then two graphs a card; told once a second.

    Args:
        measures: the measures to draw.
        aside: what stands at the right end of the rule.
    """

    def __init__(self, measures: Sequence[Kind], *, id: str, aside: str = "") -> None:
        super().__init__(id=id)
        self._measures = tuple(measures)
        self._rule = Lines(id=f"{id}-rule")
        self._graphs = [Graph() for _ in range(len(self._measures) + 2 * _CARDS)]
        self._aside = aside
        self._told: tuple[Callable[[str], Series], GpuReport | None] | None = None
        self.span_s = 300.0
        """What the graphs go over, about."""

    def compose(self) -> ComposeResult:
        yield self._rule
        with Grid():
            yield from self._graphs

    def on_resize(self, _: Resize) -> None:
        """Other columns."""
        self.call_after_refresh(self.draw)

    def tell(self, rings: Callable[[str], Series], report: GpuReport | None) -> None:
        """A second has passed."""
        self._told = (rings, report)
        self.draw()

    def beside(self, aside: str) -> None:
        """Another text at the right end of the rule."""
        if aside != self._aside:
            self._aside = aside
            self.draw()

    def draw(self) -> None:
        """Every graph for the size it has."""
        columns = self._graphs[0].columns
        if not columns or self._told is None:
            return
        rings, report = self._told
        step = step_for(self.span_s, columns)
        for graph, kind in zip_longest(self._graphs, self._kinds(report)):
            graph.show(picture(kind, rings, time.monotonic(), columns, step) if kind else Picture("", (), 1.0))
        aside = f" {self._aside} " if self._aside else ""
        self._rule.show([(*ruled(spanned(columns, step), self.size.width - len(aside)), (aside, "dim"))])

    def _kinds(self, report: GpuReport | None) -> list[Kind]:
        cards = report.cards[:_CARDS] if report else ()
        total = {card.index: card.vram_total_bytes for card in cards}
        return [*self._measures, *(kind for index in total for kind in of_card(index, total[index]))]
