"""How the lives of the server ended, a line a life: kept when the next one begins, for the history."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from console.files import parse_json, read_text
from console.paths import Paths
from console.server import shapes
from console.server.ended import Ended, signal_name
from console.server.log import secret_values
from console.server.phase import LogWatch
from console.server.process import alive
from console.server.ready import read_canary
from console.server.run_lock import arm_of
from console.server.state import SCHEMA, ExitRecord, ServerRecord, now_utc, read_exit, read_server, write_text
from console.server.status import Diagnosis, ServerStatus, State

_KEPT = 1000
RUNS, STOPPED, KILLED, CRASHED, NOT_STARTED = "runs", "stopped", "killed", "crashed", "failed to start"


@dataclass(frozen=True, slots=True)
class LifeEnd:
    """One life, or a start that was refused, and how it ended."""

    life: str | None
    """`None`: refused before there was a process."""
    preset: str | None
    simulated: bool
    started: float
    """Unix time."""
    at: float | None
    """Unix time of its end, where that is known."""
    word: str
    """`runs`, `stopped`, `killed`, `crashed` or `failed to start`."""
    what: str | None = None
    cause: str | None = None
    """As a diagnosis has it, where there is one."""

    @property
    def text(self) -> str:
        """In a line."""
        cause = f" ({self.cause})" if self.cause and self.cause != "unknown" else ""
        return f"{self.word}: {self.what}{cause}" if self.what else f"{self.word}{cause}"


def keep_end(paths: Paths) -> None:
    """Put the last life's end on record, before the next one takes its place; A/B runs have a journal of their own."""
    if (found := _last(paths)) is not None and found.word != RUNS:
        _add(paths, found)


def keep_refused(paths: Paths, preset: str, told: Diagnosis, *, simulated: bool) -> None:
    """Put a start on record that was refused before there was a process."""
    now = unix(now_utc())
    _add(paths, LifeEnd(None, preset, simulated, now, now, NOT_STARTED, told.what, told.cause))


def seen_lives(paths: Paths) -> tuple[LifeEnd, ...]:
    """All that are on record, and the last one as it stands now."""
    try:
        lines = read_text(lives_file(paths)).splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    found = [one for line in lines if (one := _read(line)) is not None]
    last = _last(paths)
    if last is not None and all(one.life != last.life for one in found):
        found.append(last)
    return tuple(found)


def lives_file(paths: Paths) -> Path:
    """A line a life, the oldest first."""
    return paths.state / "lives.jsonl"


def _add(paths: Paths, one: LifeEnd) -> None:
    path = lives_file(paths)
    with suppress(OSError, UnicodeDecodeError):
        old = read_text(path).splitlines() if path.exists() else []
        line = json.dumps({"schema": SCHEMA, **asdict(one)})
        write_text(path, "".join(f"{text}\n" for text in [*old[1 - _KEPT :], line]), sync=False)


def _read(line: str) -> LifeEnd | None:
    try:
        raw: dict[str, Any] = parse_json(line)
        if raw.pop("schema") != SCHEMA:
            return None
        if not isinstance(raw["started"], int | float) or not isinstance(raw["at"], int | float | None):
            return None
        return LifeEnd(**raw)
    except shapes.WRONG:
        return None


def _last(paths: Paths) -> LifeEnd | None:
    """The life on record; `None` without one, and for an arm of an A/B run."""
    record, _ = read_server(paths.server_record)
    if record is None or arm_of(paths, record.log) is not None:
        return None
    preset = record.preset or {}
    end, _ = read_exit(paths.exit_record)
    end = end if end is not None and end.life == record.life else None
    known = (record.life, preset.get("name"), bool(preset.get("simulated")), unix(record.started))
    if end is None and (alive(record.keeper) or alive(record.child)):
        return LifeEnd(*known, None, RUNS)
    secrets = secret_values(os.environ, preset.get("secrets") or ())
    status = Ended(paths, record, LogWatch(Path(record.log), lambda: secrets)).status(ServerStatus())
    return LifeEnd(*known, unix(end.at) if end else None, *_how(paths, record, end, status))


def _how(
    paths: Paths, record: ServerRecord, end: ExitRecord | None, status: ServerStatus
) -> tuple[str, str | None, str | None]:
    """The word, what there is to say, and the cause."""
    canary = read_canary(paths, record.life)
    was_ready = canary is not None and canary.ok
    if status.state is State.STOPPED:
        by = [f"by {end.asked_by}"] if end and end.asked_by else []
        by += [] if was_ready else ["before it was ready"]
        by += ["SIGKILL was needed"] if end and end.escalated else []
        return STOPPED, status.note or ", ".join(by) or None, None
    told = status.diagnosis
    what, cause = (told.what, told.cause) if told else (status.note, None)
    if end is not None and not end.asked and end.signal in (signal.SIGKILL, signal.SIGTERM):
        return KILLED, f"{signal_name(end.signal)}, not by this console", None
    return (CRASHED if was_ready else NOT_STARTED), what, cause


def unix(utc: str) -> float:
    """A stamp of the state files as unix time; 0 where it is none."""
    try:
        return datetime.fromisoformat(utc).timestamp()
    except ValueError:
        return 0.0
