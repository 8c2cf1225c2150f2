"""What is said once: what a key came to, an outcome, news. It stands for seconds, or until something else is done."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

TOLD_S = 5.0
LONG_S = 30.0
"""How long an outcome and news stand: long enough to be read, and not beside what comes after."""
_SOURCE = "told"


class Telling:
    """The one text that stands; another one takes its place."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app
        self._number = 0
        self._stands = False

    def tell(self, text: str, stands_s: float, *, page: bool = True) -> None:
        """Say it from now on.

        Args:
            text: what is said; empty: nothing any more.
            stands_s: seconds for which it stands.
            page: also on a page in front, in place of its keys; else on the dashboard.
        """
        self._put(text, page=page)
        self._number += 1
        self._stands = bool(text)
        if text:
            self._app.set_timer(stands_s, partial(self._end, self._number))

    def forget(self) -> None:
        """It was read, or something else is being done."""
        if self._stands:
            self.tell("", 0.0)

    def _end(self, number: int) -> None:
        if number == self._number:
            self.forget()

    def _put(self, text: str, *, page: bool) -> None:
        note = getattr(self._app.front, "note", None)
        if note and (page or not text):
            note(text)
        if not (text and note and page):
            self._app.dashboard.tell_note(_SOURCE, text)
