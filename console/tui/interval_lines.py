"""Each comparison of a run as a picture: its interval on one axis of change, and where every round lies. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from console.tui.measure_lines import titled
from console.tui.widgets.lines import Line

if TYPE_CHECKING:
    from console.lab.results import Metric
    from console.lab.stats import Comparison
    from console.lab.view import RunView

_NAME, _LEAST, _MOST = 32, 24, 61
_PLAIN = 56
"""Cells that measures in plain words take."""
_ENDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Ends of the axis as a change: 0.1 is from -9 % to +10 %, as far to the left as to the right on a log scale."""
_TONES = {"better": "good", "worse": "bad", "equivalent": "strong", "undecided": "warn"}


def interval_lines(run: RunView, width: int) -> list[Line]:
    """A row for every judged measure with a ratio; nothing before the first round is whole."""
    rows = [(metric, pair) for metric in run.metrics.values() for pair in metric.compare if _shown(metric, pair)]
    if not rows:
        return []
    room = _PLAIN if width >= _PLAIN + _MOST and len(run.arms) == 2 else _NAME
    cells = (min(width - room, _MOST) - 1) // 2 * 2 + 1
    if cells < _LEAST:
        return []
    end = _end([value for _, pair in rows for value in (pair.lo, pair.hi, pair.ratio) if value])
    several = len(run.arms) > 2
    left, right = f"{(1 / (1 + end) - 1) * 100:+.0f} %", f"{end * 100:+.0f} %"
    axis = left + "0".center(cells)[len(left) : cells - len(right)] + right
    legend: Line = (("change, with its 95 % interval".ljust(room), "dim"), (axis, "dim"))
    names = [titled(metric.name, room, plain=room > _NAME) for metric, _ in rows]
    names = [f"{name} {pair.arm}" if several else name for name, (_, pair) in zip(names, rows, strict=True)]
    lines = [_row(name, room, *row, cells, end) for name, row in zip(names, rows, strict=True)]
    return [legend, *lines, _key(room)]


def _key(room: int) -> Line:
    return ((" " * room, ""), ("● all rounds  ├─┤ interval  • a round", "dim"))


def _shown(metric: Metric, pair: Comparison) -> bool:
    from console.lab.measures import MEASURES

    judged = metric.name not in MEASURES or MEASURES[metric.name].judged
    return judged and pair.ratio is not None and pair.ratio > 0


def _end(ratios: list[float]) -> float:
    """Where the axis ends: all intervals fit, unless one of them is wider than any axis."""
    most = max(abs(math.log(ratio)) for ratio in ratios)
    return next((end for end in _ENDS if math.log1p(end) >= most), _ENDS[-1])


def _row(name: str, room: int, metric: Metric, pair: Comparison, cells: int, end: float) -> Line:
    scale = math.log1p(end)
    middle = cells // 2

    def place(ratio: float) -> int:
        return middle + round(max(-1.0, min(1.0, math.log(ratio) / scale)) * middle)

    signs = [" "] * cells
    signs[middle] = "│"
    if pair.lo and pair.hi:
        low, high = place(pair.lo), place(pair.hi)
        signs[low : high + 1] = "─" * (high - low + 1)
        signs[low], signs[high] = "├", "┤"
    for ratio in _rounds(metric, pair):
        signs[place(ratio)] = "•"
    assert pair.ratio is not None
    signs[place(pair.ratio)] = "●"
    return ((f"{name[: room - 1]:<{room}}", ""), ("".join(signs), _TONES.get(pair.verdict, "")))


def _rounds(metric: Metric, pair: Comparison) -> Iterator[float]:
    """The ratio of each round."""
    from console.lab.spread import round_logs

    ours, theirs = metric.rounds.get(pair.arm), metric.rounds.get(pair.against)
    if ours and theirs:
        yield from (math.exp(value) for value in round_logs(ours, theirs).values())
