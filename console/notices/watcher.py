"""Holds the rules against every look: who stands, since when, and what has just begun."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from console.notices import card_rules, server_rules
from console.notices.model import Before, Finding, Look, Notice, Past, Severity, Unsure
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
        told = self._told(Past(self._looks, self._before, self._standing))
        found = [one for one in told if isinstance(one, Finding)]
        unsure = self._standing & {one.id for one in told if isinstance(one, Unsure)}
        for one in unsure:
            self._episodes[one].seen = look.at
        self._standing = unsure | {finding.id for finding in found}
        self._before = _usual(self._before, look, self._standing)
        notices = [self._notice(finding, look.at) for finding in found]
        self.begun = tuple(notice for notice in notices if notice.since == look.at)
        return tuple(sorted(notices, key=lambda notice: (_ORDER.index(notice.severity), notice.since, notice.id)))

    def _take(self, look: Look) -> None:
        life = (look.status.pid, look.status.url) if look.status.state in _SERVING else None
        # Of a server that is not ours only its counters tell that it began anew: then a first page has no window.
        anew = look.status.state is State.FOREIGN and look.reading is not None and look.reading.window_s is None
        if life is not None and (life != self._life or anew):
            # Another server: what was usual for the last one says nothing about it. The cards are the same.
            self._life, self._before = life, _of_life(look)
            cards = [replace(old, reading=None, lifetime=None, log_errors=0) for old in self._looks]
            self._looks = deque(cards, maxlen=_KEPT_LOOKS)
        self._looks.append(look)
        while look.at - self._looks[0].at > KEPT_S:
            self._looks.popleft()

    @staticmethod
    def _told(past: Past) -> list[Finding | Unsure]:
        found: list[Finding | Unsure] = list(card_rules.every(past))
        if past.now.status.state in _SERVING:
            rules = [rule for rule in server_rules.RULES if not (past.now.measured and rule in server_rules.OF_CLIENTS)]
            found += [finding for rule in rules for finding in rule(past)]
        return found

    def _notice(self, finding: Finding, at: float) -> Notice:
        known = self._episodes.get(finding.id)
        if known is None:
            known = self._episodes[finding.id] = _Episode(1, at, at)
        elif at - known.seen > CALM_S:
            known.number, known.since = known.number + 1, at
        known.seen = at
        return Notice(finding.id, finding.severity, finding.what, finding.why, finding.fix, known.since, known.number)


def _of_life(look: Look) -> Before:
    """What is usual by the means over the life of the server: for a first look, which has seen nothing before."""
    life = look.lifetime
    mtp = life.mtp if life else None
    drafted = mtp if mtp and mtp.drafts >= server_rules.MIN_LIFE_DRAFTS else None
    hit_rate = life.prefix_cache.hit_rate_lifetime if life else None
    return Before(drafted.acceptance_rate if drafted else None, None, hit_rate, of_life=True)


def _usual(before: Before, look: Look, standing: frozenset[str]) -> Before:
    """What is usual, with this look in it; a look in trouble does not count."""
    reading = look.reading
    if reading is None or not reading.window_s:
        return before
    mtp, cache = reading.mtp, reading.prefix_cache
    if mtp and mtp.acceptance_rate is not None and mtp.drafts >= server_rules.MIN_DRAFTS:
        if "acceptance-collapsed" not in standing:
            before = replace(before, acceptance=_mixed(before.acceptance, mtp.acceptance_rate), of_life=False)
        before = replace(before, best_acceptance=max(before.best_acceptance or 0.0, mtp.acceptance_rate))
    if cache.hit_rate is not None and reading.ttft_s.n and "prefix-hit-rate-fell" not in standing:
        before = replace(before, hit_rate=_mixed(before.hit_rate, cache.hit_rate), of_life=False)
    return before


def _mixed(old: float | None, new: float) -> float:
    return new if old is None else old + _USUAL * (new - old)


def once(look: Look) -> tuple[Notice, ...]:
    """What a single look can know: lifetime figures stand for what was usual; nothing that needs time to be true."""
    return Watcher().see(look)
