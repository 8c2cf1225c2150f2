"""The keys at the bottom: one line of text, sent again only when it changed."""

from __future__ import annotations

from collections.abc import Iterable

from textual.events import Resize

from console.tui.widgets.lines import Lines, Span

Key = tuple[str, str, bool, int]
"""Key, word, whether it makes sense now, rank: where not all fit, the highest goes first."""


class KeyLine(Lines):
    """Keys and their words; what makes no sense now is dim."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._keys: tuple[Key, ...] = ()
        self._note = ""

    def tell(self, keys: Iterable[Key]) -> None:
        """Replace them."""
        self._keys = tuple(keys)
        self._draw()

    def note(self, text: str) -> None:
        """Something to know, in their place; an empty text brings them back."""
        self._note = text
        self._draw()

    def on_resize(self, _: Resize) -> None:
        """Another width takes other keys."""
        self._draw()

    def _draw(self) -> None:
        if self._note:
            self.show([((" ▸ ", "strong"), (self._note, "warn"))])
            return
        keys = list(self._keys)
        while sum(len(key) + len(word) + 3 for key, word, _, _ in keys) - 1 > self.size.width and keys[-1:]:
            last = max(rank for *_, rank in keys)
            if last == 0:
                break
            keys.remove(next(key for key in reversed(keys) if key[3] == last))
        spans: list[Span] = []
        for key, word, sensible, _ in keys:
            spans += [("  " if spans else " ", ""), (key, "strong" if sensible else "dim")]
            spans.append((f" {word}", "" if sensible else "dim"))
        self.show([tuple(spans)])
