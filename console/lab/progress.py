"""How far a run has come, read from its journal: what a resumed run still has to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console import units
from console.lab.journal import read_events
from console.lab.plan import Plan

CRASHES = 2
"""An arm that crashed so often is not booted again: a third time shows nothing new."""
CANNOT_START = "chunk-below-block"
"""A crash that comes from the setting itself: once is enough."""


@dataclass(slots=True)
class Progress:
    """Boots that ended, and what follows from them for those to come."""

    begun: bool = False
    """Whether the run has been begun before."""
    ended: set[int] = field(default_factory=set)
    crashes: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    """Arm → why it cannot start at all."""
    spans: dict[int, list[float]] = field(default_factory=dict)
    """Round → seconds of its boots."""
    primed: set[str] = field(default_factory=set)
    environment: Mapping[str, str] | None = None
    over: str | None = None
    """Why no further round is begun."""
    _round: int = 0

    def note(self, round_number: int, arm: str, seconds: float, crash: Mapping[str, Any] | None) -> None:
        """One boot more."""
        self.spans.setdefault(round_number, []).append(seconds)
        if crash is None:
            return
        self.crashes[arm] = self.crashes.get(arm, 0) + 1
        if crash.get("cause") == CANNOT_START:
            self.reasons[arm] = str(crash.get("what"))

    def given_up(self, arm: str, plan: Plan) -> str | None:
        """Why this arm is not booted again, or why booting it would be of no use."""
        if arm in self.reasons:
            return self.reasons[arm]
        alive = [found.name for found in plan.arms if self._lives(found.name)]
        if arm not in alive:
            return "it crashed twice"
        return "no other arm is left to compare it with" if len(alive) < 2 else None

    def _lives(self, arm: str) -> bool:
        return arm not in self.reasons and self.crashes.get(arm, 0) < CRASHES

    def crash_notes(self) -> Iterator[str]:
        """What to know of the arms that were given up."""
        for arm, count in self.crashes.items():
            if arm in self.reasons:
                yield f"{arm} was skipped: {self.reasons[arm]}"
            elif count >= CRASHES:
                yield f"{arm} crashed {count} times and was not booted again"

    def enters(self, round_number: int) -> bool:
        """Whether this is the first boot of a round, after another one."""
        first, self._round = round_number != self._round and round_number > 1, round_number
        return first and not self.spans.get(round_number)

    def round_is_over(self, round_number: int, plan: Plan) -> bool:
        """Whether as many boots of the round have ended as it has arms."""
        return len(self.spans.get(round_number, ())) >= len(plan.arms)

    def beyond_budget(self, plan: Plan, spent_s: float) -> str | None:
        """Why the next round would not end within the time that was given, if it would not."""
        whole = [sum(spans) for spans in self.spans.values() if spans]
        if plan.time_budget_s is None or not whole:
            return None
        usual = sum(whole) / len(whole)
        if spent_s + usual <= plan.time_budget_s:
            return None
        return f"the next round takes about {units.duration(usual)} and {units.duration(plan.time_budget_s)} were given"


def progress_of(run_dir: Path) -> Progress:
    """What the journal of a run tells; boots that were cut short are missing, with all their requests."""
    found = Progress()
    started: dict[int, float] = {}
    for event in read_events(run_dir):
        match event["event"]:
            case "run-start":
                found.begun = True
            case "environment":
                found.environment = event["variables"]
            case "primed":
                found.primed.add(event["arm"])
            case "boot-start":
                started[event["n"]] = event["at"]
            case "boot-end":
                found.ended.add(event["n"])
                span = event["at"] - started.get(event["n"], event["at"])
                found.note(event["round"], event["arm"], span, event["crash"])
    return found
