"""One blocking look at each source, as the message that tells it. Nothing here knows a widget.

Everything heavy is imported inside the look that needs it: the first frame must not wait for HTTP, NVML or the lab.
"""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from console.errors import ConsoleError
from console.server.status import ServerStatus, State
from console.tui.log_lines import fold
from console.tui.messages import CardsSeen, CatalogSeen, LogSeen, ReadingLost, ReadingSeen, RunSeen, StatusSeen

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuSource
    from console.metrics.feed import Feed
    from console.metrics.vllm import Counters
    from console.tui.services import Services

SERVING = (State.READY, State.STALLED, State.FOREIGN)
LOG_LINES = 2000
_LOG_START_BYTES = 128_000
_LOG_BEHIND_BYTES = 1_000_000
"""Farther behind than this the log is not read through: only its end is seen anyway."""
_NO_RUN: tuple[str | None, int, float] = (None, 0, 0.0)
_JOURNAL_REST_S = 5.0
"""A running A/B is read again after this long even if its journal did not grow: its ETA moves."""


class Sources:
    """What the pollers look at. Each method is called by one poller, never by two at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._status = ServerStatus()
        self._looked = False
        self._cards: GpuSource | None = None
        self._cards_of: str | None = None
        self._feed: Feed | None = None
        self._feed_of: tuple[str | None, int | None] | None = None
        self._idle_told = False
        self._log_path: str | None = None
        self._log_offset = 0
        self._log_lines: deque[str] = deque(maxlen=LOG_LINES)
        self._run_seen: tuple[str | None, int, float] = _NO_RUN

    def status(self) -> Message:
        """The server, derived from disk, processes and probes."""
        watched = self._services.watched
        if watched is None:
            self._status = self._services.server.status()
        else:
            from console.server.foreign import foreign_status

            self._status = foreign_status(watched)
        self._looked = True
        return StatusSeen(self._status)

    def catalog(self) -> Message:
        """The preset files, read again: they may have been edited meanwhile."""
        return CatalogSeen(self._services.catalog())

    def cards(self) -> Message | None:
        """The cards; a demo's are those of its server, so they come and go with it."""
        from console.gpu.sample import GpuReport

        if self._services.demo and not self._looked:
            return None
        url = self._status.url if self._services.demo and self._status.pid is not None else None
        if self._services.demo and url is None:
            sentence = "The simulated cards come with the simulated server: start a preset."
            return CardsSeen(GpuReport(time.monotonic(), problem=sentence))
        if self._cards is None or self._cards_of != url:
            if self._cards is not None:
                self._cards.close()
            self._cards, self._cards_of = self._services.open_gpus(), url
        return CardsSeen(self._cards.read())

    def reading(self) -> Message | None:
        """`/metrics` over the window; when the server is gone, that there is nothing to read, once."""
        if not self._looked:
            return None
        if self._status.state not in SERVING:
            self._feed = self._feed_of = None
            told, self._idle_told = self._idle_told, True
            return None if told else ReadingSeen(None)
        feed = self._feed_now()
        if feed is None:
            return None
        self._idle_told = False
        try:
            return ReadingSeen(feed.update())
        except ConsoleError as error:
            return ReadingLost(error, feed.age_s)

    def _feed_now(self) -> Feed | None:
        life = (self._status.url, self._status.pid)
        if self._feed is None or self._feed_of != life:
            endpoint: Endpoint | None = self._services.watched or self._services.server.endpoint()
            if endpoint is None:
                return None
            from console.metrics.feed import Feed

            base = None if self._services.watched else self._baseline()
            self._feed, self._feed_of = Feed(endpoint, base=base), life
        return self._feed

    def _baseline(self) -> Counters | None:
        page = self._services.server.baseline()
        if page is None:
            return None
        from console.metrics.exposition import parse
        from console.metrics.vllm import read

        try:
            return read(parse(page), 0.0)
        except ConsoleError:
            return None

    def log(self) -> Message | None:
        """New lines of the server's log, folded and without secrets; `None` when there are none."""
        from console.server.log import follow, redact

        path = self._status.log
        fresh = path != self._log_path
        if fresh:
            self._log_path, self._log_lines = path, deque(maxlen=LOG_LINES)
            self._log_offset = max(0, _size(path) - _LOG_START_BYTES)
        if path is None:
            return LogSeen(None, ()) if fresh else None
        behind = _size(path) - self._log_offset
        if behind > _LOG_BEHIND_BYTES:
            self._log_offset += behind - _LOG_START_BYTES
        lines, self._log_offset = follow(Path(path), self._log_offset)
        if not lines and not fresh:
            return None
        secrets = self._services.server.secrets()
        self._log_lines.extend(redact(line, secrets) for line in fold(lines))
        return LogSeen(path, tuple(self._log_lines))

    def run(self) -> Message | None:
        """The A/B run that lives, else the newest one; `None` when nothing about it changed."""
        from console.server.run_lock import run_is_live

        live = run_is_live(self._services.paths)
        run_id = live or self._newest_run()
        if run_id is None:
            seen, self._run_seen = self._run_seen, _NO_RUN
            return None if seen == _NO_RUN else RunSeen(None, live=False)
        folder = self._services.paths.run(run_id)
        size = _size(str(folder / "journal.jsonl")) * 2 + (live is not None)
        now = time.monotonic()
        seen = self._run_seen
        if seen[:2] == (run_id, size) and (live is None or now - seen[2] < _JOURNAL_REST_S):
            return None
        self._run_seen = (run_id, size, now)
        from console.lab.view import read_run

        return RunSeen(read_run(folder), live=live is not None)

    def _newest_run(self) -> str | None:
        try:
            names = [entry.name for entry in self._services.paths.runs.iterdir() if (entry / "plan.json").is_file()]
        except OSError:
            return None
        return max(names, default=None)

    def close(self) -> None:
        """Let go of the driver."""
        if self._cards is not None:
            self._cards.close()


def _size(path: str | None) -> int:
    try:
        return Path(path).stat().st_size if path else 0
    except OSError:
        return 0
