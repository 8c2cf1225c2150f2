"""The run's journal: one JSON object a line, appended as things happen, never rewritten.

Everything that a report says is made from this file and plan.json; a line that a power cut tore in half is dropped.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any

from console import files
from console.errors import ConsoleError
from console.files import parse_json
from console.paths import Paths
from console.stamped import oldest_first

FILE = "journal.jsonl"
BALLAST_FILE = ".ballast"
_BALLAST_BYTES = 262_144
Event = Mapping[str, Any]


FULL = (errno.ENOSPC, errno.EDQUOT)
"""What a full disk answers."""


class JournalError(ConsoleError):
    """The journal cannot be written: a run must not go on that leaves no trace."""

    def __init__(self, path: Path, error: OSError) -> None:
        full = error.errno in FULL
        what = (
            "the disk is full: the run's journal cannot be written" if full else "the run's journal cannot be written"
        )
        fix = "make room, then `qwen-console ab resume " + path.parent.name + "`"
        super().__init__(what, f"{path}: {error.strerror}", fix)


class Journal:
    """Appends events; one `write` call a line, so that a line is whole or torn but never mixed with another.

    Args:
        run_dir: the run's folder.
        ballast: keep some room on the disk, given back when it is full, so that the end can still be written down.
    """

    def __init__(self, run_dir: Path, *, ballast: bool = False) -> None:
        self._path = run_dir / FILE
        self._ballast = run_dir / BALLAST_FILE
        self._failed = False
        try:
            self._fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            if ballast:
                self._ballast.write_bytes(bytes(_BALLAST_BYTES))
            self._mend()
        except OSError as error:
            raise JournalError(self._path, error) from None

    def _mend(self) -> None:
        """End a torn last line, so that the next event does not grow onto it."""
        size = self._path.stat().st_size
        if size:
            with self._path.open("rb") as file:
                file.seek(size - 1)
                if file.read(1) != b"\n":
                    os.write(self._fd, b"\n")

    def add(self, event: str, **fields: Any) -> None:
        """Append one event with its UTC time.

        Raises:
            JournalError: the disk does not take it; what was written of the line is dropped by its readers.
        """
        line = json.dumps({"event": event, "at": utc_now(), **fields}, ensure_ascii=False).encode() + b"\n"
        try:
            if os.write(self._fd, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self._give_way(error)

    def _give_way(self, error: OSError) -> None:
        """Fail once; from then on write what there is room for, since the end must be reached all the same."""
        self._ballast.unlink(missing_ok=True)
        with suppress(OSError):
            os.write(self._fd, b"\n")
        if not self._failed:
            self._failed = True
            raise JournalError(self._path, error) from None

    def sync(self) -> None:
        """Put everything so far on the disk.

        Raises:
            JournalError: the disk does not take it.
        """
        try:
            os.fsync(self._fd)
        except OSError as error:
            # A pipe or a device has nothing to sync.
            if error.errno != errno.EINVAL:
                self._give_way(error)

    def close(self) -> None:
        """Sync and let go."""
        with suppress(JournalError):
            self.sync()
        os.close(self._fd)
        self._ballast.unlink(missing_ok=True)

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
            with files.open_file(path) as file:
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
            event = parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict) and "event" in event:
            events.append(event)
    return events


def write_json(path: Path, value: object) -> None:
    """Replace a JSON file whole: readers see the old one or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """The JSON of a file; `None` if there is none that can be read."""
    try:
        return files.read_json(path)
    except (OSError, ValueError):
        return None


def run_names(paths: Paths) -> list[str]:
    """The ids of all runs, the newest first."""
    if not paths.runs.is_dir():
        return []
    return oldest_first(folder.name for folder in paths.runs.iterdir() if folder.is_dir())[::-1]
