"""What counters and histograms gained between two pages of one process."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from console.metrics.reading import Distribution
from console.metrics.vllm import Counters, Histogram

NARROW = 0.25
"""A quantile is estimated where its bucket is narrower than this part of the value."""

_SAME_START_S = 1.0
"""No server starts anew this soon; less is a start time derived from clocks that are read anew each time."""

_TREMBLE = 1e-9
"""Part of a sum of floats that is no difference."""

_MONOTONIC = (
    "requests_finished",
    "preemptions",
    "prompt_tokens",
    "generation_tokens",
    "prefix_queries",
    "prefix_hits",
    "spec_drafts",
    "spec_draft_tokens",
    "spec_accepted_tokens",
)
_HISTOGRAMS = (
    "ttft",
    "itl",
    "tpot",
    "e2e",
    "queue",
    "prefill",
    "decode",
    "prefill_computed",
    "request_prompt",
    "request_generation",
)


def restarted(old: Counters, new: Counters) -> bool:
    """Whether `new` comes from another process than `old`: another start time, or a counter that fell.

    Of several engines one that began anew is enough: what the others gained is not told apart from what it lost.
    """
    for before, after in ((old.process_started, new.process_started), (old.created, new.created)):
        if before is not None and after is not None and abs(after - before) > _SAME_START_S:
            return True
    return any(_fell(before, after) for before, after in (*_comparable(old, new), *_of_each_engine(old, new)))


def _fell(before: float, after: float) -> bool:
    """Whether a counter went back; the sum over several processes trembles in its last digits."""
    return after < before - _TREMBLE * max(1.0, before)


def _comparable(old: Counters, new: Counters) -> Iterator[tuple[float, float]]:
    for name in _MONOTONIC:
        before, after = getattr(old, name), getattr(new, name)
        if before is not None and after is not None and _same_shape(old, new, name):
            yield before, after
    for name in _HISTOGRAMS:
        before, after = getattr(old, name), getattr(new, name)
        if before is not None and after is not None and _same_shape(old, new, name):
            yield before.count, after.count
            yield before.sum, after.sum
            if [bound for bound, _ in before.buckets] == [bound for bound, _ in after.buckets]:
                # A server that has done more since its start than the former one did is told by what it did otherwise.
                yield from ((low[1], high[1]) for low, high in zip(before.buckets, after.buckets, strict=True))


def _of_each_engine(old: Counters, new: Counters) -> Iterator[tuple[float, float]]:
    for (name, engine), before in old.parts.items():
        after = new.parts.get((name, engine))
        if after is not None and _same_shape(old, new, name):
            yield before, after


def _same_shape(old: Counters, new: Counters, name: str) -> bool:
    return old.shape.get(name) == new.shape.get(name)


class Span:
    """Differences between two pages of one process; without an old page, from the process's start."""

    def __init__(self, old: Counters | None, new: Counters) -> None:
        self.old = old
        self.new = new

    def count(self, name: str) -> int | None:
        """The rise of a counter; `None` where either page does not have it."""
        after: int | None = getattr(self.new, name)
        if self.old is None:
            return after
        before: int | None = getattr(self.old, name)
        if before is None or after is None or after < before or not _same_shape(self.old, self.new, name):
            return None
        return after - before

    def histogram(self, name: str) -> Histogram | None:
        """The samples that a histogram gained."""
        after: Histogram | None = getattr(self.new, name)
        if self.old is None:
            return after
        before: Histogram | None = getattr(self.old, name)
        if before is None or after is None or not _same_shape(self.old, self.new, name):
            return None
        if after.count < before.count or _fell(before.sum, after.sum):
            return None
        return Histogram(_bucket_rise(before, after), after.count - before.count, max(0.0, after.sum - before.sum))

    def per_position(self) -> tuple[int, ...] | None:
        """Accepted tokens at each draft position."""
        after = self.new.spec_accepted_per_pos
        if self.old is None or after is None:
            return after
        before = self.old.spec_accepted_per_pos
        if before is None or not _same_shape(self.old, self.new, "spec_accepted_per_pos"):
            return None
        rises = tuple(high - low for low, high in zip(before, after, strict=True))
        return rises if min(rises, default=0) >= 0 else None


