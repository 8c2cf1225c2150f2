"""A run's results → its overall verdict. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from console import units
from console.lab.history import Floor
from console.lab.measures import MEASURES, PRIMARY, said
from console.lab.own_arm import to_change
from console.lab.results import Results
from console.lab.verdict import ArmState, Finding, Verdict, half_widths, overall

_BEST_FIRST = ("adopt", "undecided", "keep", "invalid")


def judge(results: Results, *, finished: bool) -> Verdict:
    """Judge every arm against the first; of several the best word counts.

    Args:
        results: the run as far as it has come.
        finished: whether all of it ran; a run that was cut short never says adopt.
    """
    plan = results.plan
    base, *others = [arm.name for arm in plan.arms]
    by_arm = {arm: judge_arm(results, base, arm) for arm in others}
    verdicts = list(by_arm.values())
    best = min(verdicts, key=lambda verdict: (_BEST_FIRST.index(verdict.overall), _gain(results, verdict)))
    if len(verdicts) > 1:
        best = replace(best, why=tuple(f"{verdict.sentence}" for verdict in verdicts))
    best = replace(best, why=(*best.why, *_beside(results)))
    if not finished:
        return _cut_short(results, best)
    if change := to_change(plan, best, by_arm):
        best = replace(best, sentence=f"{best.sentence}. {change}")
    if (settled := results.last("settled")) is not None:
        head = f"settled after {settled['round']} of {plan.rounds} rounds"
        return replace(best, sentence=f"{best.sentence} ({head})")
    return best


def _gain(results: Results, verdict: Verdict) -> float:
    """Orders arms that may be adopted: the smaller, the more is won in the measure that decides."""
    if verdict.arm is None:
        return 0.0
    found = [f for f in findings(results, verdict.arm) if f.verdict == "better" and f.ratio]
    primary = next((f for f in found if f.name == _primary(results, verdict.arm)), None)
    return min(
        (math.log(f.ratio) * (1 if f.lower_is_better else -1) for f in ([primary] if primary else found) if f.ratio),
        default=0.0,
    )


def _cut_short(results: Results, best: Verdict) -> Verdict:
    """A run that did not come to its end advises nothing; what speaks against an arm stands."""
    done, planned = len(results.boots), len(results.plan.order)
    word = "keep" if best.overall == "keep" and results.plan.kind != "aa" else "undecided"
    head = f"the run was cut short after {done} of {planned} boots"
    advises = best.overall in ("adopt", "keep") and word == "undecided"
    sentence = f"{head}, which advises nothing; so far: {best.sentence}" if advises else f"{head}; {best.sentence}"
    return Verdict(word, sentence, best.why)


def _primary(results: Results, arm: str) -> str | None:
    """The measure that decides: that of the run's kind, or of speculation where only one arm speculates."""
    base = results.plan.arms[0].name
    drafts = [results.plan.preset_of(name).speculative is not None for name in (base, arm)]
    return PRIMARY.get("mtp" if drafts[0] != drafts[1] else results.plan.kind)


def judge_arm(results: Results, base: str, arm: str) -> Verdict:
    """One arm against the base."""
    rounds = {boot.round for boot in results.valid(base)} & {boot.round for boot in results.valid(arm)}
    states = [_state(results, name) for name in (base, arm)]
    return overall(
        results.plan.kind,
        len(rounds),
        states[0],
        states[1],
        findings(results, arm),
        primary=_primary(results, arm),
        break_even=_break_even(results, base, arm),
    )


def _state(results: Results, arm: str) -> ArmState:
    boots = [boot for boot in results.boots if boot.arm == arm]
    start, end, _ = results.drafts(arm)
    long = results.after_long(arm)
    return ArmState(
        name=arm,
        valid_boots=sum(boot.valid for boot in boots),
        invalid=tuple(boot.reason for boot in boots if boot.reason and not boot.crash),
        crashes=tuple(str(boot.crash["what"]) for boot in boots if boot.crash),
        speculates=results.plan.preset_of(arm).speculative is not None,
        acceptance=(start.acceptance if start else None, end.acceptance if end else None),
        acceptance_after_long=long.acceptance if long else None,
        probes=results.probes(arm),
    )


