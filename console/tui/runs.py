"""A look at the A/B runs on disk. Nothing here knows a widget."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from console.files import read_text
from console.stamped import oldest_first
from console.tui.messages import RunSeen

if TYPE_CHECKING:
    from console.lab.view import RunView
    from console.paths import Paths

_LISTED = 50
"""Runs that are listed."""
_NO_RUN: tuple[str | None, int, float] = (None, 0, 0.0)
_JOURNAL_REST_S = 5.0
"""A running A/B is read again after this long even if its journal did not grow: its ETA moves."""


class Runs:
    """The runs of one state folder; each method is called by one poller, never by two at a time."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self._shown = paths.state / "run-shown"
        """Holds the run whose end was told last."""
        self._seen = _NO_RUN
        self._read: dict[str, tuple[int, RunView]] = {}

    def look(self) -> Message | None:
        """The A/B run that lives, else the newest one; `None` when nothing about it changed."""
        from console.server.run_lock import run_is_live

        live = run_is_live(self._paths)
        run_id = live or self._newest()
        if run_id is None:
            seen, self._seen = self._seen, _NO_RUN
            return None if seen == _NO_RUN else RunSeen(None, live=False)
        folder = self._paths.run(run_id)
        size = size_of(str(folder / "journal.jsonl")) * 2 + (live is not None)
        now = time.monotonic()
        seen = self._seen
        if seen[:2] == (run_id, size) and (live is None or now - seen[2] < _JOURNAL_REST_S):
            return None
        self._seen = (run_id, size, now)
        from console.lab.view import read_run

        run = read_run(folder)
        if live:
            self._will_be_news(live)
        ended = live is None and run.state != "running"
        if not ended and live is None:
            # It is about to begin: look again.
            self._seen = _NO_RUN
        return RunSeen(run, live=live is not None, news=ended and self._is_news(run_id))

    def _will_be_news(self, run_id: str) -> None:
        """A run that goes on after its end was shown ends once more."""
        with suppress(OSError, UnicodeDecodeError):
            if self._was_shown(run_id):
                self._shown.unlink()

    def _is_news(self, run_id: str) -> bool:
        """Whether no console has shown yet that this run has ended; from now on one has."""
        with suppress(OSError, UnicodeDecodeError):
            if self._was_shown(run_id):
                return False
            self._shown.write_text(f"{run_id}\n")
        return True

    def _was_shown(self, run_id: str) -> bool:
        return self._shown.exists() and read_text(self._shown).strip() == run_id

    def listed(self) -> tuple[RunView, ...]:
        """The newest runs; one that did not grow is not read again."""
        from console.lab.view import read_run
        from console.server.run_lock import run_is_live

        live = run_is_live(self._paths)
        found = []
        for name in self._names()[:_LISTED]:
            folder = self._paths.run(name)
            size = size_of(str(folder / "journal.jsonl"))
            kept = self._read.get(name)
            if kept is None or kept[0] != size or live == name or kept[1].state == "running":
                kept = self._read[name] = (size, read_run(folder))
            found.append(kept[1])
        return tuple(found)

    def _newest(self) -> str | None:
        return next(iter(self._names()), None)

    def _names(self) -> list[str]:
        """The newest one first."""
        try:
            found = [entry.name for entry in self._paths.runs.iterdir() if (entry / "plan.json").is_file()]
        except OSError:
            return []
        return oldest_first(found)[::-1]


def size_of(path: str | None) -> int:
    """Bytes of a file; 0 without one."""
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0
