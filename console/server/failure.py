"""A failure that no exit record tells: a start that was refused, a server stopped because it never got ready."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.paths import Paths
from console.server import shapes
from console.server.state import SCHEMA, now_utc, read_json, write_json
from console.server.status import Diagnosis, Phase


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, and with which life; a refused start has none."""

    life: str | None
    preset: str | None
    diagnosis: Diagnosis
    at: str = field(default_factory=now_utc)
    """UTC."""


def failure_path(paths: Paths) -> Path:
    """Removed by the next start."""
    return paths.state / "failure.json"


def write_failure(paths: Paths, failure: Failure) -> None:
    """Put a failure on record; a disk that does not take it costs only the memory of it."""
    told = diagnosis_json(failure.diagnosis)
    value = {"schema": SCHEMA, "life": failure.life, "preset": failure.preset, "at": failure.at, "diagnosis": told}
    with suppress(OSError):
        write_json(failure_path(paths), value)


def read_failure(paths: Paths) -> Failure | None:
    """The failure on record, if there is one that can be read."""
    raw, _ = read_json(failure_path(paths))
    try:
        return Failure(*_whose(raw), diagnosis_from(raw["diagnosis"]), shapes.text(raw["at"])) if raw else None
    except shapes.WRONG:
        return None


def _whose(raw: Mapping[str, Any]) -> tuple[str | None, str | None]:
    return shapes.optional(shapes.text, raw["life"]), shapes.optional(shapes.text, raw["preset"])


def diagnosis_json(told: Diagnosis) -> dict[str, Any]:
    """A diagnosis as state files keep it."""
    return {
        "cause": told.cause,
        "what": told.what,
        "why": told.why,
        "fix": told.fix,
        "evidence": list(told.evidence),
        "phase": told.phase,
    }


def diagnosis_from(raw: Mapping[str, Any]) -> Diagnosis:
    """The inverse of `diagnosis_json`.

    Raises:
        KeyError, TypeError, ValueError: it is none.
    """
    return Diagnosis(
        cause=str(raw["cause"]),
        what=str(raw["what"]),
        why=str(raw["why"]),
        fix=str(raw["fix"]),
        evidence=tuple(map(str, raw["evidence"])),
        phase=Phase(raw["phase"]) if raw["phase"] else None,
    )
