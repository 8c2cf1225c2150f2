"""A bounded series of (monotonic time, value): what the graphs draw."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator


class Series:
    """Ring buffer of samples; `None` is a gap and stays one (never drawn as zero)."""

    def __init__(self, capacity: int = 3600) -> None:
        self._samples: deque[tuple[float, float | None]] = deque(maxlen=capacity)

    def add(self, at: float, value: float | None) -> None:
        """Append one sample; `at` is monotonic seconds."""
        self._samples.append((at, value))

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[tuple[float, float | None]]:
        return iter(self._samples)

    @property
    def last(self) -> float | None:
        """The newest value, `None` if there is none."""
        return self._samples[-1][1] if self._samples else None

    def values(self, count: int) -> list[float | None]:
        """The newest `count` values, oldest first."""
        return [value for _, value in list(self._samples)[-count:]]

    def peak(self, count: int | None = None) -> float | None:
        """The largest known value among the newest `count` (all of them by default)."""
        known = [v for v in self.values(count if count is not None else len(self)) if v is not None]
        return max(known, default=None)
