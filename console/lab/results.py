"""What the journal of a run holds, by boot and by arm; the one reader behind reports, verdict and screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.lab.history import Lent, lent_by
from console.lab.journal import Event, read_events, read_json
from console.lab.measures import MEASURES, Sent, boot_values
from console.lab.plan import Plan
from console.lab.proof import Drafts, add_drafts
from console.lab.sequential import Rule, rule
from console.lab.spread import Spread, fit
from console.lab.stats import ArmFigure, Comparison, Rounds, compare, summarise
from console.lab.trace import Trace
from console.server import shapes

PLAN_FILE = "plan.json"
BEGINNINGS = ("run-start", "resumed")


@dataclass(frozen=True, slots=True)
class BootResult:
    """One boot that ended."""

    n: int
    arm: str
    round: int
    valid: bool
    reason: str | None
    crash: Mapping[str, Any] | None
    env: Mapping[str, Any]
    values: Mapping[str, Mapping[str, float]]
    """Measure → pairing key → value."""
    drafts: tuple[Drafts | None, Drafts | None, Drafts | None] = (None, None, None)
    """Speculation over the first half of the decode workload, its second half, and all of it."""
    after_long: Drafts | None = None
    """Speculation after the prompt near the context's end."""
    probes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    """Measured requests by outcome; none is left out."""
    warnings: tuple[str, ...] = ()
    sent: tuple[Sent, ...] = ()
    """The measured requests."""

    @property
    def past_natural(self) -> int:
        """Tokens written past an answer's own end; no measure counts them."""
        return sum(request.trace.past_natural for request in self.sent)


@dataclass(frozen=True, slots=True)
class Metric:
    """One measure over all rounds."""

    name: str
    arms: Mapping[str, ArmFigure]
    compare: tuple[Comparison, ...]
    own: Spread = field(default_factory=Spread)
    """This run's boot-to-boot spread."""
    rounds: Mapping[str, Mapping[int, Mapping[str, float]]] = field(default_factory=dict)
    """Arm → round → pairing key → value: what the figures are made of."""


@dataclass(frozen=True, slots=True)
class Results:
    """A run as far as it has come."""

    id: str
    plan: Plan
    events: Sequence[Event]
    boots: tuple[BootResult, ...]
    metrics: Mapping[str, Metric]
    lent: Lent
    """What earlier runs know of the spread."""
    rule: Rule

    def last(self, event: str) -> Event | None:
        """The newest event of a kind since the run was begun or resumed."""
        for found in reversed(self.events):
            if found["event"] == event:
                return found
            if found["event"] in BEGINNINGS:
                return None
        return None

    @property
    def begun(self) -> Event | None:
        """When it was begun, or resumed the last time."""
        return next((event for event in reversed(self.events) if event["event"] in BEGINNINGS), None)

    def valid(self, arm: str) -> list[BootResult]:
        """The boots of an arm that count."""
        return [boot for boot in self.boots if boot.arm == arm and boot.valid]

    def crashes(self, arm: str) -> list[BootResult]:
        """The boots of an arm that died."""
        return [boot for boot in self.boots if boot.arm == arm and boot.crash]

    def drafts(self, arm: str) -> tuple[Drafts | None, Drafts | None, Drafts | None]:
        """Speculation of an arm over its valid boots: start, end, all."""
        parts = [boot.drafts for boot in self.valid(arm)]
        start, end, whole = (add_drafts([part[i] for part in parts if part[i] is not None]) for i in range(3))  # type: ignore[misc]
        return start, end, whole

    def after_long(self, arm: str) -> Drafts | None:
        """Speculation of an arm after the prompt near the context's end."""
        return add_drafts([boot.after_long for boot in self.valid(arm) if boot.after_long is not None])

    def probes(self, arm: str) -> dict[str, tuple[int, int]]:
        """Probe → (passed, asked) of an arm."""
        sums: dict[str, tuple[int, int]] = {}
        for boot in self.valid(arm):
            for name, tally in boot.probes.items():
                passed, asked = sums.get(name, (0, 0))
                sums[name] = (passed + tally["passed"], asked + tally["of"])
        return sums

    def probe_notes(self, arm: str) -> dict[str, str]:
        """Probe → what it noted: the first failure, or what was refused."""
        notes = ((name, tally.get("note")) for boot in self.valid(arm) for name, tally in boot.probes.items())
        return {name: str(note) for name, note in notes if note}


