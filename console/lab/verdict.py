"""The overall verdict of a run: adopt, keep, undecided or invalid, with its sentence and its reasons. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console import units
from console.lab.measures import MEASURES
from console.lab.sequential import FIRST_LOOK, SMALLEST
from console.lab.words import probe_title

LEAST_ROUNDS = FIRST_LOOK
"""Fewer rounds than this advise nothing, neither a change nor to keep: a measure's word is found from two on. A crash
or a probe that fails speaks from the first one on."""
_LEAST = f"that advises neither a change nor to keep, {LEAST_ROUNDS} are the least for either"
COLLAPSE = 0.5
"""Acceptance at the end below this share of the start has collapsed."""
INFORMATION = frozenset({"sampling_extra"})
"""Probes that name a limit of the arm and do not decide: a client that never sends these settings misses nothing."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do, in a word and a sentence."""

    overall: str
    """adopt, keep, undecided or invalid."""
    sentence: str
    why: tuple[str, ...] = ()
    arm: str | None = None
    """The arm to adopt; `None` unless the word is adopt."""
    against: bool = False
    """Whether something speaks against the arm that was judged: a crash, a fault, or that it is worse."""
    trade: bool = False
    """Whether it is better in one measure and worse in another."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One judged measure of an arm against the base."""

    name: str
    title: str
    """For sentences."""
    verdict: str
    ratio: float | None
    lo: float | None
    hi: float | None
    advice: str = ""
    lower_is_better: bool = True
    certain: bool = True
    """Whether its word also stands when all judged measures are corrected for: one of several may be chance."""

    @property
    def counts(self) -> bool:
        """Whether it is large enough to matter."""
        return self.ratio is not None and not 1 / (1 + SMALLEST) <= self.ratio <= 1 + SMALLEST

    @property
    def beyond(self) -> bool:
        """Whether all of its interval lies beyond what counts as no difference."""
        if self.lo is None or self.hi is None:
            return False
        return self.hi < 1 / (1 + SMALLEST) or self.lo > 1 + SMALLEST

    @property
    def moved_worse(self) -> bool:
        """Whether its ratio is on the bad side, certain or not."""
        return self.ratio is not None and (self.ratio > 1 if self.lower_is_better else self.ratio < 1)

    @property
    def leans_worse(self) -> bool:
        """Whether its interval lies on the bad side, word or no word."""
        if self.lo is None or self.hi is None:
            return False
        return self.lo > 1 if self.lower_is_better else self.hi < 1

    @property
    def nearly_worse(self) -> bool:
        """Whether its shown interval lies on the bad side though its word, which rests on a wider one, is open."""
        return self.verdict == "undecided" and self.leans_worse

    @property
    def text(self) -> str:
        """`time per output token -48.0 % [-50.1 %, -45.9 %]: better`."""
        if self.ratio is None:
            return f"{self.title}: {self.verdict}" + (f" ({self.advice})" if self.advice else "")
        span = (
            f" [{units.change(self.lo)}, {units.change(self.hi)}]"
            if self.lo is not None and self.hi is not None
            else ""
        )
        tail = f" ({self.advice})" if self.advice else ""
        return f"{self.title} {units.change(self.ratio)}{span}: {self.verdict}{tail}"


@dataclass(frozen=True, slots=True)
class ArmState:
    """What is known of one arm beside its speed."""

    name: str
    valid_boots: int
    invalid: tuple[str, ...] = ()
    """Why boots did not count."""
    crashes: tuple[str, ...] = ()
    """What killed boots, one sentence each."""
    speculates: bool = False
    acceptance: tuple[float | None, float | None] = (None, None)
    """At the start and at the end of the measured part, before the answers' own ends."""
    acceptance_after_long: float | None = None
    """In a short answer after the prompt near the context's end."""
    probes: Mapping[str, tuple[int, int]] | None = None
    """Probe → (passed, asked)."""


