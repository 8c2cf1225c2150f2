"""When a warm-up is over: a rule fixed before anything is measured. Pure."""

from __future__ import annotations

from collections.abc import Sequence

TOLERANCE = 0.05
"""Two requests in a row whose gaps differ by less than this are steady."""


def is_steady(gaps: Sequence[float | None], least: int) -> bool:
    """Whether the newest two of at least `least` warm-up requests agree within 5 %.

    Args:
        gaps: mean gap of each request. Not its TPOT: that moves with the acceptance of each text under speculation.
        least: how many requests there have to be.
    """
    known = [value for value in gaps if value is not None]
    if len(known) < max(least, 2):
        return False
    before, last = known[-2:]
    return abs(last - before) <= TOLERANCE * min(before, last)
