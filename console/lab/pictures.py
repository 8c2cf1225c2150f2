"""The pictures of a report: each measure round by round, the gap a long prompt tears, acceptance by position."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median

from console.lab.measures import MEASURES, PRIMARY, clashes
from console.lab.results import Metric, Results
from console.lab.svg import COLOURS, Chart
from console.lab.trace import Trace

_ROOM = 0.08
_MOST = 4
"""Measures that get a picture of their rounds: what the run is about first."""


def write_pictures(run_dir: Path, results: Results) -> None:
    """Write the SVG files beside the report."""
    for name, _, chart in _pictures(results):
        (run_dir / name).write_text(chart.render(), encoding="utf-8")


def picture_names(results: Results) -> list[tuple[str, str]]:
    """(file name, what it shows) of every picture that this run has."""
    return [(name, text) for name, text, _ in _pictures(results)]


def _pictures(results: Results) -> Iterator[tuple[str, str, Chart]]:
    for metric in _of_interest(results):
        title = f"{metric.name} ({MEASURES[metric.name].title}) by round"
        yield f"rounds-{metric.name.replace('.', '-')}.svg", title, rounds_chart(metric, title)
    if (chart := gap_chart(results)) is not None:
        yield "gaps.svg", "gaps of a stream while a cold long prompt arrives", chart
    if (chart := acceptance_chart(results)) is not None:
        yield "acceptance.svg", "accepted drafts by position", chart


def _of_interest(results: Results) -> list[Metric]:
    first = PRIMARY.get(results.plan.kind)
    names = [name for name in results.metrics if MEASURES[name].judged]
    names.sort(key=lambda name: name != first)
    return [results.metrics[name] for name in names[:_MOST]]


def rounds_chart(metric: Metric, title: str) -> Chart:
    """A dot a boot (the median of its requests), and beside them each arm's median with its interval."""
    unit = MEASURES[metric.name].unit
    scale, shown = (1000.0, "ms") if unit == "s" and _largest(metric) < 1 else (1.0, unit)
    boots = {arm: {n: median(v.values()) * scale for n, v in rounds.items()} for arm, rounds in metric.rounds.items()}
    most = max((n for rounds in boots.values() for n in rounds), default=1)
    values = [value for rounds in boots.values() for value in rounds.values()]
    for figure in metric.arms.values():
        values += [bound * scale for bound in (figure.lo, figure.hi) if bound is not None]
    chart = Chart(title, "round (right: median and 95 % interval over boots)", shown, (0.4, most + 1.8), _span(values))
    chart.x_names = ["", *(str(n) for n in range(1, most + 1)), "all"]
    shift = 0.5 / max(len(boots), 1)
    for i, (arm, rounds) in enumerate(boots.items()):
        colour, off = COLOURS[i % len(COLOURS)], (i - (len(boots) - 1) / 2) * shift
        chart.name(arm, colour)
        for n, value in rounds.items():
            chart.point(n + off, value, colour)
        figure = metric.arms[arm]
        if figure.median is not None:
            chart.point(most + 1 + off, figure.median * scale, colour, hollow=True)
            if figure.lo is not None and figure.hi is not None:
                chart.interval(most + 1 + off, figure.lo * scale, figure.hi * scale, colour)
    return chart


def _largest(metric: Metric) -> float:
    return max((figure.median or 0.0 for figure in metric.arms.values()), default=0.0)


def _span(values: list[float]) -> tuple[float, float]:
    """Room for all values; from zero where that costs little."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = (high - low or abs(high) or 1.0) * _ROOM
    return (0.0 if low < 0.4 * high else low - room), high + room


def gap_chart(results: Results) -> Chart | None:
    """The first clash of each arm: every gap at its time, and when the long prompt came and was answered."""
    first: dict[str, tuple[Trace, Trace]] = {}
    for boot in results.boots:
        if boot.valid and boot.arm not in first:
            for _, stream, intruder in clashes(boot.sent):
                first[boot.arm] = (stream, intruder)
                break
    if not first:
        return None
    gaps = {arm: [(b, (b - a) * 1000) for a, b in pairwise(stream.stamps)] for arm, (stream, _) in first.items()}
    if not any(gaps.values()):
        return None
    end = max(stream.stamps[-1] for stream, _ in first.values() if stream.stamps)
    high = max(gap for rows in gaps.values() for _, gap in rows)
    title = "gaps of a stream beside a cold long prompt (first round)"
    chart = Chart(title, "seconds after the stream's request", "ms since the arrival before", (0, end), (0, high * 1.1))
    for i, (arm, rows) in enumerate(gaps.items()):
        chart.name(arm, COLOURS[i % len(COLOURS)])
        chart.line(rows, COLOURS[i % len(COLOURS)])
    stream, intruder = next(iter(first.values()))
    chart.upright(intruder.sent - stream.sent, "long prompt arrives")
    return chart


def acceptance_chart(results: Results) -> Chart | None:
    """Accepted drafts at each position, an arm beside the other."""
    rates: Mapping[str, tuple[float, ...]] = {
        arm.name: whole.rates for arm in results.plan.arms if (whole := results.drafts(arm.name)[2]) and whole.rates
    }
    if not rates:
        return None
    width = max(len(row) for row in rates.values())
    chart = Chart("accepted drafts by position", "position", "share of drafts", (-0.6, width - 0.4), (0, 1))
    chart.x_names = [str(i + 1) for i in range(width)]
    size = 0.7 / len(rates)
    for i, (arm, row) in enumerate(rates.items()):
        chart.name(arm, COLOURS[i % len(COLOURS)])
        for place, rate in enumerate(row):
            chart.bar(place + (i - (len(rates) - 1) / 2) * size, size * 0.9, rate, COLOURS[i % len(COLOURS)])
    return chart