def overall(
    kind: str,
    rounds: int,
    base: ArmState,
    arm: ArmState,
    findings: Sequence[Finding],
    *,
    primary: str | None = None,
    break_even: float | None = None,
) -> Verdict:
    """Judge one arm against the base.

    Args:
        kind: the kind of run.
        rounds: rounds in which both arms have a valid boot.
        base: the arm that stays unless the other proves itself.
        arm: the arm in question.
        findings: every judged measure.
        primary: the measure the run is about, named before it began; without one any may decide, if it stands a
            correction for their number.
        break_even: tokens of answer from which on a later start is made up for by faster text.
    """
    why = [finding.text for finding in findings]
    if base.crashes:
        return Verdict(
            "invalid", f"{base.name}, what the run measures against, crashed: {base.crashes[0].rstrip('.')}", tuple(why)
        )
    if arm.crashes:
        sentence = (
            f"{base.name} holds: {arm.name} crashed ({len(arm.crashes)} of its boots): {arm.crashes[0].rstrip('.')}"
        )
        return Verdict("keep", sentence, (*arm.crashes, *why), against=True)
    if not rounds:
        reasons = tuple(dict.fromkeys((*base.invalid, *arm.invalid))) or ("no round has a valid boot of both arms",)
        return Verdict("invalid", f"nothing can be said: {reasons[0]}", reasons)
    if kind == "aa":
        return _noise(findings, rounds)
    faults = _faults(base, arm)
    if faults:
        return Verdict("keep", f"{base.name} holds: {faults[0]}", (*faults, *why), against=True)
    found = _by_speed((base.name, arm.name), rounds, findings, primary, break_even)
    if found.overall == "adopt" and arm.speculates and arm.acceptance == (None, None):
        return Verdict(
            "undecided",
            f"not settled: no draft of {arm.name} was counted, so nothing shows that it speculates",
            found.why,
        )
    if found.overall == "keep" and rounds < LEAST_ROUNDS:
        shown = found.sentence.removeprefix(f"{base.name} holds: ")
        return Verdict("undecided", f"{rounds} rounds only suggest: {shown}; {_LEAST}", found.why)
    return found


def _by_speed(
    names: tuple[str, str], rounds: int, findings: Sequence[Finding], primary: str | None, break_even: float | None
) -> Verdict:
    base, arm = names
    why = tuple(finding.text for finding in findings)
    first = next((f for f in findings if f.name == primary), None)
    if rounds == 1:
        bare = "" if any(f.lo is not None for f in findings) else ", and has no interval"
        return Verdict("undecided", f"one round only suggests{bare}: {_moved(first, findings)}", why)
    better = [f for f in findings if f.verdict == "better" and f.counts]
    worse = [f for f in findings if f.verdict == "worse" and f.counts]
    if worse and better:
        sentence = f"{base} holds: {arm} is a trade, {_list(better)} better but {_list(worse)} worse"
        if break_even is not None:
            sentence += f"; in a warm turn it pays for answers of more than about {break_even:.0f} tokens"
        return Verdict("keep", sentence, why, trade=True)
    if worse:
        return Verdict("keep", f"{base} holds: {arm} is worse in {_list(worse)}", why, against=True)
    if primary is not None and first is None:
        about = MEASURES[primary].title
        return Verdict("undecided", f"not settled: the run is about {about}, and that was not measured", why)
    won = [f for f in better if (f is first if first else f.certain)]
    if won:
        return _advised(arm, rounds, won, findings)
    if findings and all(f.verdict == "equivalent" or _is_small(f) for f in findings):
        return Verdict("keep", f"{base} holds: no difference that counts in any measure", why)
    if first is not None and (first.verdict == "equivalent" or _is_small(first)):
        return Verdict("keep", f"{base} holds: {arm} is no better in what the run is about ({first.text})", why)
    if first is None and better:
        return Verdict("undecided", f"not settled yet: {better[0].text}, one of {len(findings)} measures", why)
    shown = first or next((f for f in findings if f.verdict == "undecided"), None)
    return Verdict("undecided", f"not settled yet: {shown.text if shown else 'no data'}", why)


def _moved(first: Finding | None, findings: Sequence[Finding]) -> str:
    """What one round saw: the measure that the run is about, and every other one that moved by as much as counts."""
    known = [f for f in findings if f.ratio is not None]
    shown = [f for f in known if f is first or f.counts]
    better, worse = ([f for f in shown if f.moved_worse is bad] for bad in (False, True))
    parts = [
        (f"{word} " if better and worse else "") + _changes(side)
        for word, side in (("better", better), ("worse", worse))
        if side
    ]
    return "; ".join(parts) or (f"no measure moved by {SMALLEST:.0%}".replace("%", " %") if known else "no data")


