"""A server that crashed and is to be started again: how long it is waited, how often it is tried; on disk and pure."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from console.paths import Paths
from console.server import shapes
from console.server.failure import diagnosis_from, diagnosis_json
from console.server.process import Identity, alive
from console.server.state import SCHEMA, identity_from, read_json, write_json
from console.server.status import Diagnosis

DELAYS_S = (5.0, 30.0, 120.0)
"""Before the first, second and third start in a row: a driver needs a moment, a poisoned machine more than that."""
SERVICE_S = 600.0
"""A server that ran so long has done its work: what crashes it after that begins a new row."""
A_DAY = 6
"""Starts after a crash within 24 hours; one that comes back every hour is no accident."""


@dataclass(frozen=True, slots=True)
class Revival:
    """What becomes of a crashed server."""

    life: str
    """The life that crashed."""
    by: Identity
    """The process that waits, and starts it; what it promised is worth nothing without it."""
    preset: str | None
    attempt: int
    at: float | None
    """Monotonic second of the next start; `None`: it is not started again."""
    why: str
    """What crashed, or why it is not started again."""
    diagnosis: Diagnosis | None
    times: tuple[str, ...] = ()
    """When it was started after a crash, UTC, of the last day."""

    @property
    def pending(self) -> bool:
        """Whether the start still comes."""
        return self.at is not None and alive(self.by)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether to start again, when, or why not."""

    attempt: int
    delay_s: float | None
    why: str


def decide(restarts: int, *, was_ready: bool, served_s: float, times: Sequence[str], now: datetime) -> Decision:
    """What to do about a crash.

    Args:
        restarts: crashes in a row before this one.
        was_ready: whether the server that crashed had been ready.
        served_s: how long it had been up.
        times: when it was started after a crash before.
        now: UTC.
    """
    if restarts == 0 and not was_ready:
        return Decision(0, None, "it was never ready: the same start would fail again")
    attempt = 1 if was_ready and served_s >= SERVICE_S else restarts + 1
    if attempt > len(DELAYS_S):
        return Decision(attempt, None, f"started again {len(DELAYS_S)} times in a row, and it crashed each time")
    if len(recent(times, now)) >= A_DAY:
        return Decision(attempt, None, f"started again {A_DAY} times within a day")
    return Decision(attempt, DELAYS_S[attempt - 1], "")


def recent(times: Sequence[str], now: datetime) -> tuple[str, ...]:
    """Those of the last day."""
    kept = []
    for text in times:
        with suppress(ValueError):
            if now - datetime.fromisoformat(text).astimezone(UTC) < timedelta(days=1):
                kept.append(text)
    return tuple(kept)


def revival_path(paths: Paths) -> Path:
    """What became of the last crash."""
    return paths.state / "revival.json"


def write_revival(paths: Paths, revival: Revival) -> None:
    """Put it on record; a disk that does not take it costs only the sight of it."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "life": revival.life,
        "by": list(revival.by),
        "preset": revival.preset,
        "attempt": revival.attempt,
        "at": revival.at,
        "why": revival.why,
        "diagnosis": diagnosis_json(revival.diagnosis) if revival.diagnosis else None,
        "times": list(revival.times),
    }
    with suppress(OSError):
        write_json(revival_path(paths), value)


def read_revival(paths: Paths) -> Revival | None:
    """What is on record, if it can be read."""
    raw, _ = read_json(revival_path(paths))
    if raw is None:
        return None
    try:
        return Revival(
            life=str(raw["life"]),
            by=identity_from(raw["by"]),
            preset=shapes.optional(shapes.text, raw["preset"]),
            attempt=shapes.whole(raw["attempt"]),
            at=shapes.optional(shapes.number, raw["at"]),
            why=str(raw["why"]),
            diagnosis=diagnosis_from(raw["diagnosis"]) if raw["diagnosis"] else None,
            times=tuple(map(str, raw["times"])),
        )
    except shapes.WRONG:
        return None
