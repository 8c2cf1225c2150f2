"""How far a run has come, and how long the rest will take: one figure never contradicts the other. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from console.lab.journal import Event
from console.lab.plan import Plan
from console.lab.results import BEGINNINGS, Results

_SLOWER, _SLOWER_S = 0.25, 10.0
"""Only a run that is late by this part of what was left, and by so many seconds, has its end put off."""


def steps_per_boot(results: Results) -> int:
    """Start, warm-up, every measured request, stop."""
    return results.plan.requests + 3


def is_step(event: Event) -> bool:
    """Whether something that was planned is done within a boot."""
    return event["event"] in ("boot-ready", "warm") or (event["event"] == "request" and event["workload"] != "warm-up")


def steps_done(results: Results) -> int:
    gone, in_boot = set[int](), 0
    for event in results.events:
        if event["event"] == "boot-start":
            in_boot = 0
        elif is_step(event):
            in_boot += 1
        elif event["event"] in ("boot-end", "boot-skipped"):
            gone.add(event["n"])
            in_boot = 0
    return len(gone) * steps_per_boot(results) + in_boot


@dataclass(frozen=True, slots=True)
class Outlook:
    """What to expect of a run that goes on."""

    left_s: float
    """Seconds to the end of its last boot; rises only when the run really got slower."""
    part: float
    """0..1: time gone of all the time it will take; never falls."""


def outlook(results: Results, now: float) -> Outlook:
    """The end is foretold once and moved along the journal: every look at the same journal foretells the same.

    Args:
        results: the run as far as it has come.
        now: wall clock seconds.
    """
    clock = _Clock(results.plan, rounds={n: round_number for n, round_number, _ in results.plan.boots()})
    for event in results.events:
        clock.see(event)
    return clock.outlook(now)


@dataclass(frozen=True, slots=True)
class _Profile:
    """How a boot went, in seconds from its begin."""

    steps: tuple[float, ...]
    span_s: float
    primed_s: float
    """Spent on a first start that only filled the compile cache."""
    probes_s: float

    @property
    def again_s(self) -> float:
        """How long the next one of it should take: cache and probes are of the first round."""
        return self.span_s - self.primed_s - self.probes_s

    def reached(self, done: int, *, again: bool) -> float:
        """When so many steps were done."""
        if not done or not self.steps:
            return 0.0
        return self.steps[min(done, len(self.steps)) - 1] - (self.primed_s if again else 0.0)


@dataclass(frozen=True, slots=True)
class _Foretold:
    """What was told at one moment, and how it is counted down from there."""

    at: float
    found_s: float
    """What is left by all that is known."""
    shown_s: float
    """What is told: no more than before. Where more is left it is counted down the slower, so that both end as one."""
    later_s: float
    """The part of what is left that no waiting for the boot at hand makes shorter."""

    def left(self, now: float) -> float:
        """Seconds, to be told now."""
        if self.found_s <= 0:
            return 0.0
        least = self.later_s / self.found_s
        return self.shown_s * max(least, 1 - max(0.0, now - self.at) / self.found_s)


@dataclass(slots=True)
class _Clock:
    """The run's time: boots that ended, the one at hand, and the end that was foretold."""

    plan: Plan
    profiles: dict[str, _Profile] = field(default_factory=dict)
    """The newest boot of each arm, as the first round has them."""
    rounds: dict[int, int] = field(default_factory=dict)
    """Boots to come, and the round of each."""
    spent_s: float = 0.0
    """In boots that ended."""
    arm: str | None = None
    """That of the boot at hand."""
    number: int = 0
    began: float = 0.0
    steps: list[float] = field(default_factory=list)
    primed_s: float = 0.0
    probes_at: float | None = None
    stopping_at: float | None = None
    foretold: _Foretold | None = None
    part: float = 0.0
    newest: float = 0.0
    set_back_s: float = 0.0
    """By so much the wall clock was set back meanwhile: no time goes backwards here."""

    def see(self, event: Event) -> None:
        """One line of the journal."""
        kind, at = event["event"], self._onwards(float(event["at"]))
        if kind in BEGINNINGS:
            # A boot that was cut short by the run's end is made anew, and nobody waited meanwhile.
            self.arm, self.foretold, self.part = None, None, 0.0
        elif kind == "boot-start":
            self.arm, self.number, self.began, self.steps = event["arm"], event["n"], at, []
            self.primed_s, self.probes_at, self.stopping_at = 0.0, None, None
        elif kind == "boot-end":
            self._learn(at)
            self.rounds.pop(event["n"], None)
            self.arm = None
        elif kind == "boot-skipped":
            self.rounds.pop(event["n"], None)
        elif is_step(event) and self.arm is not None:
            self.steps.append(at - self.began)
        else:
            self._see_within(kind, event, at)
            return
        self.part = self._outlook(at).part
        self._foretell(at)

    def _onwards(self, at: float) -> float:
        self.set_back_s += max(0.0, self.newest - (at + self.set_back_s))
        self.newest = at + self.set_back_s
        return self.newest

    def _see_within(self, kind: str, event: Event, at: float) -> None:
        """What a boot does only once, and when."""
        if kind == "primed":
            self.primed_s = at - self.began
        elif kind == "step" and str(event["text"]).startswith("probes"):
            self.probes_at = self.probes_at or at
        elif kind == "step" and event["text"] == "stopping":
            self.stopping_at = at

    def _learn(self, at: float) -> None:
        if self.arm is None:
            return
        span = at - self.began
        probes = (self.stopping_at or at) - self.probes_at if self.probes_at else 0.0
        self.spent_s += span
        known = self.profiles.get(self.arm)
        if known is None or not known.probes_s:
            self.profiles[self.arm] = _Profile(tuple(self.steps), span, self.primed_s, probes)
        else:
            # The newest pace, and what the first round adds to it.
            self.profiles[self.arm] = _Profile(tuple(self.steps), span + known.probes_s, 0.0, known.probes_s)

    def _foretell(self, at: float) -> None:
        later = self._later()
        found = self._rest_here(at) + later
        shown = found if self.foretold is None else self.foretold.left(at)
        if not 0 < found - shown <= max(_SLOWER_S, _SLOWER * shown):
            shown = found
        self.foretold = _Foretold(at, found, shown, later)

    def outlook(self, now: float) -> Outlook:
        """As it stands at this moment of the wall clock."""
        return self._outlook(max(self.newest, now + self.set_back_s))

    def _outlook(self, now: float) -> Outlook:
        spent = self.spent_s + (now - self.began if self.arm is not None else 0.0)
        left = self._first() * len(self.rounds) if self.foretold is None else self.foretold.left(now)
        part = spent / (spent + left) if spent + left > 0 else 0.0
        return Outlook(left, max(self.part, min(1.0, part)))

    def _rest_here(self, at: float) -> float:
        """Seconds to the end of the boot at hand."""
        if self.arm is None:
            return 0.0
        elapsed, done = at - self.began, len(self.steps)
        profile, again = self._profile(self.arm), self.rounds.get(self.number, 1) > 1
        if profile is None:
            return max(0.0, self._first() - elapsed)
        since = elapsed - (self.steps[-1] if done else 0.0)
        span = profile.again_s if again else profile.span_s
        return max(0.0, span - profile.reached(done, again=again) - since)

    def _first(self) -> float:
        """Seconds of a boot before one has ended: as planned, unless the pace of this one shows that to be too few."""
        planned, done = self.plan.estimate_s / max(len(self.plan.order), 1), len(self.steps)
        if done < 2:
            return planned
        weight = (done - 1) / (self.plan.requests + 1)
        pace = (self.steps[-1] - self.steps[0]) / (done - 1)
        own = self.steps[-1] + pace * max(0, self.plan.requests + 2 - done)
        return max(planned, weight * own + (1 - weight) * planned)

    def _later(self) -> float:
        """Seconds of the boots after this one."""
        left = 0.0
        for n, round_number, arm in self.plan.boots():
            if n in self.rounds and not (self.arm is not None and n == self.number):
                profile = self._profile(arm)
                left += self._first() if profile is None else profile.again_s if round_number > 1 else profile.span_s
        return left

    def _profile(self, arm: str) -> _Profile | None:
        """How an arm's boots go; as long as it had none, how those of another one went."""
        return self.profiles.get(arm) or next(reversed(self.profiles.values()), None)
