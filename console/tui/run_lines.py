"""An A/B run as lines: progress while it goes on, the verdict and every measure afterwards. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from console import hints, units
from console.tui.figures import coarse
from console.tui.interval_lines import interval_lines
from console.tui.stories import about, progress_bar, wrapped
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.lab.results import Metric
    from console.lab.stats import Comparison
    from console.lab.view import RunView

_WORDS = {
    "adopt": ("✓", "good"),
    "keep": ("=", "strong"),
    "noise floor": ("~", "strong"),
    "undecided": ("?", "warn"),
    "interrupted": ("◌", "warn"),
}
_NO_WORD = ("✖", "bad")
_VERDICTS = {
    "better": ("▲ better", "good"),
    "worse": ("▼ worse", "bad"),
    "equivalent": ("= same", ""),
    "undecided": ("? open", "dim"),
}
_BAR = 30
_SOON_S = 3.0
_NAME, _VALUE, _CHANGE, _SPAN = 22, 9, 9, 17
_NARROW_CHANGE, _NARROW_SPAN = 8, 16
_WHOLE = _NAME + 2 * _VALUE + _CHANGE + _SPAN + 9
"""In fewer cells the medians go: the interval and what it shows are the evidence."""


def title(run: RunView | None) -> str:
    """What is compared, where."""
    if run is None:
        return "A/B"
    kind = {"mtp": "MTP", "aa": "A/A", "chunk": "chunk"}.get(run.kind, run.kind)
    tag = "SIMULATED · " if run.simulated else ""
    return f"A/B {tag}{kind} · {run.preset}" if run.preset else f"A/B {run.id}"


def listed(run: RunView, width: int, *, chosen: bool) -> Line:
    """A run as a line of the list: when, what, where, and what came of it."""
    word = _word(run)
    mark, tone = _WORDS.get(word, ("▸", "strong") if run.state == "running" else _NO_WORD)
    kind = {"mtp": "MTP", "aa": "A/A", "chunk": "chunk"}.get(run.kind, run.kind)
    stamp = run.id.partition(".")[0]
    when = f"{stamp[4:6]}-{stamp[6:8]} {stamp[9:11]}:{stamp[11:13]}" if stamp[:8].isdigit() else run.id
    said = f"{run.progress * 100:.0f} %" if run.state == "running" else ""
    preset = units.clip(run.preset, max(10, width - 46))
    return (
        ("▸ " if chosen else "  ", "strong"),
        (f"{when:<12} {kind:<8} ", "chosen" if chosen else ""),
        (f"{preset}  ", ""),
        (f"{mark} {word} {said}".rstrip(), tone),
        ("  SIMULATED" if run.simulated else "", "dim"),
    )


def nothing() -> list[Line]:
    """Before the first run."""
    return [
        line("no run yet: is a setting really better on this machine?", "dim"),
        (
            ("m", "strong"),
            (" MTP off and on   ", "dim"),
            ("c", "strong"),
            (" chunk budgets   ", "dim"),
            ("a", "strong"),
            (" noise floor", "dim"),
        ),
    ]


def news(run: RunView) -> str:
    """That it has ended, in a line; it may have done so while nobody looked."""
    return f"the A/B run of {run.preset or run.id} has ended: {_word(run)}; v shows it"


def run_lines(run: RunView, width: int) -> list[Line]:
    """The run, most important first, so that a short panel shows what matters."""
    head = _live(run, width) if run.state == "running" and run.verdict is None else _ended(run, width)
    return [*head, *_recomputed(run, width), *_measures(run, narrow=width < _WHOLE)]


def full(run: RunView, width: int) -> list[Line]:
    """The run with nothing left out."""

    def listed(title: str, texts: Sequence[str], tone: str = "") -> list[Line]:
        rows = [row for text in texts for row in wrapped(f"· {text}", width, tone, indent="  ")]
        return [(), line(title, "title"), *rows] if rows else []

    differs = ", ".join(run.differs) or "nothing"
    about = f"run {run.id} · {run.size}, {run.rounds} rounds · differs in {differs}"
    return [
        *run_lines(run, width),
        *_pictured(run, width),
        *listed("reasons", run.verdict.why if run.verdict else ()),
        *listed("what the words mean", _meanings(run), "dim"),
        *listed("to know", run.warnings, "dim"),
        (),
        *wrapped(about, width, "dim"),
        line(hints.told(f"`qwen-console ab show {run.id}`").strip("`"), "dim"),
    ]


def _pictured(run: RunView, width: int) -> list[Line]:
    pictures = interval_lines(run, width)
    return [(), *pictures] if pictures else []


def plan_text(plan: Plan) -> list[str]:
    """A plan as the sentences of a question."""
    arms = " · ".join(arm.name for arm in plan.arms)
    keys = ", ".join(plan.differs) or "nothing, on purpose"
    lines = [
        f"{plan.base.name}: arms {arms}; they differ in {keys}.",
        f"{plan.rounds} rounds, {len(plan.order)} starts of the server ({' '.join(plan.order)}), size {plan.size}: "
        f"about {about(plan.estimate_s)}.",
        f"{plan.requests} requests a start, {plan.requests * len(plan.order)} in all: {', '.join(plan.workloads)}.",
    ]
    return [*lines, *(f"{note}." for note in plan.notes)]


def _live(run: RunView, width: int) -> list[Line]:
    left = "" if run.eta_s is None else "any moment" if run.eta_s < _SOON_S else f"about {about(run.eta_s)} left"
    return [
        (
            *progress_bar(run.progress, min(_BAR, max(10, width // 3))),
            (f"   {left}", "strong"),
            (f"   {coarse(run.elapsed_s)} so far", "dim"),
        ),
        (("now   ", "dim"), (run.step, "")),
        _boots(run),
    ]


def _boots(run: RunView) -> Line:
    """Every boot in its order: done, void, under way, to come."""
    ended = {boot.n: boot for boot in run.boots}
    spans = [("boots ", "dim")]
    current = False
    for n, arm in enumerate(run.order, start=1):
        boot = ended.get(n)
        if boot is not None:
            mark, tone = ("✓", "good") if boot.valid else ("✖", "bad")
        elif not current and run.state == "running":
            mark, tone, current = "▸", "strong", True
        else:
            mark, tone = "·", "dim"
        spans.append((f"{mark}{arm}  ", tone))
    return tuple(spans)


def _ended(run: RunView, width: int) -> list[Line]:
    whole = run.state in ("done", "running") and run.verdict is not None
    word = _word(run)
    mark, tone = _WORDS.get(word, _NO_WORD)
    said = run.verdict.sentence if run.verdict and whole else run.problem or "it did not come to its end"
    text = said if said.startswith(word) else f"{word}: {said}"
    first, *rest = wrapped(f"{mark} {text}", width - 1, indent="  ")
    lines: list[Line] = [((mark, tone), (first[0][0][len(mark) :], "strong"))]
    lines += [line(row[0][0], "strong") for row in rest]
    if run.state == "running":
        lines.append((("now   ", "dim"), (run.step, "")))
    elif arm := winner(run):
        offer: Line = (("o", "strong"), (f" writes arm {arm} as a new preset   ", ""))
        lines.append((*offer, ("v", "strong"), (" all of the run", "dim")))
    elif run.resumable:
        lines += [line(hints.told(f"`qwen-console ab resume {run.id}` goes on with it"), "dim"), _boots(run)]
    elif run.order and (not whole or any(not boot.valid for boot in run.boots)):
        lines.append(_boots(run))
    return lines


def _word(run: RunView) -> str:
    """The run's word: its verdict once all is measured, its state where it did not get there."""
    from console.lab.words import run_word

    measured = run.state == "running" and run.verdict is not None
    return run_word(run.kind, "done" if measured else run.state, run.verdict.overall if run.verdict else None)


