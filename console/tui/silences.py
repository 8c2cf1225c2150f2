"""Sources that hang send nothing: their silence is what tells."""

from __future__ import annotations

import time
from collections.abc import Iterator

from console.errors import ConsoleError
from console.tui.figures import coarse

OLD_S = 6.0
"""A source silent for longer is stale: its figures are greyed."""
_HELD_S = 6.0
"""Looks of ours so far apart mean that it was this console that was suspended or held."""


def refused(error: ConsoleError) -> bool:
    """Whether a source took no connection: not slow, but gone."""
    return getattr(error, "kind", None) == "refused"


class Silences:
    """When each source was heard last."""

    def __init__(self) -> None:
        now = time.monotonic()
        self._heard = {"status": now, "cards": now}
        self._ever: set[str] = set()
        self._looked = now

    def hear(self, source: str) -> None:
        """It has answered."""
        self._heard[source] = time.monotonic()
        self._ever.add(source)

    def look(self) -> Iterator[tuple[str, str]]:
        """The sources that are silent for too long, and what to tell of each; to be asked every few seconds."""
        now = time.monotonic()
        if now - self._looked > _HELD_S:
            self._heard = dict.fromkeys(self._heard, now)
        self._looked = now
        for source, at in self._heard.items():
            if now - at > OLD_S:
                yield source, self._told(source, coarse(now - at))

    def _told(self, source: str, silent: str) -> str:
        if source == "cards":
            known = f"the cards' figures are {silent} old" if source in self._ever else "no figures of the cards"
            return f"the graphics driver does not answer: {known}"
        return f"the server's state: no answer for {silent}, what stands here is old"