def _changes(findings: Sequence[Finding]) -> str:
    return ", ".join(f"{f.title} {units.change(f.ratio)}" for f in findings)


def _advised(arm: str, rounds: int, won: Sequence[Finding], findings: Sequence[Finding]) -> Verdict:
    """What the run is about is better and nothing is worse: enough for an advice, or not yet."""
    why = tuple(finding.text for finding in findings)
    enough = [f for f in won if f.beyond]
    if not enough:
        zone = f"its interval reaches into the ±{SMALLEST:.0%} that do not count".replace("%", " %")
        return Verdict("undecided", f"not settled yet: {won[0].text}, but {zone}", why)
    if doubtful := [f for f in findings if f.nearly_worse]:
        sentence = f"not settled yet: {enough[0].text}, but {doubtful[0].text}"
        return Verdict("undecided", sentence, why)
    said = ", ".join(f.text for f in enough)
    if rounds < LEAST_ROUNDS:
        sentence = f"{rounds} rounds only suggest {arm}: {said}; {_LEAST}"
        return Verdict("undecided", sentence, why)
    return Verdict("adopt", f"adopt {arm}: {said}; {_beside_it(findings, enough)}", why, arm)


def _beside_it(findings: Sequence[Finding], enough: Sequence[Finding]) -> str:
    """What is known of the other measures; open is not unharmed."""
    others = [f for f in findings if f not in enough]
    if not others:
        return "nothing else was judged"
    small = [f for f in others if f.verdict == "worse"]
    harm = f"worse, by less than counts: {_list(small)}" if small else ""
    open_ = [f for f in others if f.verdict == "undecided"]
    if not open_:
        return harm or "nothing else is worse"
    return f"{harm or 'nothing is shown to be worse'}, but open, so not shown to be unharmed: {_list(open_)}"


def _is_small(finding: Finding) -> bool:
    """Real, and too small to matter."""
    return finding.verdict in ("better", "worse") and not finding.counts


def _noise(findings: Sequence[Finding], rounds: int) -> Verdict:
    """An A/A run: equal arms, so every difference is this machine's noise."""
    why = tuple(f.text for f in findings)
    named = [f for f in findings if f.verdict in ("better", "worse")]
    widths = half_widths(findings)
    if rounds == 1 or not widths:
        return Verdict("undecided", "one round gives no noise floor", why)
    name, width = max(widths.items(), key=lambda item: item[1])
    title = next(f.title for f in findings if f.name == name)
    floor = f"with {rounds} rounds equal arms come apart by up to ±{width * 100:.1f} % here: {title}"
    if named:
        return Verdict("keep", f"{floor}; {_list(named)} differed between equal arms: that is chance", why)
    return Verdict("keep", f"{floor}: smaller differences cannot be shown", why)


def half_widths(findings: Sequence[Finding]) -> dict[str, float]:
    """Measure → how far its interval reaches from its ratio: 0.05 is ±5 %."""
    return {f.name: max(f.hi / f.ratio, f.ratio / f.lo) - 1 for f in findings if f.lo and f.hi and f.ratio}


def _faults(base: ArmState, arm: ArmState) -> list[str]:
    """What is wrong with the arm beside speed; probes count only where the base passed them."""
    faults = []
    start, end = arm.acceptance
    if start is not None and end is not None and start > 0 and end < COLLAPSE * start:
        faults.append(f"acceptance fell from {start:.0%} to {end:.0%} during the run")
    long = arm.acceptance_after_long
    if start is not None and long is not None and start > 0 and long < COLLAPSE * start:
        faults.append(f"acceptance fell from {start:.0%} to {long:.0%} after a prompt near the context's end")
    if arm.speculates and start == 0 and not end:
        faults.append("not one draft was accepted")
    for name, (passed, asked) in (arm.probes or {}).items():
        there, of = (base.probes or {}).get(name, (0, 0))
        if asked and of and passed * of < there * asked and name not in INFORMATION:
            faults.append(
                f"{probe_title(name)} holds in {passed} of {asked} on {arm.name}, in {there} of {of} on {base.name}"
            )
    return faults


def _list(findings: Sequence[Finding]) -> str:
    return ", ".join(finding.title for finding in findings)