def _meanings(run: RunView) -> list[str]:
    """What the words on the screen mean."""
    from console.lab.words import explained

    word = _word(run)
    return explained(
        "" if word == "running" else word,
        [pair.verdict for metric in run.metrics.values() for pair in metric.compare],
        run.kind,
    )


def winner(run: RunView) -> str | None:
    """The arm that the verdict advises to adopt."""
    return run.verdict.arm if run.state == "done" and run.verdict else None


def _recomputed(run: RunView, width: int) -> list[Line]:
    """Why a warm turn starts later than a cold one: it looks like a mistake and is none."""
    warm, cold = (run.metrics.get(name) for name in ("agent.ttft_warm_s", "agent.ttft_cold_s"))
    if run.kind != "mtp" or run.state != "running" or warm is None or cold is None:
        return []
    medians = [(warm.arms[arm].median, cold.arms[arm].median) for arm in warm.arms if arm in cold.arms]
    if not any(a is not None and b is not None and a > b for a, b in medians):
        return []
    text = "warm above cold: under MTP vLLM computes the last cached block again in every warm turn"
    return wrapped(text, width - 1, "dim")


def _measures(run: RunView, *, narrow: bool) -> Iterator[Line]:
    if not run.metrics:
        return
    if any(pair.rounds == 1 for metric in run.metrics.values() for pair in metric.compare):
        from console.lab.words import ONE_ROUND

        yield line(ONE_ROUND, "warn")
    two = len(run.arms) == 2
    columns = () if narrow else run.arms if two else ("median",)
    heads = "".join(f"{name[: _VALUE - 1]:>{_VALUE}}" for name in columns)
    change = "change" if two else f"vs {run.arms[0]}"[: _CHANGE - 1] if run.arms else ""
    wide, span = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    name = "" if two else "measure, arm"
    yield line(f"{name:<{_NAME if two else _NAME + _VALUE}}{heads}{change:>{wide}}{'95 % interval':>{span}}", "dim")
    for metric in sorted(run.metrics.values(), key=lambda m: not _judged(m.name)):
        for pair in metric.compare:
            yield _pair(metric, pair, two=two, narrow=narrow)


def _judged(name: str) -> bool:
    # Imported here: the lab is not loaded before there is a run to show.
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


def _pair(metric: Metric, pair: Comparison, *, two: bool, narrow: bool) -> Line:
    name = f"{_short(metric.name):<{_NAME}}" if two else f"{_short(metric.name):<{_NAME}}{pair.arm:<{_VALUE}}"
    columns = () if narrow else (pair.against, pair.arm) if two else (pair.arm,)
    medians = "".join(_median(metric, arm) for arm in columns)
    wide, room = (_NARROW_CHANGE, _NARROW_SPAN) if narrow else (_CHANGE, _SPAN)
    span = "" if pair.lo is None or pair.hi is None else f"[{_signed(pair.lo)}, {_signed(pair.hi)}]"
    word, tone = _VERDICTS.get(pair.verdict, (pair.verdict, "")) if pair.ratio is not None else ("", "")
    judged = _judged(metric.name)
    change = units.change(pair.ratio)
    return (
        (name, "" if judged else "dim"),
        (medians, "" if judged else "dim"),
        (f"{change:>{wide}}", tone if judged else "dim"),
        (f"{span:>{room}}", "dim"),
        (f"  {word if two or not narrow else word[:1]}" if judged else "", tone),
    )
