"""The cards: one row each, a lost one with its reason, none at all as one sentence."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from console.gpu.sample import GpuReport, GpuSample
from console.tui import drawings, figures
from console.tui.preset_lines import cut
from console.tui.stories import wrapped
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Lines

_EXPECTED = 2
"""Rows that are there before the first look: two cards are what the console is for, and nothing must jump."""


class CardRow(Form):
    """One card."""

    def __init__(self, index: int) -> None:
        super().__init__(drawings.CARD, other=drawings.LOST_CARD, id=f"card{index}")

    def tell(self, sample: GpuSample) -> None:
        """Its figures, or why there are none."""
        self.use_other(sample.problem is not None)
        wide = (self.size.width or self.app.size.width) >= 120
        bar = self["bar"].place
        for name, text, tone in figures.card(sample, bar=bar.width if bar else 0, wide=wide):
            self.show(name, text, tone)


class Cards(Vertical):
    """All rows under one rule."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._rule = Form(drawings.CARDS_RULE, id="cards-rule")
        self._none = Lines(id="no-cards")
        self.rows = [CardRow(i) for i in range(_EXPECTED)]
        """One a card."""

    def compose(self) -> ComposeResult:
        # Before the first look.
        for i, row in enumerate(self.rows):
            row.tell(GpuSample(index=i))
        self._rule.show("title", "cards", "title")
        yield self._rule
        yield self._none
        yield from self.rows

    def set_old(self, old: bool) -> None:
        """Mark all figures as no longer true, or as fresh again."""
        for row in self.rows:
            row.set_old(old)

    def tell(self, report: GpuReport) -> None:
        """Show a look at the cards."""
        for i in range(len(self.rows), len(report.cards)):
            self.rows.append(CardRow(i))
            self.mount(self.rows[-1])
        self.set_class(not report.cards, "-none")
        self._rule.show("title", figures.cards_title(report), "title")
        if not report.cards:
            width = (self.size.width or self.app.size.width) - 2
            rows = cut(wrapped(report.problem or "no card was found", width, "dim"), _EXPECTED)
            self._none.show([((" ", ""), *row) for row in rows])
        for i, row in enumerate(self.rows):
            row.display = i < len(report.cards)
            if row.display:
                row.tell(report.cards[i])
