"""An A/B run as lines: progress while it goes on, the verdict and every measure afterwards. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from console import hints, units
from console.errors import ConsoleError
from console.tui.figures import coarse
from console.tui.interval_lines import interval_lines
from console.tui.keycaps import cap
from console.tui.measure_lines import HEAD, glossary, measure_lines
from console.tui.stories import about, left, progress_bar, wrapped
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.lab.view import RunView

_WORDS = {
    "adopt": ("✓", "good"),
    "keep": ("=", "strong"),
    "noise floor": ("~", "strong"),
    "undecided": ("?", "warn"),
    "interrupted": ("◌", "warn"),
}
_NO_WORD = ("✖", "bad")
_BAR = 30
_SOON_S = 3.0
_CLAUSE = 30
"""A longer clause is no headline."""


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
    preset = units.clip(run.preset, max(7, width - (51 if run.simulated else 40)))
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
            *((cap("mtp"), "strong"), (" MTP off and on   ", "dim")),
            *((cap("chunk"), "strong"), (" chunk budgets   ", "dim")),
            *((cap("aa"), "strong"), (" noise floor", "dim")),
        ),
    ]


def news(run: RunView) -> str:
    """That it has ended, in a line; it may have done so while nobody looked."""
    return f"the A/B run of {run.preset or run.id} has ended: {_word(run)}; {cap('details')} shows it"


def run_lines(run: RunView, width: int, *, whole: bool = False) -> list[Line]:
    """The run, most important first, so that a short panel shows what matters.

    Args:
        run: the run.
        width: in cells.
        whole: all of it follows, so nothing needs to lead there.
    """
    judged, others = (list(measure_lines(run, width, judged=which)) for which in (True, False))
    if run.state == "running" and run.verdict is None:
        return [*_live(run, width), *judged, *_recomputed(run, width), *others]
    if whole or not judged:
        return [*_ended(run, width, whole=whole), *judged, *others]
    # A panel is short: the figures that decide are the evidence, the sentence tells what they come to.
    return [_headline(run), *_below(run), *judged, *wrapped(_parted(run)[1], width - 1), *others]


def fitting(lines: Sequence[Line], height: int) -> Sequence[Line]:
    """The part of a run's lines that fits; a table of which no row would be left goes with its head."""
    shown = lines[:height]
    return shown[:-1] if 0 < len(shown) < len(lines) and any(HEAD in text for text, _ in shown[-1]) else shown


def full(run: RunView, width: int) -> list[Line]:
    """The run with nothing left out."""

    def listed(title: str, texts: Sequence[str], tone: str = "") -> list[Line]:
        # Reports mark words with asterisks; here they would be read as such.
        rows = [row for text in texts for row in wrapped(f"· {text.replace('*', '')}", width, tone, indent="  ")]
        return [(), line(title, "title"), *rows] if rows else []

    differs, rounds = ", ".join(run.differs) or "nothing", units.counted(run.rounds, "round")
    about = f"run {run.id} · {run.size}, {rounds} · differs in {differs}"
    return [
        *run_lines(run, width, whole=True),
        *_pictured(run, width),
        *listed("what the arms change", _changes(run)),
        *listed("reasons", run.verdict.why if run.verdict else ()),
        *listed("what the words mean", _meanings(run), "dim"),
        *listed("what the measures are", glossary(run, width), "dim"),
        *listed("to know", run.warnings, "dim"),
        (),
        *wrapped(about, width, "dim"),
        line(hints.told(f"`qwen-console ab show {run.id}`").strip("`"), "dim"),
    ]


def _pictured(run: RunView, width: int) -> list[Line]:
    pictures = interval_lines(run, width)
    return [(), *pictures] if pictures else []


def _changes(run: RunView) -> list[str]:
    """Which arm the preset runs, and each arm from what to what."""
    own = [f"{run.own_arm} is what {run.preset} itself runs"] if run.own_arm else []
    return [*own, *run.changes]


