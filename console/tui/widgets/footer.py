"""The keys at the bottom: one line of text, sent again only when it changed."""

from __future__ import annotations

from collections.abc import Iterable

from console.tui.widgets.lines import Lines, Span


class KeyLine(Lines):
    """Keys and their words; what makes no sense now is dim."""

    def tell(self, keys: Iterable[tuple[str, str, bool]]) -> None:
        """Replace them."""
        spans: list[Span] = [(" ", "")]
        for key, word, sensible in keys:
            spans += [(key, "strong" if sensible else "dim"), (f" {word}  ", "" if sensible else "dim")]
        self.show([tuple(spans)])
