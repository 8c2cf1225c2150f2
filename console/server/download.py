"""A model that comes over the network while its server starts: how much is there, how fast it grows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from console.presets import Preset
from console.server.weights import Weights, weights_of
from console.units import gib, rate

_EVERY_S = 1.0
_SPAN_S = 20.0
"""The rate is taken over so long; a download that did not grow meanwhile is none."""


@dataclass(frozen=True, slots=True)
class Download:
    """A download that is under way. Bytes, seconds."""

    size: int
    total: int | None
    rate: float | None
    eta_s: float | None
    free: int | None

    @property
    def text(self) -> str:
        """`6.31 of 15.80 GiB, 48.2 MB/s`."""
        whole = f"{gib(self.size)} of {gib(self.total)}" if self.total else gib(self.size)
        return f"{whole}, {rate(self.rate)}" if self.rate else whole


class DownloadWatch:
    """Looks at the model's place in the hub's cache, once a second at most; safe to use from several threads."""

    def __init__(
        self,
        preset: Preset,
        look: Callable[[Preset], Weights] = weights_of,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._preset = preset
        self._look = look
        self._clock = clock
        self._sizes: deque[tuple[float, int]] = deque()
        self._files: Weights | None = None
        self._lock = threading.Lock()

    def now(self) -> Download | None:
        """The download that is under way; `None` when there is none, or not yet two looks at it."""
        with self._lock:
            return self._now()

    def _now(self) -> Download | None:
        if self._files is not None and (self._files.local or self._files.whole):
            return None
        at = self._clock()
        if not self._sizes or at - self._sizes[-1][0] >= _EVERY_S:
            self._files = self._look(self._preset)
            if self._files.local or self._files.whole:
                return None
            self._sizes.append((at, self._files.size))
        while self._sizes and at - self._sizes[0][0] > _SPAN_S:
            self._sizes.popleft()
        return self._growing()

    def _growing(self) -> Download | None:
        if self._files is None or len(self._sizes) < 2:
            return None
        (then, before), (last, size) = self._sizes[0], self._sizes[-1]
        grown = size - before
        if grown <= 0 or last <= then:
            return None
        speed = grown / (last - then)
        total = self._files.total
        left = max(0, total - size) if total else None
        return Download(size, total, speed, left / speed if left is not None else None, self._files.free)