def findings(results: Results, arm: str) -> Sequence[Finding]:
    """Every judged measure of an arm."""
    names = [name for name, measure in MEASURES.items() if measure.judged and name in results.metrics]
    alpha = (1 - results.rule.decide) / max(len(names), 1)
    found = []
    for name in names:
        measure, metric = MEASURES[name], results.metrics[name]
        pair = next(pair for pair in metric.compare if pair.arm == arm)
        found.append(
            Finding(
                name,
                measure.said,
                pair.verdict,
                pair.ratio,
                pair.lo,
                pair.hi,
                pair.warnings[0] if pair.warnings else "",
                measure.lower_is_better,
                certain=pair.p is not None and pair.p <= alpha,
            )
        )
    return found


def noise_floor(results: Results) -> Floor | None:
    """What an A/A run found; `None` for other runs, and for one round."""
    if results.plan.kind != "aa":
        return None
    arm = results.plan.arms[1].name
    rounds = {boot.round for boot in results.valid(arm)} & {
        boot.round for boot in results.valid(results.plan.arms[0].name)
    }
    widths = half_widths(findings(results, arm))
    return Floor(results.id, len(rounds), widths, results.plan.size) if len(rounds) > 1 and widths else None


def _beside(results: Results) -> list[str]:
    """What stands beside every verdict: the noise floor, what was pooled, what the arm costs and refuses."""
    return [*_floor_text(results), *_pooled_text(results), *_memory_text(results), *_refusals(results)]


def _floor_text(results: Results) -> list[str]:
    floor = results.lent.floor
    if floor is None or results.plan.kind == "aa":
        return []
    shown = [
        f"{said(name)} ±{width * 100:.1f} %" for name, width in floor.half_width.items() if name in results.metrics
    ]
    other = f", size {floor.size}" if floor.size not in ("", results.plan.size) else ""
    head = f"noise floor ({floor.run}, {floor.rounds} rounds{other})"
    return [f"{head}: equal arms come apart by {', '.join(shown)}"] if shown else []


def _pooled_text(results: Results) -> list[str]:
    """Which spread the intervals rest on."""
    pairs = [(name, pair) for name, metric in results.metrics.items() for pair in metric.compare if pair.pooled_df]
    if not pairs:
        return []
    judged = [(name, pair) for name, pair in pairs if MEASURES[name].judged] or pairs
    shown = [f"{said(name)} {(pair.spread or 0) * 100:.1f} % ({pair.df} degrees of freedom)" for name, pair in judged]
    runs = len(results.lent.runs)
    head = (
        f"boot-to-boot spread pooled with {runs} earlier run{'s' if runs > 1 else ''} ({', '.join(results.lent.runs)})"
    )
    return [f"{head}: {', '.join(dict.fromkeys(shown))}"]


def _memory_text(results: Results) -> list[str]:
    """KV tokens and memory of each arm, where they differ."""
    costs = {}
    for arm in results.plan.arms:
        boots = results.valid(arm.name)
        if boots:
            env = boots[0].env
            peak = env.get("vram_peak_bytes") or ()
            costs[arm.name] = (env.get("kv_tokens"), tuple(peak))
    if results.plan.kind == "aa" or not any(cost[0] or any(cost[1]) for cost in costs.values()):
        return []
    texts = []
    for name, (tokens, peak) in costs.items():
        cards = " + ".join(units.gib(card) for card in peak)
        texts.append(f"{name}: {units.count(tokens)} KV tokens{', ' + cards if cards else ''}")
    return [f"memory: {'; '.join(texts)}"]


def _refusals(results: Results) -> list[str]:
    """Settings that an arm refuses and the base takes."""
    base = results.probes(results.plan.arms[0].name).get("sampling_extra")
    found = []
    for arm in results.plan.arms[1:]:
        tally, note = (
            results.probes(arm.name).get("sampling_extra"),
            results.probe_notes(arm.name).get("sampling_extra"),
        )
        if base and tally and tally[0] < base[0] and note:
            found.append(f"{arm.name}: {note}; a client that sends them gets an error")
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
