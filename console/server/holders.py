"""Who holds what a server needed, told with the diagnosis that misses it: the cards' memory, the port."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from console.server.cards import OpenCards, look, on_the_cards
from console.server.sockets import owner_of
from console.server.status import Diagnosis, ServerStatus

_ABOUT = frozenset({"vram-busy", "oom", "no-kv-memory", "kv-too-small"})
_PORT = "port-in-use"
_AGAIN_S = 10.0
_LOOK_S = 2.0


class Holders:
    """Looks for them; at the cards seldom, since a status is asked every second."""

    def __init__(self, open_cards: OpenCards, clock: Callable[[], float] = time.monotonic) -> None:
        self._open_cards = open_cards
        self._clock = clock
        self._seen: tuple[float, str] | None = None

    def told(self, status: ServerStatus) -> ServerStatus:
        """The status, its diagnosis with who holds now what was missing."""
        found = status.diagnosis
        if found is None:
            return status
        if found.cause == _PORT and (owner := _owner(status)):
            return replace(status, diagnosis=_with(found, owner))
        if found.cause not in _ABOUT or status.simulated:
            return status
        now = self._now(frozenset(status.ours))
        return replace(status, diagnosis=_with(found, now)) if now else status

    def _now(self, ours: frozenset[int]) -> str:
        at = self._clock()
        if self._seen is None or at - self._seen[0] > _AGAIN_S:
            report = look(self._open_cards, _LOOK_S)
            self._seen = (at, on_the_cards(report, ours) if report else "")
        return self._seen[1]


def _owner(status: ServerStatus) -> str | None:
    port = (status.url or "").rpartition(":")[2]
    owner = owner_of(int(port)) if port.isdigit() else None
    return f"{owner[1]} (pid {owner[0]}) listens on port {port}" if owner else None


def _with(diagnosis: Diagnosis, cards: str) -> Diagnosis:
    why = diagnosis.why.rstrip()
    return replace(diagnosis, why=f"{why}{'' if why.endswith('.') else '.'} Now: {cards}.")
