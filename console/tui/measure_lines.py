"""The measures of a run as a table: medians, change, interval, and what it shows. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from console import units
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.lab.results import Metric
    from console.lab.stats import Comparison
    from console.lab.view import RunView

_VERDICTS = {
    "better": ("▲ better", "good"),
    "worse": ("▼ worse", "bad"),
    "equivalent": ("= same", ""),
    "undecided": ("? open", "dim"),
}
HEAD = "95 % interval"
"""What only the table's first row says."""
_SHORT = {"better": "?▲ short", "worse": "?▼ short", "equivalent": "?= short"}
"""Open, and just short of that word: where there is no room to say so."""
_NAME, _VALUE, _CHANGE, _SPAN = 22, 9, 9, 17
_NARROW_CHANGE, _NARROW_SPAN = 8, 17
_WHOLE = _NAME + 2 * _VALUE + _CHANGE + _SPAN + 9
"""In fewer cells the medians go: the interval and what it shows are the evidence."""
_ROOMY = _WHOLE + 16
"""From so many cells on an open one says what it lacks."""


def measure_lines(run: RunView, width: int) -> Iterator[Line]:
    """A row for every measure and pair of arms: those that are judged first."""
    if not run.metrics:
        return
    narrow, roomy = width < _WHOLE, width >= _ROOMY
    if any(pair.rounds == 1 for metric in run.metrics.values() for pair in metric.compare):
        from console.lab.words import ONE_ROUND

        yield line(ONE_ROUND, "warn")
    two = len(run.arms) == 2
    columns = () if narrow else run.arms if two else ("median",)
    heads = "".join(f"{name[: _VALUE - 1]:>{_VALUE}}" for name in columns)
    change = "change" if two else f"vs {run.arms[0]}"[: _CHANGE - 1] if run.arms else ""
    wide, span = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    room = _NAME if two else _NAME + _arm_room(narrow)
    own = f"{run.own_arm}: the preset's own" if run.own_arm else ""
    name = units.clip(own if two else f"arm ({own})" if own else "measure, arm", room)
    yield line(f"{name:<{room}}{heads}{change:>{wide}}{HEAD:>{span}}", "dim")
    for metric in sorted(run.metrics.values(), key=lambda m: not _judged(m.name)):
        for pair in metric.compare:
            yield _pair(metric, pair, two=two, narrow=narrow, says=_says(pair, run.state, roomy=roomy))


def _arm_room(narrow: bool) -> int:
    """Cells of the column that names the arm, where there are several."""
    return _VALUE - 1 if narrow else _VALUE


def _judged(name: str) -> bool:
    from console.lab.measures import MEASURES

    return name not in MEASURES or MEASURES[name].judged


def _short(name: str) -> str:
    """A measure's name with its unit in fewer letters: the column is narrow at 80 cells."""
    return name.replace("output_tokens_per_s", "tok/s").replace("tokens_per_s", "tok/s")


def _value(name: str, number: float | None) -> str:
    from console.lab.markdown import value

    return value(name, number)


def _median(metric: Metric, arm: str) -> str:
    """An arm's median; the unit stands in the measure's name or is the usual one of a latency."""
    number = metric.arms[arm].median if arm in metric.arms else None
    return f"{_value(metric.name, number).removesuffix(' tok/s'):>{_VALUE}}"


def _signed(ratio: float) -> str:
    """A ratio as a signed change without its unit."""
    return units.change(ratio).removesuffix(" %")


def _says(pair: Comparison, state: str, *, roomy: bool) -> tuple[str, str]:
    """What its interval shows, with its sign and tone; of an open one what it lacks."""
    if pair.ratio is None:
        return "", ""
    word, tone = _VERDICTS.get(pair.verdict, (pair.verdict, ""))
    if pair.verdict != "undecided":
        return word, tone
    if roomy and state != "running":
        # Imported here: the lab is not loaded before there is a run to show.
        from console.lab.words import lacks

        found = lacks(pair.short_of, pair.more_rounds, pair.ratio)
        return (f"? {found}" if found else word), "warn" if pair.short_of else tone
    return (_SHORT.get(pair.short_of, word), "warn") if pair.short_of else (word, tone)


def _pair(metric: Metric, pair: Comparison, *, two: bool, narrow: bool, says: tuple[str, str]) -> Line:
    arm = "" if two else f"{units.clip(pair.arm, _arm_room(narrow) - 1):<{_arm_room(narrow)}}"
    name = f"{_short(metric.name):<{_NAME}}{arm}"
    columns = () if narrow else (pair.against, pair.arm) if two else (pair.arm,)
    medians = "".join(_median(metric, arm) for arm in columns)
    wide, room = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    span = "" if pair.lo is None or pair.hi is None else f"[{_signed(pair.lo)}, {_signed(pair.hi)}]"
    word, tone = says
    judged = _judged(metric.name)
    change = units.change(pair.ratio)
    return (
        (name, "" if judged else "dim"),
        (medians, "" if judged else "dim"),
        (f"{change:>{wide}}", tone if judged else "dim"),
        (f"{span:>{room}}", "dim"),
        ("" if not judged else f"  {word}" if two or not narrow else f" {word[:2]}", tone),
    )
