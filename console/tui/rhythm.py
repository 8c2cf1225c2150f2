"""How often each source is looked at: one loop a source, all of them told together to rest or to hurry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.message import Message

from console.server.status import State
from console.tui.pollers import Poller

if TYPE_CHECKING:
    from textual.app import App

    from console.tui.sources import Sources

_MOVING = (State.STARTING, State.STOPPING)
_SLOW = 3.0
"""With `--low-bandwidth` every source is looked at this many times less often."""
Post = Callable[[Message], object]
Failed = Callable[[str, BaseException], object]


class Rhythm:
    """The pollers of a console.

    Args:
        sources: what is looked at.
        state: the server's state as far as it is known.
        low_bandwidth: look, and so paint, less often.
    """

    def __init__(self, sources: Sources, state: Callable[[], State], *, low_bandwidth: bool) -> None:
        pace = _SLOW if low_bandwidth else 1.0

        def usual(seconds: float) -> Callable[[], float]:
            return lambda: seconds * pace

        def status_pace() -> float:
            # A look reads /proc and asks /health: half as often where nothing is expected to change.
            return 0.5 if state() in _MOVING else 2.0 * pace

        looks: tuple[tuple[str, Callable[[], float], Callable[[], Message | None]], ...] = (
            ("status", status_pace, sources.status),
            ("presets", usual(20.0), sources.catalog),
            ("cards", usual(1.0), sources.cards),
            ("reading", usual(1.0), sources.reading),
            ("log", usual(1.0), sources.log),
            ("notices", usual(1.0), sources.notices),
            ("run", usual(1.0), sources.runs.look),
        )
        self._pollers = [Poller(name, period, look) for name, period, look in looks]

    def begin(self, app: App[int], post: Post, failed: Failed) -> None:
        """Look from now on, in workers of the app; they rest while the app is suspended."""
        for poller in self._pollers:
            app.run_worker(poller.run(post, failed), name=poller.name, group=poller.name, exit_on_error=False)

    def pause(self) -> None:
        """Nobody sees the screen."""
        for poller in self._pollers:
            poller.pause()

    def resume(self) -> None:
        """Somebody does again."""
        for poller in self._pollers:
            poller.resume()

    def poke(self) -> None:
        """Something has changed: look now."""
        for poller in self._pollers:
            poller.poke()
