"""A run's results → its overall verdict. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from console.lab.measures import MEASURES
from console.lab.results import Results
from console.lab.verdict import ArmState, Finding, Verdict, overall

_BEST_FIRST = ("adopt", "undecided", "keep", "invalid")


def judge(results: Results, *, finished: bool) -> Verdict:
    """Judge every arm against the first; of several the best word counts.

    Args:
        results: the run as far as it has come.
        finished: whether all of it ran; a run that was cut short never says adopt.
    """
    plan = results.plan
    base, *others = [arm.name for arm in plan.arms]
    verdicts = [_one(results, base, arm) for arm in others]
    best = min(verdicts, key=lambda verdict: _BEST_FIRST.index(verdict.overall))
    if len(verdicts) > 1:
        best = Verdict(best.overall, best.sentence, tuple(f"{verdict.sentence}" for verdict in verdicts))
    if finished:
        return best
    done, planned = len(results.boots), len(plan.order)
    word = "undecided" if best.overall in ("adopt", "undecided") else best.overall
    return Verdict(word, f"the run was cut short after {done} of {planned} boots; {best.sentence}", best.why)


def _one(results: Results, base: str, arm: str) -> Verdict:
    rounds = {boot.round for boot in results.valid(base)} & {boot.round for boot in results.valid(arm)}
    states = [_state(results, name) for name in (base, arm)]
    return overall(
        results.plan.kind, len(rounds), states[0], states[1], _findings(results, arm), _break_even(results, base, arm)
    )


def _state(results: Results, arm: str) -> ArmState:
    boots = [boot for boot in results.boots if boot.arm == arm]
    start, end, _ = results.drafts(arm)
    return ArmState(
        name=arm,
        valid_boots=sum(boot.valid for boot in boots),
        invalid=tuple(boot.reason for boot in boots if boot.reason and not boot.crash),
        crashes=tuple(str(boot.crash["what"]) for boot in boots if boot.crash),
        speculates=results.plan.preset_of(arm).speculative is not None,
        acceptance=(start.acceptance if start else None, end.acceptance if end else None),
        probes=results.probes(arm),
    )


def _findings(results: Results, arm: str) -> Sequence[Finding]:
    found = []
    for name, measure in MEASURES.items():
        metric = results.metrics.get(name)
        if not measure.judged or metric is None:
            continue
        pair = next(pair for pair in metric.compare if pair.arm == arm)
        advice = pair.warnings[0] if pair.warnings else ""
        found.append(Finding(name, measure.title, pair.verdict, pair.ratio, pair.lo, pair.hi, advice))
    return found


def _break_even(results: Results, base: str, arm: str) -> float | None:
    """Answer tokens after which the arm's faster text has made up for its later start in a warm turn."""
    start, text = (results.metrics.get(name) for name in ("agent.ttft_warm_s", "decode.tpot_s"))
    if start is None or text is None:
        return None
    medians = [metric.arms[name].median for metric in (start, text) for name in (base, arm)]
    if any(value is None for value in medians):
        return None
    start_base, start_arm, text_base, text_arm = (value for value in medians if value is not None)
    later, faster = start_arm - start_base, text_base - text_arm
    return later / faster if later > 0 and faster > 0 else None
