"""Holds the rules against every look: who stands, since when, and what has just begun."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from console.notices import card_rules, server_rules
from console.notices.model import Before, Finding, Look, Notice, Past, Severity
from console.server.status import State

KEPT_S = 360.0
"""Looks older than this are forgotten; the longest rule looks back five minutes."""
_KEPT_LOOKS = 2000
CALM_S = 60.0
"""A finding that comes back sooner goes on with its former episode: no second event."""
_USUAL = 0.02
"""How much a new look counts in what is usual; at one look a second about the last minute."""
_SERVING = frozenset({State.READY, State.STALLED, State.FOREIGN})
_ORDER = tuple(Severity)


@dataclass(slots=True)
class _Episode:
    """One id's history."""

    number: int
    since: float
    seen: float


class Watcher:
    """Bounded memory; one caller at a time.

    `see` every second or so; equal knowledge gives equal notices, so that a screen that compares them draws nothing.
    """

    def __init__(self) -> None:
        self._looks: deque[Look] = deque(maxlen=_KEPT_LOOKS)
        self._before = Before()
        self._episodes: dict[str, _Episode] = {}
        self._standing: frozenset[str] = frozenset()
        self._life: tuple[int | None, str | None] | None = None
        self.begun: tuple[Notice, ...] = ()
        """Those whose episode began with the last look: one event each."""

    def see(self, look: Look) -> tuple[Notice, ...]:
        """Take a look; what holds now, the worst first."""
        self._take(look)
        found = self._findings(Past(self._looks, self._before, self._standing))
        self._standing = frozenset(finding.id for finding in found)
        self._before = _usual(self._before, look, self._standing)
        notices = [self._notice(finding, look.at) for finding in found]
        self.begun = tuple(notice for notice in notices if notice.since == look.at)
        return tuple(sorted(notices, key=lambda notice: (_ORDER.index(notice.severity), notice.since, notice.id)))

    def _take(self, look: Look) -> None:
        life = (look.status.pid, look.status.url) if look.status.state in _SERVING else None
        if life is not None and life != self._life:
            # Another server: what was usual for the last one says nothing about it. The cards are the same.
            self._life, self._before = life, Before()
            cards = [replace(old, reading=None, lifetime=None, log_errors=0) for old in self._looks]
            self._looks = deque(cards, maxlen=_KEPT_LOOKS)
        self._looks.append(look)
        while look.at - self._looks[0].at > KEPT_S:
            self._looks.popleft()

    @staticmethod
    def _findings(past: Past) -> list[Finding]:
        found = list(card_rules.every(past))
        if past.now.status.state in _SERVING:
            found += [finding for rule in server_rules.RULES for finding in rule(past)]
        return found

    def _notice(self, finding: Finding, at: float) -> Notice:
        known = self._episodes.get(finding.id)
        if known is None:
            known = self._episodes[finding.id] = _Episode(1, at, at)
        elif at - known.seen > CALM_S:
            known.number, known.since = known.number + 1, at
        known.seen = at
        return Notice(finding.id, finding.severity, finding.what, finding.why, finding.fix, known.since, known.number)


def _usual(before: Before, look: Look, standing: frozenset[str]) -> Before:
    """What is usual, with this look in it; a look in trouble does not count."""
    reading = look.reading
    if reading is None or not reading.window_s:
        return before
    mtp, cache = reading.mtp, reading.prefix_cache
    if mtp and mtp.acceptance_rate is not None and mtp.drafts >= server_rules.MIN_DRAFTS:
        if "acceptance-collapsed" not in standing:
            before = replace(before, acceptance=_mixed(before.acceptance, mtp.acceptance_rate))
        best = max(before.best_acceptance or 0.0, mtp.acceptance_rate)
        drafts = look.lifetime.mtp.drafts if look.lifetime and look.lifetime.mtp else max(before.drafts, mtp.drafts)
        before = replace(before, best_acceptance=best, drafts=drafts)
    if cache.hit_rate is not None and reading.ttft_s.n and "prefix-hit-rate-fell" not in standing:
        before = replace(before, hit_rate=_mixed(before.hit_rate, cache.hit_rate))
    return before


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else old + _USUAL * (new - old)


def once(look: Look) -> tuple[Notice, ...]:
    """What a single look can know: lifetime figures stand for what was usual; nothing that needs time to be true."""
    watcher = Watcher()
    watcher._take(look)
    life = look.lifetime
    mtp = life.mtp if life else None
    watcher._before = Before(
        acceptance=mtp.acceptance_rate if mtp else None,
        best_acceptance=mtp.acceptance_rate if mtp else None,
        drafts=mtp.drafts if mtp else 0,
        hit_rate=life.prefix_cache.hit_rate_lifetime if life else None,
    )
    watcher._looks.clear()
    return watcher.see(look)
