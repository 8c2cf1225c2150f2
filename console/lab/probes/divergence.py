"""Where greedy answers of two arms part: information, not a failure. Pure.

Kernels of other batch shapes round differently, so the same prompt may go on with another word; it does so between two
boots of one configuration too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from console.lab.tokens import common
from console.lab.trace import Trace


@dataclass(frozen=True, slots=True)
class Divergence:
    """Answers of an arm beside those of another to the same prompts."""

    pairs: int
    equal: int
    first: tuple[int, ...]
    """Tokens written before the two parted, for each pair that did."""

    @property
    def median_first(self) -> float | None:
        """Half of them parted after so many tokens."""
        return median(self.first) if self.first else None


def diverge(ours: Mapping[str, Trace], theirs: Mapping[str, Trace]) -> Divergence | None:
    """Compare by pairing key; `None` where no server gave token ids."""
    pairs = [
        (ours[key].ids[: ours[key].natural], theirs[key].ids[: theirs[key].natural])
        for key in sorted(ours.keys() & theirs.keys())
        if ours[key].ids and theirs[key].ids
    ]
    if not pairs:
        return None
    first = tuple(common(a, b) for a, b in pairs if a != b)
    return Divergence(len(pairs), len(pairs) - len(first), first)
