"""What the rules see, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from console.gpu.sample import GpuReport
from console.metrics.reading import Reading
from console.server.facts import StartupFacts
from console.server.status import ServerStatus


class Severity(StrEnum):
    """How much it matters."""

    BAD = "bad"
    """Answers fail or numbers are lost."""
    WARN = "warn"
    """It costs speed, or will soon cost more."""
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule holds for true at this look; `id` names rule and, behind a colon, whom it is about."""

    id: str
    severity: Severity
    what: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Unsure:
    """Nothing can be told of a finding at this look (an idle server drafts nothing): shown no more, but not over."""

    id: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A finding with its history: one episode from its rise to its end."""

    id: str
    severity: Severity
    what: str
    why: str
    fix: str
    since: float
    """Monotonic second at which this episode began."""
    episode: int
    """Counts the episodes of this id from 1."""


@dataclass(frozen=True, slots=True)
class Look:
    """Everything at one moment; what was not looked at is its empty value."""

    at: float
    """Monotonic seconds."""
    status: ServerStatus = field(default_factory=ServerStatus)
    cards: GpuReport | None = None
    reading: Reading | None = None
    """The window that ends now; `None` where `/metrics` did not answer."""
    lifetime: Reading | None = None
    facts: StartupFacts | None = None
    log_errors: int = 0
    """Error lines the log gained since the look before."""
    log_error: str | None = None
    """The last of them, without secrets."""
    measured: bool = False
    """Whether an A/B run of this console drives the server: what it asks is meant, cold prompts and refusals too."""

    @property
    def busy(self) -> bool:
        """Whether requests run or wait."""
        now = self.reading
        return now is not None and (now.running or 0) + (now.waiting or 0) > 0


@dataclass(frozen=True, slots=True)
class Before:
    """What was usual in this life of the server until now; ratios 0..1."""

    acceptance: float | None = None
    best_acceptance: float | None = None
    """Of the windows looked at; `None` where there was none."""
    hit_rate: float | None = None
    of_life: bool = False
    """Whether these are means over the life of the server, the present included, for want of earlier looks."""

    @property
    def words(self) -> str:
        """How to name them."""
        return "it is {} over the life of the server" if self.of_life else "it was {} before"


@dataclass(frozen=True, slots=True)
class Past:
    """The looks so far, the newest last, bounded; and which findings stand."""

    looks: Sequence[Look]
    before: Before
    standing: frozenset[str]

    @property
    def now(self) -> Look:
        """The newest look."""
        return self.looks[-1]

    def stands(self, finding: str) -> bool:
        """Whether this finding was held for true at the look before: then the lower threshold counts."""
        return finding in self.standing

    def last(self, seconds: float) -> list[Look]:
        """The looks of the last `seconds`, oldest first."""
        return [look for look in self.looks if self.now.at - look.at <= seconds]

    def held(self, seconds: float, condition: Callable[[Look], bool]) -> bool:
        """Whether a condition has been true for so long, without a gap."""
        if self.now.at - self.looks[0].at < seconds:
            return False
        older = [look for look in self.looks if self.now.at - look.at >= seconds]
        return all(condition(look) for look in [older[-1], *self.last(seconds)])


Rule = Callable[[Past], Iterator[Finding | Unsure]]
"""Yields what holds at the newest look."""


def window(reading: Reading | None) -> str:
    """What a figure of this reading covers."""
    return f"{reading.window_s:.0f} s" if reading and reading.window_s else "life of the server"
