"""How one life is brought to its end: SIGTERM, repeated, then SIGKILL, until nothing of it is left.

The keeper runs this; a console does when the keeper is gone. Imports what the keeper may import.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from console.server.process import Identity, alive, is_recorder, may_signal, read_stat, send

TERM_EVERY_S = 2.0
"""vLLM loses a SIGTERM that arrives while it starts, so it is said again."""
KILL_EVERY_S = 0.5
ORPHAN_GRACE_S = 5.0
"""What workers get whose leader is gone: nobody will tell them to end in order."""
LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class Ending:
    """The steps of one ending; call `step` every `LOOK_EVERY_S` or so until it returns `True`.

    The leader alone hears the first SIGTERM, so that it can end its workers in its own order; from the second on all
    of them hear it.
    """

    find: Callable[[], Sequence[Identity]]
    """Everything of this life that still lives."""
    leader: Identity | None
    grace_s: float
    begun: float
    """Monotonic time at which the ending began."""
    tell: Callable[[str], None] = lambda _text: None
    """Hears what is being done, in words."""
    escalated: bool = False
    """Whether SIGKILL was needed."""
    left: tuple[Identity, ...] = ()
    """What lived at the last step."""
    _kill_at: float = field(init=False)
    _next: float = field(init=False)
    _terms: int = 0

    def __post_init__(self) -> None:
        self._kill_at = self.begun + self.grace_s
        self._next = self.begun

    def step(self, now: float) -> bool:
        """Send what is due; `True` when nothing of this life is left."""
        self.left = tuple(self.find())
        if not self.left:
            return True
        if self.leader is None or self.leader not in self.left:
            self._kill_at = min(self._kill_at, now + ORPHAN_GRACE_S)
        if now >= self._kill_at:
            self._kill(now)
        elif now >= self._next:
            self._term(now)
        return False

    def _term(self, now: float) -> None:
        first = self._terms == 0 and self.leader in self.left
        targets = [who for who in self.left if not first or who == self.leader]
        for who in targets:
            # A recorder that has heard it before hangs in the driver, and has nothing to finish there.
            hangs = self._terms > 1 and is_recorder(who.pid)
            send(who, signal.SIGKILL if hangs else signal.SIGTERM)
            # Who was held (SIGSTOP) hears nothing until it goes on.
            send(who, signal.SIGCONT)
        self._terms += 1
        self._next = now + TERM_EVERY_S
        self.tell("asked to end (SIGTERM)" if first else f"asked again (SIGTERM to {len(targets)})")

    def _kill(self, now: float) -> None:
        if self.escalated and now < self._next:
            return
        for who in self.left:
            send(who, signal.SIGKILL)
        if not self.escalated:
            self.tell(f"did not end within its grace: SIGKILL to {len(self.left)}")
        self.escalated = True
        self._next = now + KILL_EVERY_S


def why_left(who: Identity) -> str | None:
    """Why a process that was to end is still there; `None` when it is not."""
    stat = read_stat(who.pid)
    if stat is None or not alive(who):
        return None
    if stat.deaf:
        return f"{stat.name} hangs in the kernel (state D, often a driver): no signal reaches it"
    if not may_signal(who):
        return f"{stat.name} belongs to another user"
    return f"{stat.name} has not ended yet"
