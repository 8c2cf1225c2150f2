"""What the log of a starting, serving or dead server says, read once and remembered: a status is asked every second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.server.log import HEAD_BYTES, TAIL_BYTES, ends, follow, head, redact
from console.server.rotation import pieces
from console.server.startup import StartupReader
from console.server.status import Diagnosis

_QUIET_S = 20.0
"""Seconds without a line after which one begins to wonder."""
_STEP_S = 10.0
"""A silence is thought about anew so often."""
_DEAF_S = 120
"""Seconds for which a server that is ready may find its workers deaf: longer is a hang."""


class LogWatch:
    """One log file; safe to use from several threads.

    Args:
        path: the log.
        secrets: values that no diagnosis may show.
    """

    def __init__(self, path: Path, secrets: Callable[[], Iterable[str]] = tuple) -> None:
        self.path = path
        self._secrets = secrets
        self._reader = StartupReader()
        self._offset = 0
        self._fresh = True
        self._blocked_s = 0
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Hashable, Diagnosis | str | None]] = {}

    def start(self) -> StartupReader:
        """The start as far as it is logged; of a long log its beginning and its end."""
        with self._lock:
            if self._fresh:
                self._fresh = False
                self._begin()
            while True:
                lines, offset = follow(self.path, self._offset)
                if offset == self._offset:
                    return self._reader
                self._reader.feed(lines)
                self._count(lines)
                self._offset = offset

    def _begin(self) -> None:
        """How the server came up stands at the beginning of a log, or in the first piece that was cut off it."""
        cut, size = pieces(str(self.path)), self._size()
        if cut or size > HEAD_BYTES + TAIL_BYTES:
            self._reader.feed(head(Path(cut[0]) if cut else self.path))
            self._offset = max(0, size - TAIL_BYTES)

    def _count(self, lines: Iterable[str]) -> None:
        """For how long in a row the engine has found that its workers do not take their work."""
        for line in lines:
            if "broadcast block" in line:
                self._blocked_s += _blocked_s(line)
            elif self._blocked_s and ("Application startup complete" in line or _progresses(line)):
                self._blocked_s = 0

    def is_blocked(self) -> bool:
        """Whether the engine says that its workers hang, for so long that it is no hiccup."""
        self.start()
        return self._blocked_s >= _DEAF_S

    def silent_s(self) -> float:
        """Seconds since the last line."""
        try:
            return max(0.0, time.time() - self.path.stat().st_mtime)
        except OSError:
            return 0.0

    def silence(self) -> str | None:
        """What it means that nothing is printed; `None` while that is not long."""
        silent_s = self.silent_s()
        if silent_s < _QUIET_S:
            return None
        key = (self._size(), int(silent_s / _STEP_S))
        found = self._once("silence", key, lambda: _meaning(ends(self.path), silent_s))
        return found if isinstance(found, str) else None

    def cause_of_death(self, exit_code: int | None) -> Diagnosis | None:
        """Why the server ended."""
        return self._told("death", (self._size(), exit_code), lambda: _diagnose(ends(self.path), exit_code=exit_code))

    def cause_of_trouble(self) -> Diagnosis | None:
        """What is wrong with a server that still lives."""
        silent_s = self.silent_s()
        key = (self._size(), int(silent_s / _STEP_S))
        return self._told("trouble", key, lambda: _diagnose(ends(self.path), alive=True, silent_s=silent_s))

    def _told(self, kind: str, key: Hashable, find: Callable[[], Diagnosis | None]) -> Diagnosis | None:
        found = self._once(kind, key, lambda: self._redacted(find()))
        return found if isinstance(found, Diagnosis) else None

    def _once(self, kind: str, key: Hashable, find: Callable[[], Diagnosis | str | None]) -> Diagnosis | str | None:
        """A long log is not read again before something about it has changed."""
        with self._lock:
            kept = self._kept.get(kind)
            if kept is None or kept[0] != key:
                kept = self._kept[kind] = (key, find())
            return kept[1]

    def _redacted(self, diagnosis: Diagnosis | None) -> Diagnosis | None:
        if diagnosis is None:
            return None
        secrets = frozenset(self._secrets())
        return replace(
            diagnosis,
            what=redact(diagnosis.what, secrets),
            why=redact(diagnosis.why, secrets),
            evidence=tuple(redact(line, secrets) for line in diagnosis.evidence),
        )

    def _size(self) -> int:
        try:
            return self.path.stat().st_size
        except OSError:
            return 0


# The rules are imported where one is asked for: the first frame of the console must not wait for their patterns.


def _diagnose(lines: Sequence[str], **told: Any) -> Diagnosis | None:
    from console.server.diagnose import diagnose

    return diagnose(lines, **told)


def _meaning(lines: Sequence[str], silent_s: float) -> str | None:
    from console.server.diagnosis.silence import meaning
    from console.server.diagnosis.story import read_story

    return meaning(read_story(lines), silent_s)


def _blocked_s(line: str) -> int:
    from console.server.diagnosis.silence import BLOCKED

    found = BLOCKED.search(line)
    return int(found["seconds"]) if found else 0


def _progresses(line: str) -> bool:
    from console.server.diagnosis.silence import PROGRESS

    return PROGRESS.search(line) is not None
