"""Values as one row of bars. Pure."""

from __future__ import annotations

from collections.abc import Sequence

BARS = "▁▂▃▄▅▆▇█"
GAP = " "


def spark(values: Sequence[float | None], cells: int) -> str:
    """From nothing to the largest value; several values in a cell are their mean, a gap stays one.

    The bottom of a bar is zero: a figure that hardly moves must look as if it hardly moved.
    """
    thinned = thin(values, cells)
    top = max((value for value in thinned if value is not None), default=0.0)
    return "".join(GAP if value is None else bar(value, top) for value in thinned)


def bar(value: float, top: float) -> str:
    """One cell; what is not nothing is at least the lowest bar."""
    if top <= 0:
        return BARS[0]
    return BARS[max(0, min(len(BARS) - 1, round(value / top * len(BARS)) - 1))]


def thin(values: Sequence[float | None], cells: int) -> list[float | None]:
    """At most `cells` values: the means of equal parts."""
    if len(values) <= cells:
        return list(values)
    thinned: list[float | None] = []
    for i in range(cells):
        part = values[i * len(values) // cells : (i + 1) * len(values) // cells]
        known = [value for value in part if value is not None]
        thinned.append(sum(known) / len(known) if known else None)
    return thinned
