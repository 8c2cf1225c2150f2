"""Which graphs there are, and a series as the columns of one. Pure.

Now is at the right edge. A column stands for several seconds: the newest one is drawn anew with each sample, and all of
them move to the left only when it is complete, so that most samples cost one column on the line, not the whole graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from console import units
from console.series import Series

Column = float | None
_STEPS = (5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds that a column may stand for."""


@dataclass(frozen=True, slots=True)
class Picture:
    """What a graph shows; equal pictures paint nothing."""

    title: str
    up: tuple[Column, ...]
    top: float
    """The value that fills the graph."""
    down: tuple[Column, ...] | None = None
    """A second series, hanging from the middle."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One graph: which rings it draws, and how its scale is written."""

    title: str
    ring: str
    write: Callable[[float | None], str]
    least: float
    """The scale never ends below this."""
    fixed: bool = False
    """The scale is `least` whatever comes."""
    below: str | None = None
    """The ring that hangs from the middle."""


MEASURES = (
    Kind("hit rate", "prefix_hit_rate", lambda v: units.percent(v, 0), 1.0, fixed=True),
    Kind("TTFT", "ttft_s", units.seconds, 0.1),
    Kind("ITL", "itl_s", units.seconds, 0.02),
    Kind("output", "generation_tokens_per_s", units.per_second, 10.0),
)
MORE_MEASURES = (
    Kind("KV used", "kv_used", lambda v: units.percent(v, 0), 1.0, fixed=True),
    Kind("running", "running", units.count, 2.0),
    Kind("prefill", "prefill_tokens_per_s", units.per_second, 100.0),
    Kind("MTP acceptance", "acceptance_rate", lambda v: units.percent(v, 0), 1.0, fixed=True),
)


def of_card(index: int, total: int | None) -> tuple[Kind, Kind]:
    """Memory, and traffic with what the card sends above what it receives."""
    name = f"card {index}"
    fixed = total is not None
    memory = Kind(f"{name} VRAM", f"{name} vram_used_bytes", lambda v: units.gib(v, 1), float(total or 2**30), fixed)
    traffic = Kind(
        f"{name} PCIe TX/RX",
        f"{name} pcie_tx_bytes_per_s",
        units.rate,
        1e6,
        below=f"{name} pcie_rx_bytes_per_s",
    )
    return memory, traffic


def step_for(span_s: float, columns: int) -> int:
    """Seconds a column, so that the graph goes over about this span."""
    wanted = span_s / max(1, columns)
    return next((step for step in _STEPS if step >= wanted), _STEPS[-1])


def picture(kind: Kind, rings: Callable[[str], Series], now: float, columns: int, step_s: int) -> Picture:
    """A graph at this moment."""
    up = columns_of(rings(kind.ring), now, columns, step_s)
    down = columns_of(rings(kind.below), now, columns, step_s) if kind.below else None
    most = max((value for value in (*up, *(down or ())) if value is not None), default=0.0)
    top = kind.least if kind.fixed else ceiling(max(most, kind.least))
    return Picture(f"{kind.title} to {kind.write(top)}", up, top, down)


def columns_of(series: Series, now: float, columns: int, step_s: int) -> tuple[Column, ...]:
    """One value a column, the largest of its time; the last one is the time that is under way."""
    first = int(now // step_s) - columns + 1
    found: list[Column] = [None] * columns
    for at, value in series.since(first * step_s):
        column = int(at // step_s) - first
        if value is not None and column < columns:
            found[column] = value if found[column] is None else max(value, found[column] or 0.0)
    return tuple(found)


def spanned(columns: int, step_s: int) -> str:
    """What the graphs go over, from their left edge to their right one."""
    return f"-{columns * step_s // 60} min … now, {step_s} s a column"


def ceiling(value: float) -> float:
    """The next of 1, 2, 5, 10, 20 … : a scale that does not change with every sample."""
    size = 10.0 ** math.floor(math.log10(value))
    return next(step * size for step in (1.0, 2.0, 5.0, 10.0) if step * size >= value * (1 - 1e-9))


def eighths(values: Sequence[Column], top: float, rows: int) -> tuple[int | None, ...]:
    """Heights in eighths of a row; what is known is at least one: zero is a measurement, a gap is none."""
    full = rows * 8
    return tuple(None if value is None else max(1, min(full, round(value / top * full))) for value in values)