def read_results(run_dir: Path, events: Sequence[Event] | None = None) -> Results | None:
    """Everything a run folder says; `None` where it holds no plan that can be read."""
    raw = read_json(run_dir / PLAN_FILE)
    try:
        plan = Plan.from_json(raw)
    except shapes.WRONG:
        return None
    events = read_events(run_dir) if events is None else events
    boots = _boots(events)
    lent = lent_by(run_dir, [boot.env for boot in boots if boot.valid])
    others = max(len(plan.arms) - 1, 1)
    found_rule = rule(plan.rounds, over=_is_over(plan, events), early=plan.early, others=others)
    return Results(run_dir.name, plan, events, boots, _metrics(plan, boots, lent, found_rule), lent, found_rule)


def _is_over(plan: Plan, events: Sequence[Event]) -> bool:
    """Whether the last look has been reached: every boot ended, or was left out for a reason that no number gave."""
    gone: set[int] = set()
    for event in events:
        if event["event"] in ("boot-end", "boot-skipped"):
            gone.add(event["n"])
        elif event["event"] == "settled":
            return False
    return len(gone) >= len(plan.order)


def _boots(events: Iterable[Event]) -> tuple[BootResult, ...]:
    sent: dict[int, dict[tuple[str, str, str], Sent]] = {}
    ends: dict[int, BootResult] = {}
    for event in events:
        if event["event"] == "boot-start":
            # A boot that was begun again counts from its new beginning.
            sent[event["n"]] = {}
        elif event["event"] == "request" and event["workload"] != "warm-up":
            name, of_boot = (event["workload"], event["phase"], event["key"]), sent.setdefault(event["n"], {})
            if name in of_boot:
                raise ValueError(f"the request {' '.join(name)} stands there twice")
            of_boot[name] = Sent(*name, Trace.from_json(event["trace"]))
        elif event["event"] == "boot-end":
            ends[event["n"]] = _boot(event, [*sent.get(event["n"], {}).values()])
    return tuple(ends[n] for n in sorted(ends))


def _boot(event: Event, sent: list[Sent]) -> BootResult:
    outcomes: dict[str, int] = {}
    for request in sent:
        outcomes[request.trace.outcome] = outcomes.get(request.trace.outcome, 0) + 1
    parts = event.get("drafts") or {}
    start, end, whole = (_drafts(parts.get(name)) for name in ("start", "end", "all"))
    return BootResult(
        n=event["n"],
        arm=event["arm"],
        round=event["round"],
        valid=event["valid"],
        reason=event["reason"],
        crash=event["crash"],
        env=event["env"],
        values=boot_values(sent, event.get("prefill_tokens_per_s")),
        drafts=(start, end, whole),
        after_long=_drafts(event.get("drafts_after_long")),
        probes=event.get("probes") or {},
        outcomes=outcomes,
        warnings=tuple(event.get("warnings") or ()),
        sent=tuple(sent),
    )


def _drafts(raw: Mapping[str, Any] | None) -> Drafts | None:
    if raw is None:
        return None
    return Drafts(raw["drafts"], raw["draft_tokens"], raw["accepted"], tuple(raw["per_position"]))


def _metrics(plan: Plan, boots: Sequence[BootResult], lent: Lent, found: Rule) -> dict[str, Metric]:
    base, *others = [arm.name for arm in plan.arms]
    metrics = {}
    for name, measure in MEASURES.items():
        rounds = {arm.name: _rounds(boots, arm.name, name) for arm in plan.arms}
        if not any(rounds.values()):
            continue
        own = fit(list(rounds.values()))
        pairs = tuple(
            compare(
                arm,
                base,
                rounds[arm],
                rounds[base],
                lower_is_better=measure.lower_is_better,
                rule=found,
                own=own,
                past=lent.spread(name),
            )
            for arm in others
        )
        figures = {arm: summarise(values) for arm, values in rounds.items()}
        metrics[name] = Metric(name, figures, pairs, own, rounds)
    return metrics


def _rounds(boots: Sequence[BootResult], arm: str, name: str) -> Rounds:
    return {boot.round: boot.values[name] for boot in boots if boot.arm == arm and boot.valid and name in boot.values}
