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
_LATER = "… later"
"""Of a run that goes on: words come with its last round, before it only where chance is hardly possible."""
_NAME, _VALUE, _CHANGE, _SPAN = 22, 9, 9, 17
_NARROW_CHANGE, _NARROW_SPAN = 8, 17
_WHOLE = _NAME + 2 * _VALUE + _CHANGE + _SPAN + 9
"""In fewer cells the medians go: the interval and what it shows are the evidence."""
_ROOMY = _WHOLE + 16
"""From so many cells on an open one says what it lacks."""
_SPARE = 20
"""So many cells more than that: then measures stand there in plain words."""
_FIRST = ("worse", "better", "undecided", "equivalent")


def measure_lines(run: RunView, width: int, *, judged: bool) -> Iterator[Line]:
    """A row for every measure and pair of arms: of those that are judged, or of the others.

    Above those that are judged stands the head of the table; what decides is first.
    """
    metrics = [metric for metric in run.metrics.values() if _judged(metric.name) is judged]
    if not run.metrics:
        return
    narrow, roomy = width < _WHOLE, width >= _ROOMY
    room = _name_room(run, width)
    if judged:
        yield from _head(run, room, narrow=narrow)
    for metric in sorted(metrics, key=lambda metric: _weight(run, metric)):
        for pair in metric.compare:
            says = _says(pair, run.state, roomy=roomy)
            yield _pair(metric, pair, room, two=len(run.arms) == 2, narrow=narrow, says=says)


def _head(run: RunView, room: int, *, narrow: bool) -> Iterator[Line]:
    if any(pair.rounds == 1 for metric in run.metrics.values() for pair in metric.compare):
        from console.lab.words import ONE_ROUND

        yield line(ONE_ROUND, "warn")
    two = len(run.arms) == 2
    columns = () if narrow else run.arms if two else ("median",)
    heads = "".join(f"{name[: _VALUE - 1]:>{_VALUE}}" for name in columns)
    change = "change" if two else f"vs {run.arms[0]}"[: _CHANGE - 1] if run.arms else ""
    wide, span = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    room += 0 if two else _arm_room(narrow)
    own = f"{run.own_arm}: the preset's own" if run.own_arm else ""
    name = units.clip(own if two else f"arm ({own})" if own else "measure, arm", room)
    yield line(f"{name:<{room}}{heads}{change:>{wide}}{HEAD:>{span}}", "dim")


def _weight(run: RunView, metric: Metric) -> tuple[bool, int]:
    """What the run is about first, then by what was found; while it goes on rows keep their places."""
    from console.lab.measures import PRIMARY

    words = [pair.short_of or pair.verdict for pair in metric.compare] if run.state != "running" else []
    ranks = [_FIRST.index(word) for word in words if word in _FIRST]
    return metric.name != PRIMARY.get(run.kind), min(ranks, default=len(_FIRST))


def titled(name: str, room: int, *, plain: bool) -> str:
    """A measure in plain words, else in the field's terms, for a column of so many cells."""
    from console.lab.measures import MEASURES

    return units.clip(MEASURES[name].title, room - 1) if plain and name in MEASURES else _short(name)


def glossary(run: RunView, width: int) -> list[str]:
    """What the names in the table mean, where it has no room to say so itself."""
    from console.lab.measures import MEASURES

    if _name_room(run, width) > _NAME:
        return []
    return [f"{_short(name)}: {MEASURES[name].title}" for name in run.metrics if name in MEASURES]


def _name_room(run: RunView, width: int) -> int:
    """Cells of the column of names: wider only where all of them gain by it."""
    from console.lab.measures import MEASURES

    longest = max((len(MEASURES[name].title) for name in run.metrics if name in MEASURES), default=0)
    spare = width - _ROOMY - (0 if len(run.arms) == 2 else _VALUE)
    return min(_NAME + spare, max(longest, _NAME) + 1) if spare >= _SPARE else _NAME


def _arm_room(narrow: bool) -> int:
    """Cells of the column that names the arm, where there are several."""
    return _VALUE - 1 if narrow else _VALUE


def _judged(name: str) -> bool:
    from console.lab.measures import MEASURES

    return name not in MEASURES or MEASURES[name].judged


def _short(name: str) -> str:
    from console.lab.measures import MEASURES

    return MEASURES[name].short if name in MEASURES else name


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
    if state == "running":
        return _LATER, "dim"
    if roomy:
        # Imported here: the lab is not loaded before there is a run to show.
        from console.lab.words import lacks

        found = lacks(pair.short_of, pair.more_rounds, pair.ratio)
        return (f"? {found}" if found else word), "warn" if pair.short_of else tone
    return (_SHORT.get(pair.short_of, word), "warn") if pair.short_of else (word, tone)


def _pair(metric: Metric, pair: Comparison, room: int, *, two: bool, narrow: bool, says: tuple[str, str]) -> Line:
    arm = "" if two else f"{units.clip(pair.arm, _arm_room(narrow) - 1):<{_arm_room(narrow)}}"
    name = f"{titled(metric.name, room, plain=room > _NAME):<{room}}{arm}"
    columns = () if narrow else (pair.against, pair.arm) if two else (pair.arm,)
    medians = "".join(_median(metric, arm) for arm in columns)
    wide, cells = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    span = "" if pair.lo is None or pair.hi is None else f"[{_signed(pair.lo)}, {_signed(pair.hi)}]"
    word, tone = says
    judged = _judged(metric.name)
    change = units.change(pair.ratio)
    return (
        (name, "" if judged else "dim"),
        (medians, "" if judged else "dim"),
        (f"{change:>{wide}}", tone if judged else "dim"),
        (f"{span:>{cells}}", "dim"),
        ("" if not judged else f"  {word}" if two or not narrow else f" {word[:2]}", tone),
    )
