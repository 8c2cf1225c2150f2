"""Counters, gauges and histograms written as a Prometheus text page."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

Labels = tuple[tuple[str, str], ...]
Kind = Literal["counter", "gauge", "histogram"]


class Histogram:
    """Counts below fixed bounds, and a sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(float(bound) for bound in bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Take one sample."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many samples there were."""
        return sum(self.counts)


@dataclass(slots=True)
class Family:
    """One metric name with all its series."""

    name: str
    """Without `_total`, as it is declared."""
    kind: Kind
    about: str
    series: dict[Labels, float | Histogram] = field(default_factory=dict)
    created: float | None = None
    """Unix time; `None` leaves the `_created` series out."""

    def add(self, amount: float, labels: Labels) -> None:
        """Raise the series with these labels."""
        value = self.series[labels]
        assert not isinstance(value, Histogram)
        self.series[labels] = value + amount

    def lines(self) -> Iterable[str]:
        """The family's part of the page."""
        shown = f"{self.name}_total" if self.kind == "counter" else self.name
        yield f"# HELP {shown} {self.about}"
        yield f"# TYPE {shown} {self.kind}"
        for labels, value in self.series.items():
            if isinstance(value, Histogram):
                yield from _histogram(self.name, labels, value)
            else:
                yield f"{shown}{_braces(labels)} {_number(value)}"
        if self.kind != "gauge" and self.created is not None:
            yield f"# HELP {self.name}_created {self.about}"
            yield f"# TYPE {self.name}_created gauge"
            for labels in self.series:
                yield f"{self.name}_created{_braces(labels)} {_number(self.created)}"


def page(families: Iterable[Family]) -> str:
    """The whole text."""
    return "\n".join(line for family in families for line in family.lines()) + "\n"


def labels(**named: str) -> Labels:
    """Labels in the order in which they are written."""
    return tuple(sorted(named.items()))


def _histogram(name: str, given: Labels, value: Histogram) -> Iterable[str]:
    running = 0
    for bound, count in zip((*map(_number, value.bounds), "+Inf"), value.counts, strict=True):
        running += count
        yield f"{name}_bucket{_braces(tuple(sorted((*given, ('le', bound)))))} {_number(running)}"
    yield f"{name}_count{_braces(given)} {_number(running)}"
    yield f"{name}_sum{_braces(given)} {_number(value.sum)}"


def _braces(given: Labels) -> str:
    if not given:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in given) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(float(value))
