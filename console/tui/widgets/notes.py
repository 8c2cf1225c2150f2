"""What is going on, wrong or said, in a few rows above the keys: the newest of what the sources tell."""

from __future__ import annotations

from console.tui.preset_lines import cut
from console.tui.stories import wrapped
from console.tui.widgets.lines import Lines

_ROWS = 3


class Notes(Lines):
    """One text a source; the newest one is shown, and what it hid comes back when it is taken away."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._notes: dict[str, str] = {}

    def tell(self, source: str, text: str) -> None:
        """What a source tells; an empty text takes it back."""
        before = dict(self._notes)
        self._notes.pop(source, None)
        if text:
            self._notes[source] = text
        if before != self._notes:
            self.draw()

    def draw(self) -> None:
        """Wrapped for the width of the screen."""
        newest = list(self._notes.values())[-1:]
        rows = cut(wrapped(newest[0], self.app.size.width - 4, "warn") if newest else [], _ROWS)
        self.show([((" ▸ " if i == 0 else "   ", "strong"), *row) for i, row in enumerate(rows)])
