"""The run's journal: one JSON object a line, appended as things happen, never rewritten.

Everything that a report says is made from this file and plan.json; a line that a power cut tore in half is dropped.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

FILE = "journal.jsonl"
Event = Mapping[str, Any]


class Journal:
    """Appends events; one `write` call a line, so that a line is whole or torn but never mixed with another."""

    def __init__(self, run_dir: Path) -> None:
        self._path = run_dir / FILE
        self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._mend()

    def _mend(self) -> None:
        """End a torn last line, so that the next event does not grow onto it."""
        size = self._path.stat().st_size
        if size:
            with self._path.open("rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(self._fd, b"\n")

    def add(self, event: str, **fields: Any) -> None:
        """Append one event with its UTC time."""
        line = json.dumps({"event": event, "at": utc_now(), **fields}, ensure_ascii=False)
        os.write(self._fd, line.encode() + b"\n")

    def sync(self) -> None:
        """Put everything so far on the disk."""
        os.fsync(self._fd)

    def close(self) -> None:
        """Sync and let go."""
        os.fsync(self._fd)
        os.close(self._fd)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def utc_now() -> float:
    """Wall clock, seconds since 1970: for what has to mean something in another process."""
    return round(time.time(), 3)


def utc_text(at: float | None) -> str | None:
    """A wall clock time as ISO 8601 in UTC."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(slots=True)
class _Tail:
    """How far one journal has been read."""

    file: tuple[int, int]
    """Device and inode."""
    offset: int = 0
    events: list[Event] = field(default_factory=list)


_tails: dict[Path, _Tail] = {}
_reading = Lock()


def read_events(run_dir: Path) -> list[Event]:
    """All whole events; lines that are torn or no JSON objects are dropped.

    The journal that was read last is remembered: whoever follows a run parses what was added, not all of it again.
    """
    path = run_dir / FILE
    with _reading:
        try:
            with path.open("rb") as file:
                stat = os.fstat(file.fileno())
                tail = _tails.get(path)
                if tail is None or tail.file != (stat.st_dev, stat.st_ino) or tail.offset > stat.st_size:
                    _tails.clear()
                    tail = _tails[path] = _Tail((stat.st_dev, stat.st_ino))
                file.seek(tail.offset)
                chunk = file.read()
        except OSError:
            return []
        # A line without its end may be torn, or on its way: it is looked at, and read again the next time.
        whole = chunk.rfind(b"\n") + 1
        tail.offset += whole
        tail.events += _parse(chunk[:whole])
        return [*tail.events, *_parse(chunk[whole:])]


def _parse(chunk: bytes) -> list[Event]:
    events: list[Event] = []
    for line in chunk.split(b"\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            events.append(event)
    return events


def write_json(path: Path, value: object) -> None:
    """Replace a JSON file whole: readers see the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    beside.replace(path)


def read_json(path: Path) -> Any:
    """The JSON of a file; `None` if there is none that can be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
