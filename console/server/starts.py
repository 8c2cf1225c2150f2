"""How long the starts of a preset took: kept on disk, phase by phase, cold and warm apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from console.files import parse_json, read_text
from console.paths import Paths
from console.server import shapes
from console.server.facts import StartupFacts
from console.server.fingerprint import file_name
from console.server.state import SCHEMA, write_text
from console.server.status import Phase

_KEPT = 60
_USED = 5
"""The last starts of a kind; older ones were on another driver, another disk, another mood."""
_SLACK_S = 3.0
"""Stamps have whole seconds, and a process's first line comes after its start."""
COLD, WARM = "cold", "warm"


@dataclass(frozen=True, slots=True)
class Start:
    """One start that ended in ready. Seconds."""

    at: str
    """UTC."""
    fingerprint: str
    version: str | None
    cache: str | None
    """`cold` or `warm` by the compile cache; `None` where nothing is compiled."""
    total_s: float
    phases: Mapping[Phase, float]


@dataclass(frozen=True, slots=True)
class Usual:
    """What a start of this kind takes: medians, in seconds."""

    phases: Mapping[Phase, float]
    cache: str | None
    count: int
    """Starts that this comes from."""


def cache_kind(facts: StartupFacts) -> str | None:
    """Whether the compile cache was cold or warm, as far as the log has said."""
    return {True: WARM, False: COLD, None: None}[facts.compile_cached]


def starts_file(paths: Paths, preset: str) -> Path:
    """The history of one preset, a line a start."""
    return paths.state / "starts" / f"{file_name(preset)}.jsonl"


def keep_start(paths: Paths, preset: str, start: Start) -> None:
    """Add a start to its preset's history; a disk that does not take it costs only the memory of it."""
    path = starts_file(paths, preset)
    phases = {phase.value: round(seconds, 2) for phase, seconds in start.phases.items()}
    line = {
        "schema": SCHEMA,
        "at": start.at,
        "fingerprint": start.fingerprint,
        "version": start.version,
        "cache": start.cache,
        "total_s": round(start.total_s, 2),
        "phases": phases,
    }
    with suppress(OSError, UnicodeDecodeError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        old = read_text(path).splitlines() if path.exists() else []
        write_text(path, "".join(f"{text}\n" for text in [*old[-_KEPT:], json.dumps(line)]))


def past_starts(paths: Paths, preset: str) -> tuple[Start, ...]:
    """The history, oldest first; lines that cannot be read are left out."""
    try:
        lines = read_text(starts_file(paths, preset)).splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    return tuple(start for line in lines if (start := _start(line)) is not None)


def _start(line: str) -> Start | None:
    try:
        raw: dict[str, Any] = parse_json(line)
        if raw["schema"] != SCHEMA:
            return None
        phases = {Phase(name): shapes.number(seconds) for name, seconds in raw["phases"].items()}
        words = shapes.text(raw["at"]), shapes.text(raw["fingerprint"])
        kinds = shapes.optional(shapes.text, raw["version"]), shapes.optional(shapes.text, raw["cache"])
        return Start(*words, *kinds, shapes.number(raw["total_s"]), phases)
    except shapes.WRONG:
        return None


def usual(starts: Sequence[Start], fingerprint: str, cache: str | None, *, known: bool) -> Usual | None:
    """What the next start, or the one that is under way, should take.

    Args:
        starts: the preset's history.
        fingerprint: of what is being started; starts of other settings count only where it has none.
        cache: cold or warm, where the log has told.
        known: whether `cache` is told; before that a start is expected to be as the last one left the cache: warm.
    """
    for same in (True, False):
        like = [start for start in starts if (start.fingerprint == fingerprint) is same]
        if not like:
            continue
        kind = cache if known else WARM if any(start.cache for start in like) else None
        chosen = [start for start in like if start.cache == kind][-_USED:]
        if not chosen and not known:
            chosen = like[-1:]
        if chosen:
            return _medians(chosen)
    return None


def _medians(starts: Sequence[Start]) -> Usual:
    # Imported here: the first frame of the console must not wait for it.
    from statistics import median

    names = {phase for start in starts for phase in start.phases}
    phases = {phase: median(start.phases.get(phase, 0.0) for start in starts) for phase in names}
    return Usual(phases, starts[-1].cache, len(starts))


def offsets(entered: Mapping[Phase, str], started: datetime, now: datetime) -> dict[Phase, float]:
    """Seconds from a process's start to each phase, from the stamps of its log.

    A stamp that lies outside of the process's life was written by another clock and is left out.
    """
    found = {}
    for phase, stamp in entered.items():
        at = _moment(stamp, now)
        if at is not None and started - timedelta(seconds=_SLACK_S) <= at <= now + timedelta(seconds=_SLACK_S):
            found[phase] = max(0.0, (at - started).total_seconds())
    return found


def durations(begun: Mapping[Phase, float], total_s: float) -> dict[Phase, float]:
    """What each phase took; the last one ends when the server is ready."""
    steps = sorted((at, list(Phase).index(phase), phase) for phase, at in begun.items())
    steps = [step for step in steps if step[2] not in (Phase.START, Phase.READY)]
    whole = [(0.0, Phase.START), *((at, phase) for at, _, phase in steps), (total_s, Phase.READY)]
    return {phase: max(0.0, end - at) for (at, phase), (end, _) in pairwise(whole)}


def _moment(stamp: str, now: datetime) -> datetime | None:
    """`MM-DD HH:MM:SS` of the local clock, in the year that is nearest to `now`."""
    found = []
    for year in (now.year - 1, now.year, now.year + 1):
        try:
            found.append(datetime.strptime(f"{year}-{stamp}", "%Y-%m-%d %H:%M:%S").astimezone(now.tzinfo))
        except ValueError:
            continue
    return min(found, key=lambda at: abs(at - now), default=None)
