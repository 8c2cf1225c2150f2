"""A bounded series of (monotonic time, value): what the graphs draw. Fine for the last hour, thinned for a day."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

HOUR = 3600
"""Samples kept as they are; at one a second the last hour."""
DAY = 1440
"""Minutes kept thinned."""
_MINUTE_S = 60.0


class Minute(NamedTuple):
    """The samples of one minute, thinned; all `None` where none of them had a value."""

    at: float
    """Monotonic second at which it began."""
    mean: float | None
    low: float | None
    high: float | None


class Series:
    """Ring buffer of samples; `None` is a gap and stays one (never drawn as zero).

    A minute without any sample is a gap too: it is in `minutes` with nothing in it.
    """

    def __init__(self, capacity: int = HOUR, minutes: int = DAY) -> None:
        self._samples: deque[tuple[float, float | None]] = deque(maxlen=capacity)
        self._minutes: deque[Minute] = deque(maxlen=minutes)
        self._begun: float | None = None
        self._known: list[float] = []

    def add(self, at: float, value: float | None) -> None:
        """Append one sample; `at` is monotonic seconds."""
        self._samples.append((at, value))
        begun = at // _MINUTE_S * _MINUTE_S
        if self._begun is not None and begun != self._begun:
            self._thin(begun)
        self._begun = begun
        if value is not None:
            self._known.append(value)

    def put_before(self, samples: Sequence[tuple[float, float | None]]) -> None:
        """Older samples, oldest first, as far as there is room; what is not older than the first one is left out."""
        first = self._samples[0][0] if self._samples else math.inf
        room = (self._samples.maxlen or 0) - len(self._samples)
        older = [sample for sample in samples if sample[0] < first]
        self._samples.extendleft(reversed(older[max(0, len(older) - room) :]))

    def _thin(self, until: float) -> None:
        """Close the minute under way, and those up to `until` in which nothing was looked at."""
        assert self._begun is not None
        self._minutes.append(_minute(self._begun, self._known))
        missed = range(1, min(int((until - self._begun) / _MINUTE_S), (self._minutes.maxlen or 0) + 1))
        self._minutes.extend(_minute(self._begun + i * _MINUTE_S, []) for i in missed)
        self._known = []

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[tuple[float, float | None]]:
        return iter(self._samples)

    @property
    def last(self) -> float | None:
        """The newest value, `None` if there is none."""
        return self._samples[-1][1] if self._samples else None

    @property
    def minutes(self) -> list[Minute]:
        """The minutes that have ended, oldest first, up to a day of them."""
        return list(self._minutes)

    def since(self, at: float) -> list[tuple[float, float | None]]:
        """The samples from monotonic second `at` on, newest first."""
        return list(takewhile(lambda sample: sample[0] >= at, reversed(self._samples)))

    def values(self, count: int) -> list[float | None]:
        """The newest `count` values, oldest first."""
        return [value for _, value in list(self._samples)[-count:]]

    def peak(self, count: int | None = None) -> float | None:
        """The largest known value among the newest `count` (all of them by default)."""
        known = [v for v in self.values(count if count is not None else len(self)) if v is not None]
        return max(known, default=None)


def _minute(at: float, known: list[float]) -> Minute:
    if not known:
        return Minute(at, None, None, None)
    return Minute(at, sum(known) / len(known), min(known), max(known))
