"""The history, read: what each boot of the server did over its minutes. Never written to from here."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from console import units
from console.files import refuse_odd
from console.metrics.feed import MIN_WINDOW_S
from console.metrics.window import ratio
from console.server.access import in_the_way
from console.server.lives import RUNS, LifeEnd
from console.server.minutes import Boot, CardMinute, Minute

LEFT_OUT = "the starts of A/B runs are not in it: `qwen-console ab list` has them"
"""What a reader would miss."""
_NOTED_S = 3.0
_WITHIN = "WHERE at >= ? AND at <= ? ORDER BY"
_SLACK_S = 60.0
"""By so much a clock may be set back without a word."""
RUNNING = "it runs; the minute under way is not in it"
R = TypeVar("R", Boot, Minute, CardMinute)
M = TypeVar("M", Minute, CardMinute)


@dataclass(frozen=True, slots=True)
class CardSpan:
    """One card over a boot."""

    card: int
    vram_peak_bytes: int | None
    pcie_tx_bytes_per_s: float | None
    """The highest mean of a minute."""
    pcie_rx_bytes_per_s: float | None
    power_w: float | None
    """The highest mean of a minute."""
    temp_max_c: int | None


@dataclass(frozen=True, slots=True)
class Totals:
    """Figures over any span of minutes: means are exact, sums of sums over sums of counts; `None` is unknown."""

    minutes: int = 0
    requests: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    itl_s: float | None = None
    cached_tokens: int | None = None
    computed_tokens: int | None = None
    generation_tokens: int | None = None
    prefix_hit_rate: float | None = None
    acceptance_rate: float | None = None
    generation_tokens_per_s: float | None = None
    """The highest mean of a minute, of those with ten seconds and more: what a moment reached is not kept."""
    preemptions: int | None = None
    kv_used_max: float | None = None


@dataclass(frozen=True, slots=True)
class BootHistory:
    """One life of the server within the span that was asked for."""

    boot: Boot
    first: int
    """Unix second of its first minute here."""
    last: int
    totals: Totals
    cards: tuple[CardSpan, ...]
    rows: tuple[Minute, ...]
    card_rows: tuple[CardMinute, ...] = ()
    end: LifeEnd | None = None
    """How it ended; `None` where that is not on record."""

    @property
    def covered_s(self) -> float:
        """Seconds that its minutes cover: a minute that was only touched counts for what was seen of it."""
        return sum(row.seconds for row in self.rows)

    @property
    def uncounted(self) -> str:
        """What of its end no look saw, in a sentence; empty where that is nothing."""
        unseen = self.end.at - self.until if self.rows and self.end and self.end.at else 0.0
        return f"what it did in its last {units.duration(unseen)} is not counted" if unseen >= _NOTED_S else ""

    @property
    def until(self) -> float:
        """Unix second at which it was seen last; exact to one look of the recorder."""
        if not self.rows:
            return float(self.last)
        begun = max(self.last, self.boot.started) if self.first == self.last else self.last
        return min(begun + self.rows[-1].seconds, self.last + 60.0)


@dataclass(frozen=True, slots=True)
class History:
    """Boots, the one that was started last first; `problem` says why there are none."""

    boots: tuple[BootHistory, ...] = ()
    problem: str | None = None
    note: str | None = None
    """What is left out, and why."""


def read_history(path: Path, since: float, until: float | None = None) -> History:
    """All minutes between two unix times, now being the last without another.

    What was recorded while the clock stood ahead is told and left out: it would be the newest for years.
    """
    until = time.time() + _SLACK_S if until is None else until
    if not os.path.exists(path) and not in_the_way(path):  # noqa: PTH110 - of a closed folder it is no error
        return History(problem="nothing is recorded yet: a server that `up` starts is, by the minute")
    problem = in_the_way(path) if not os.access(path, os.R_OK) else None
    if problem:
        return History(problem=f"{path} cannot be read: {problem[0]}; {problem[1]}")
    try:
        refuse_odd(path)
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=2.0)
        try:
            minutes = list(_rows(db, Minute, "minutes", f"{_WITHIN} at", (since, until)))
            cards = list(_rows(db, CardMinute, "cards", f"{_WITHIN} at, card", (since, until)))
            (ahead,) = db.execute("SELECT count(*) FROM minutes WHERE at > ?", (until,)).fetchone()
            boots = {boot.life: boot for boot in _rows(db, Boot, "boots", "", ())}
        finally:
            db.close()
    except (sqlite3.Error, OSError, TypeError, ValueError) as error:
        why = "the recorder begins a new one and keeps this as history.db.torn"
        if problem := in_the_way(path) or in_the_way(path.parent):
            why = "; ".join(problem)
        return History(problem=f"{path} cannot be read ({error}); {why}")
    of_life, of_cards = _by_life(minutes), _by_life(cards)
    found = (_boot(boots.get(life), life, rows, of_cards.get(life, [])) for life, rows in of_life.items())
    note = f"{ahead} minutes that were recorded while the clock stood ahead of now are left out" if ahead else None
    return History(_sorted(found), note=note)


def with_ends(found: History, lives: Sequence[LifeEnd], since: float) -> History:
    """The history with how each life ended, and with the lives and failed starts that left no minute behind.

    Args:
        found: what was recorded by the minute.
        lives: what is on record of lives.
        since: unix time before which nothing is of interest.
    """
    ends = {one.life: one for one in lives if one.life is not None}
    boots = [replace(boot, end=ends.get(boot.boot.life)) for boot in found.boots]
    there = {boot.boot.life for boot in boots}
    more = [
        _without_minutes(one)
        for one in lives
        if one.word != RUNS and one.life not in there and (one.at or one.started) >= since
    ]
    return replace(found, boots=_sorted([*boots, *more]))


def _without_minutes(one: LifeEnd) -> BootHistory:
    started = int(one.started)
    boot = Boot(one.life or "", one.preset, None, None, one.simulated, started)
    return BootHistory(boot, started, int(one.at or started), Totals(), (), (), end=one)


def _sorted(boots: Iterable[BootHistory]) -> tuple[BootHistory, ...]:
    """By their starts, the last one first."""
    return tuple(sorted(boots, key=lambda boot: boot.boot.started, reverse=True))


def _rows(db: sqlite3.Connection, kind: type[R], table: str, condition: str, values: tuple[Any, ...]) -> Iterator[R]:
    columns = ", ".join(field.name for field in fields(kind))
    for row in db.execute(f"SELECT {columns} FROM {table} {condition}", values):
        yield kind(*row)  # SQLite has no truth values: `simulated` comes as 0 or 1


def _by_life(rows: Iterable[M]) -> dict[str, list[M]]:
    found: dict[str, list[M]] = {}
    for row in rows:
        found.setdefault(row.life, []).append(row)
    return found


def _boot(boot: Boot | None, life: str, rows: Sequence[Minute], of_cards: Sequence[CardMinute]) -> BootHistory:
    return BootHistory(
        boot=boot or Boot(life, None, None, None, False, rows[0].at),
        first=rows[0].at,
        last=rows[-1].at,
        totals=totals(rows),
        cards=tuple(_card(index, of_cards) for index in sorted({card.card for card in of_cards})),
        rows=tuple(rows),
        card_rows=tuple(of_cards),
    )


def _long(row: Minute) -> bool:
    """Whether a rate of it means anything: the last one of a life may be a second long."""
    return row.seconds >= MIN_WINDOW_S


def totals(rows: Sequence[Minute]) -> Totals:
    """Figures over these minutes."""
    cached, computed = _sum(row.cached_tokens for row in rows), _sum(row.computed_tokens for row in rows)
    hits, queries = _sum(row.prefix_hits for row in rows), _sum(row.prefix_queries for row in rows)
    if queries and cached is not None and computed is not None and cached + computed:
        # As the tokens beside it say: lookups count earlier, and on hybrid models their hits can stay 0.
        hits, queries = cached, cached + computed
    return Totals(
        minutes=len(rows),
        requests=_sum(row.requests for row in rows),
        ttft_s=ratio(_sum(row.ttft_s for row in rows), _sum(row.ttft_n for row in rows)),
        tpot_s=ratio(_sum(row.tpot_s for row in rows), _sum(row.tpot_n for row in rows)),
        itl_s=ratio(_sum(row.itl_s for row in rows), _sum(row.itl_n for row in rows)),
        cached_tokens=cached,
        computed_tokens=computed,
        generation_tokens=_sum(row.generation_tokens for row in rows),
        prefix_hit_rate=ratio(hits, queries),
        acceptance_rate=ratio(_sum(row.accepted_tokens for row in rows), _sum(row.draft_tokens for row in rows)),
        generation_tokens_per_s=_most(row.generation_tokens_per_s for row in rows if _long(row)),
        preemptions=_sum(row.preemptions for row in rows),
        kv_used_max=_most(row.kv_used_max for row in rows),
    )


def _card(index: int, cards: Sequence[CardMinute]) -> CardSpan:
    rows = [card for card in cards if card.card == index]
    return CardSpan(
        card=index,
        vram_peak_bytes=_most(row.vram_peak_bytes for row in rows),
        pcie_tx_bytes_per_s=_most(row.pcie_tx_bytes_per_s for row in rows),
        pcie_rx_bytes_per_s=_most(row.pcie_rx_bytes_per_s for row in rows),
        power_w=_most(row.power_w for row in rows),
        temp_max_c=_most(row.temp_max_c for row in rows),
    )


N = TypeVar("N", int, float)


def _sum(values: Iterable[N | None]) -> N | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None


def _most(values: Iterable[N | None]) -> N | None:
    return max((value for value in values if value is not None), default=None)
