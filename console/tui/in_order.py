"""Keys one after the other: each counts once the one before it has had its whole effect."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from textual.app import App
from textual.driver import Driver
from textual.events import Event, Key
from textual.message_pump import MessagePump

_ASKING = "plan"
_LOOK_EVERY_S = 0.05
PATIENCE_S = 10.0
"""So long keys wait for what they are about; what does not come then is waited for no more until it did come."""
_STUCK_S = 1.0
"""A key whose effect takes longer holds up no other."""


class InOrder(App[int]):
    """An app whose keys wait for each other, and for what they are about.

    A slow line brings several in one packet, and some are typed before anything is on the screen. Textual hands each on
    at once: a letter for the search that the key before it opens would be a command, and of a sequence a part would
    count.

    Args:
        ansi_color: the terminal's own colours.
        driver_class: who talks to the terminal.
        at_once: keys that wait for nothing but other keys, and with which whatever waits is not wanted any more.
    """

    def __init__(self, *, ansi_color: bool, driver_class: type[Driver], at_once: Collection[str]) -> None:
        super().__init__(ansi_color=ansi_color, driver_class=driver_class)
        self._at_once = at_once
        self._typed: deque[Key] = deque()
        """What waits."""
        self._called: Key | None = None
        """The one whose turn it is."""
        self._at_work: Key | None = None
        """The one whose effect is not whole yet."""
        self._at_work_since = self._waiting_since = 0.0
        self._patient = True

    @property
    def awaited(self) -> str:
        """What keys have to wait for, in a few words; nothing as a rule."""
        return ""

    @property
    def asking(self) -> bool:
        """Whether something that leads to a question is under way."""
        return any(worker.group == _ASKING and not worker.is_finished for worker in self.workers)

    def lead_to_question(self, work: Coroutine[Any, Any, None]) -> None:
        """Do what ends in a question, in the background; of several the last one counts."""
        self.run_worker(work, group=_ASKING, exclusive=True, exit_on_error=False)

    def tell(self, text: str) -> None:
        """Say it in a line."""

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key) or event.is_forwarded:
            await super().on_event(event)
        elif self._may_pass(event):
            self._at_work, self._at_work_since = event, time.monotonic()
            path = [node for node in (self.focused or self.screen).ancestors_with_self if node is not self]
            await super().on_event(event)
            self._follow(event, [*path, self, self])

    def _may_pass(self, key: Key) -> bool:
        """Whether it is its turn; else it waits."""
        awaited = self._wants()
        if key is self._called:
            self._called = None
            return True
        if awaited and key.key in self._at_once:
            self._typed.clear()
            return True
        if not (awaited or self._typed or self._called or self._at_work):
            return True
        if not self._typed:
            self._waiting_since = time.monotonic()
            self.set_timer(_LOOK_EVERY_S, self._look)
        self._typed.append(key)
        if awaited:
            self.tell(f"waiting for {awaited}, then: {self._names()}")
        return False

    def _wants(self) -> str:
        awaited = self.awaited
        self._patient = self._patient or not awaited
        return awaited if self._patient else ""

    def _names(self) -> str:
        return " ".join(key.character if key.is_printable and key.character else key.key for key in self._typed)

    def _follow(self, key: Key, path: Sequence[MessagePump]) -> None:
        """Behind the key through the queues of all who may take it: then its effect is whole, but for what is drawn."""
        if path and path[0].call_later(self._follow, key, path[1:]):
            return
        if not self.call_after_refresh(self._done, key):
            self._done(key)

    def _done(self, key: Key) -> None:
        if key is self._at_work:
            self._at_work = None
            self._call_next()

    def _look(self) -> None:
        """While keys wait: whether they still have to."""
        now = time.monotonic()
        if self._at_work and now - self._at_work_since > _STUCK_S:
            self._at_work = None
        if (awaited := self._wants()) and self._typed and now - self._waiting_since > PATIENCE_S:
            self.tell(f"not done, {awaited} did not come: {self._names()}")
            self._typed.clear()
            self._patient = False
        self._call_next()
        if self._typed:
            self.set_timer(_LOOK_EVERY_S, self._look)

    def _call_next(self) -> None:
        if self._typed and not (self._called or self._at_work or self._wants()):
            self._called = self._typed.popleft()
            self.post_message(self._called)
