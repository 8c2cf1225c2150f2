"""Figures that tick are painted together, once a second: one pass of the compositor instead of three."""

from __future__ import annotations

from collections.abc import Callable

Paint = Callable[[], None]


class Ticking:
    """What is to be printed with the next frame; the first of a kind is printed at once."""

    def __init__(self) -> None:
        self._painted: set[str] = set()
        self._pending: dict[str, Paint] = {}

    def add(self, name: str, paint: Paint) -> None:
        """Print this in place of what of its kind is still waiting."""
        if name in self._painted:
            self._pending[name] = paint
        else:
            self._painted.add(name)
            paint()

    def drop(self, name: str) -> None:
        """What waits is no longer true."""
        self._pending.pop(name, None)

    def paint(self) -> None:
        """Print what has come in since the last frame."""
        pending, self._pending = self._pending, {}
        for paint in pending.values():
            paint()
