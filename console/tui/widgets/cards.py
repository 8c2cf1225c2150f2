"""The cards: one row each, a lost one with its reason, none at all as one sentence."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical

from console.gpu.sample import GpuReport, GpuSample
from console.tui import drawings, figures
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Lines, line

_EXPECTED = 2
"""Rows that are there before the first look: two cards are what the console is for, and nothing must jump."""


class CardRow(Form):
    """One card."""

    def __init__(self, index: int) -> None:
        super().__init__(drawings.CARD, other=drawings.LOST_CARD, id=f"card{index}")

    def tell(self, sample: GpuSample) -> None:
        """Its figures, or why there are none."""
        self.use_other(sample.problem is not None)
        wide = self.size.width >= 120
        bar = self["bar"].place
        for name, text, tone in figures.card(sample, bar=bar.width if bar else 0, wide=wide):
            self.show(name, text, tone)


class Cards(Vertical):
    """All rows under one rule."""

    def compose(self) -> ComposeResult:
        yield Form(drawings.CARDS_RULE, id="cards-rule")
        yield Lines(id="no-cards")
        for i in range(_EXPECTED):
            yield CardRow(i)

    def on_mount(self) -> None:
        """Before the first look."""
        for i, row in enumerate(self.query(CardRow)):
            row.tell(GpuSample(index=i))
        self.query_one("#cards-rule", Form).show("title", "cards", "title")

    def tell(self, report: GpuReport) -> None:
        """Show a look at the cards."""
        rows = list(self.query(CardRow))
        for i in range(len(rows), len(report.cards)):
            rows.append(CardRow(i))
            self.mount(rows[-1])
        none = not report.cards
        self.set_class(none, "-none")
        self.query_one("#cards-rule", Form).show("title", figures.cards_title(report), "title")
        if none:
            problem = report.problem or "no card was found"
            self.query_one("#no-cards", Lines).show([((" ", ""), (problem, "dim")), line("")])
        for i, row in enumerate(rows):
            row.display = i < len(report.cards)
            if row.display and row.is_attached:
                row.tell(report.cards[i])
