"""A page on a source that nothing else looks at: it is looked at while the page is up, and not a moment longer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from textual import on
from textual.message import Message

from console.errors import ConsoleError
from console.tui.pollers import Poller
from console.tui.screens.pager import Pager
from console.tui.stories import error_story
from console.tui.widgets.lines import Line, line

T = TypeVar("T")


class LivePage(Pager, Generic[T]):
    """Lines made from what a blocking look has found.

    Args:
        page: the command that opens it.
        title: what stands in its rule.
        look: called in a thread, again and again.
        lines: what was found, and the width → lines.
        every_s: seconds between two looks.
        simulated: the figures are the stand-in engine's.
    """

    @dataclass
    class Looked(Message):
        """A look has ended."""

        found: object

    def __init__(
        self,
        page: str,
        title: str,
        look: Callable[[], T],
        lines: Callable[[T, int], Sequence[Line]],
        *,
        every_s: float,
        simulated: bool,
    ) -> None:
        super().__init__(page, self._draw, simulated=simulated)
        self._title = title
        self._seen: T | None = None
        self._draw_found = lines
        self._drawn: Callable[[int], Sequence[Line]] = lambda _: [line("looking …", "dim")]
        self._look = look
        self._every_s = every_s

    def _draw(self, width: int) -> tuple[str, Sequence[Line]]:
        return self._title, self._drawn(width)

    def on_mount(self) -> None:
        """Look from now on."""
        super().on_mount()
        self._begin()

    def _begin(self) -> None:
        """Look from now on; an older look that hangs is not waited for, and what it finds is dropped."""
        look = self._look
        poller = Poller(self.page, lambda: self._every_s, lambda: self.Looked(look()))
        looking = poller.run(self.post_message, self._failed)
        self.run_worker(looking, group=self.page, exclusive=True, exit_on_error=False)

    @on(Looked)
    def _show(self, event: Looked) -> None:
        event.stop()
        found: T = event.found  # type: ignore[assignment]
        self._seen = found
        self._drawn = lambda width: self._draw_found(found, width)
        self.tell()

    def look_at(self, look: Callable[[], T], title: str) -> None:
        """Look at something else from now on, from its beginning."""
        self._look, self._title, self._top, self._seen = look, title, 0, None
        self._drawn = lambda _: [line("looking …", "dim")]
        self.tell()
        self._begin()

    def _failed(self, _source: str, error: BaseException) -> None:
        known = error if isinstance(error, ConsoleError) else ConsoleError(f"{type(error).__name__}: {error}", "", "")
        self._drawn = lambda width: error_story(known, width)
        self.tell()