def plan_text(plan: Plan) -> list[str]:
    """A plan as the sentences of a question."""
    from console.lab.difference import arm_texts
    from console.lab.own_arm import own_arm, settings

    own = own_arm(plan)
    arms = " · ".join(f"{arm.name} (the preset's own)" if arm.name == own else arm.name for arm in plan.arms)
    changes, starts, requests = arm_texts(plan), len(plan.order), plan.requests
    # What each changes stands below.
    keys = "" if changes else f"; they differ in {', '.join(plan.differs) or 'nothing, on purpose'}"
    return [
        f"{plan.base.name}: arms {arms}{keys}.",
        *([f"None of them is what it runs itself: {settings(plan)}."] if own is None and changes else []),
        *(f"{text}." for text in changes),
        f"{plan.rounds_text}, {starts} starts of the server ({' '.join(plan.order)}), size {plan.size}: "
        f"about {about(plan.estimate_s)}.",
        f"{requests} request{'' if requests == 1 else 's'} a start, {requests * starts} in all: "
        f"{', '.join(plan.workloads)}.",
        *(f"{note}." for note in plan.notes),
    ]


def _live(run: RunView, width: int) -> list[Line]:
    rest = "" if run.eta_s is None else "any moment" if run.eta_s < _SOON_S else left(run.eta_s)
    return [
        (
            *progress_bar(run.progress, min(_BAR, max(10, width // 3))),
            (f"   {rest}", "strong"),
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
        spans.append((f"{mark} {arm}  ", tone))
    return tuple(spans)


def _ended(run: RunView, width: int, *, whole: bool) -> list[Line]:
    lines = [*_said(run, width), *_below(run)]
    if (arm := winner(run)) and run.state != "running":
        lines.append((*_offer(arm), *(() if whole else _whole_run())))
    return lines


def _offer(arm: str) -> Line:
    return ((cap("adopt"), "strong"), (f" writes arm {arm} as a new preset   ", ""))


def _whole_run() -> Line:
    return ((cap("details"), "strong"), (" all of the run", "dim"))


def _text(run: RunView) -> str:
    """The run's word and its sentence."""
    word = _word(run)
    said = run.verdict.sentence if run.verdict and _measured(run) else run.problem or "it did not come to its end"
    return said if said.startswith(word) else f"{word}: {said}"


def _measured(run: RunView) -> bool:
    return run.state in ("done", "running") and run.verdict is not None


def _said(run: RunView, width: int) -> list[Line]:
    mark, tone = _WORDS.get(_word(run), _NO_WORD)
    first, *rest = wrapped(f"{mark} {_text(run)}", width - 1, indent="  ")
    return [((mark, tone), (first[0][0][len(mark) :], "strong")), *(line(row[0][0], "strong") for row in rest)]


def _headline(run: RunView) -> Line:
    """What it came to in a few words, and what can be done with it."""
    mark, tone = _WORDS.get(_word(run), _NO_WORD)
    offer = _offer(arm) if (arm := winner(run)) else ()
    said = f" {_parted(run)[0]}   "
    return ((mark, tone), (said, "strong"), *offer, *_whole_run())


def _parted(run: RunView) -> tuple[str, str]:
    """The run's sentence: its first words, which stand in the headline, and what comes behind them."""
    said, _, rest = _text(run).partition(": ")
    first = rest.partition(":")[0].partition(";")[0]
    if said == _word(run) and len(first) <= _CLAUSE:
        return f"{said}: {first}", rest[len(first) :].lstrip(":; ")
    return said, rest


def _below(run: RunView) -> list[Line]:
    """What it is at, or how far it came."""
    if run.state == "running":
        return [(("now   ", "dim"), (run.step, ""))]
    if run.resumable:
        return [line(hints.told(f"`qwen-console ab resume {run.id}` goes on with it"), "dim"), _boots(run)]
    if run.order and (not _measured(run) or any(not boot.valid for boot in run.boots)):
        return [_boots(run)]
    return []


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
    """The arm that the verdict advises to adopt; none where the preset runs it already."""
    arm = run.verdict.arm if run.state == "done" and run.verdict else None
    return None if arm == run.own_arm else arm


def no_advice(run: RunView) -> ConsoleError:
    """That no arm is advised, why, and how one is written as a preset all the same."""
    others = [] if run.kind == "aa" else [arm for arm in run.arms if arm != run.own_arm]
    which = others[0] if len(others) == 1 else "ARM"
    fix = f"`qwen-console ab adopt {run.id} {which}` writes an arm all the same" if others else ""
    if len(others) > 1:
        fix += f"; ARM is one of {', '.join(others)}"
    runs = run.verdict.arm if run.verdict and run.verdict.arm == run.own_arm else None
    what = f"{runs} is what {run.preset} itself runs" if runs else "this run advises to adopt nothing"
    return ConsoleError(what, _text(run), fix)


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