def _bucket_rise(before: Histogram, after: Histogram) -> tuple[tuple[float, float], ...]:
    if [bound for bound, _ in before.buckets] != [bound for bound, _ in after.buckets]:
        return ()
    rises = tuple((high[0], high[1] - low[1]) for low, high in zip(before.buckets, after.buckets, strict=True))
    rising = all(low[1] <= high[1] for low, high in pairwise(rises))
    return rises if rising and rises and rises[0][1] >= 0 else ()


def of_several_tokens(tpot: Histogram | None, answers: Histogram | None) -> Histogram | None:
    """Times per output token without those of one-token answers: they have none, and vLLM counts them as 0 s.

    Args:
        tpot: time per output token of the requests that ended.
        answers: generated tokens of the same requests; without them a sum of 0 is all that can be told.
    """
    if tpot is None or tpot.sum <= 0:
        return None
    single = next((count for bound, count in answers.buckets if bound == 1), 0.0) if answers else 0.0
    if answers is None or answers.count != tpot.count or not 0 < single < tpot.count:
        return tpot
    # They all stand in the lowest bucket.
    buckets = tuple((bound, count - single) for bound, count in tpot.buckets)
    return Histogram(buckets if buckets and buckets[0][1] >= 0 else (), tpot.count - single, tpot.sum)


def distribution(gained: Histogram | None) -> Distribution:
    """Mean and quantiles of the samples gained; empty without any, a number alone where they contradict themselves."""
    if gained is None or gained.count < 1 or gained.count % 1:
        return Distribution()
    n, mean = int(gained.count), gained.sum / gained.count
    if not _possible(gained):
        return Distribution(n=n)
    if n == 1:
        return Distribution(n=1, mean=mean, p50=mean, p90=mean, p99=mean)
    found = {name: _quantile(gained, q) for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}
    values = {name: value for name, (value, _) in found.items()}
    bounds = {f"{name}_bounds": known for name, (_, known) in found.items()}
    return Distribution(n=n, mean=mean, **values, **bounds)  # type: ignore[arg-type]


def _possible(gained: Histogram) -> bool:
    """Whether samples of these buckets can have this sum."""
    if not gained.buckets or gained.buckets[-1][1] != gained.count:
        # Not all of them stand in buckets: nothing is told that the sum could contradict.
        return True
    least, most, below, seen = 0.0, 0.0, 0.0, 0.0
    for bound, count in gained.buckets:
        if count > seen:
            least, most = least + below * (count - seen), most + bound * (count - seen)
        below, seen = bound, count
    return least * (1 - _TREMBLE) <= gained.sum <= most * (1 + _TREMBLE)


def _quantile(gained: Histogram, q: float) -> tuple[float | None, tuple[float, float | None] | None]:
    """The bounds a quantile lies in, and where they are narrow an estimate within them.

    The bounds hold for every usual definition: they span the buckets of both samples next to the rank (n - 1) q.
    """
    rank = (gained.count - 1) * q
    low, high = _bucket_of(gained, math.floor(rank)), _bucket_of(gained, math.ceil(rank))
    if low is None or high is None:
        return None, None
    bounds = (low[0], high[1])
    if math.isinf(bounds[1]):
        return None, (bounds[0], None)
    inside = (rank - low[2] + 0.5) / max(1.0, high[3] - low[2])
    value = bounds[0] + (bounds[1] - bounds[0]) * min(1.0, inside)
    return (value if bounds[1] - bounds[0] < NARROW * value else None), bounds


def _bucket_of(gained: Histogram, index: int) -> tuple[float, float, float, float] | None:
    """The bucket of the sample at `index` (from 0): lower bound, upper bound, samples below it, samples up to it."""
    bound, below = 0.0, 0.0
    for upper, count in gained.buckets:
        if index < count:
            return bound, upper, below, count
        bound, below = upper, count
    return None
