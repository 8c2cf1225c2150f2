"""What the log of a starting or dead server says, read once and remembered: a status is asked for every second."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from console.server.diagnose import diagnose
from console.server.log import ends, follow
from console.server.startup import StartupReader
from console.server.status import Diagnosis


class LogWatch:
    """One log file; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._reader = StartupReader()
        self._offset = 0
        self._lock = threading.Lock()
        self._told: tuple[tuple[int, int, int | None], Diagnosis | None] | None = None

    def start(self) -> StartupReader:
        """The start as far as it is logged."""
        with self._lock:
            while True:
                lines, offset = follow(self.path, self._offset)
                if offset == self._offset:
                    return self._reader
                self._reader.feed(lines)
                self._offset = offset

    def silent_s(self) -> float:
        """Seconds since the last line."""
        try:
            return max(0.0, time.time() - self.path.stat().st_mtime)
        except OSError:
            return 0.0

    def cause_of_death(self, exit_code: int | None) -> Diagnosis | None:
        """Why the server ended; the log is read again only when it changed."""
        with self._lock:
            try:
                stat = self.path.stat()
                seen = (stat.st_size, stat.st_mtime_ns, exit_code)
            except OSError:
                seen = (0, 0, exit_code)
            if self._told is None or self._told[0] != seen:
                self._told = (seen, diagnose(ends(self.path), exit_code=exit_code))
            return self._told[1]

    def cause_of_trouble(self) -> Diagnosis | None:
        """What is wrong with a server that still lives."""
        return diagnose(ends(self.path), alive=True, silent_s=self.silent_s())
