"""One blocking look at each source, as the message that tells it. Nothing here knows a widget.

Everything heavy is imported inside the look that needs it: the first frame must not wait for HTTP, NVML or the lab.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from textual.message import Message

from console.errors import ConsoleError
from console.server.status import ServerStatus, State
from console.tui.log_lines import fold
from console.tui.messages import (
    CardsSeen,
    CatalogSeen,
    LogSeen,
    NoticesSeen,
    ReadingLost,
    ReadingSeen,
    StatusSeen,
)
from console.tui.recorded import Recorded
from console.tui.runs import Runs, size_of
from console.tui.silences import OLD_S
from console.tui.way_back import WayBack

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuReport, GpuSource
    from console.metrics.feed import Feed
    from console.metrics.reading import Reading
    from console.notices import Watcher
    from console.server.chain import Link
    from console.server.facts import StartupFacts
    from console.tui.card_lines import WholeCards
    from console.tui.services import Services

SERVING = (State.READY, State.STALLED, State.FOREIGN)
LOG_LINES = 2000
_LOG_BACK_BYTES = (128_000, 1_000_000, 8_000_000)
"""How far back the end of a log is looked for: an idle server writes hours of nothing but our own looks at it."""
_LOG_ENOUGH = 100
"""Lines to show are looked for until there are so many."""
_CLOSE_S = 1.0
_ABSENT = "The simulated cards come with the simulated server: {}."
_LOG_BEHIND_BYTES = 1_000_000
"""Farther behind than this the log is not read through: only its end is seen anyway."""


class Sources:
    """What the pollers look at. Each method is called by one poller, never by two at a time."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._status = ServerStatus()
        self._looked = False
        self._way_back = WayBack()
        self._life_turn = threading.Lock()
        """The view of a server's life reads its log step by step: one reader at a time."""
        self._facts: StartupFacts | None = None
        self._cards: GpuSource | None = None
        self._cards_of: str | None = None
        self._report: GpuReport | None = None
        self._report_at = 0.0
        self._feed: Feed | None = None
        self._feed_of: tuple[str | None, int | None] | None = None
        self._reading: Reading | None = None
        self._idle_told = False
        self._watcher: Watcher | None = None
        self._recorded = Recorded(services)
        self._errors: tuple[int, str | None] = (0, None)
        self._log_path: str | None = None
        self._log_offset = 0
        self._log_lines: deque[str] = deque(maxlen=LOG_LINES)
        self.runs = Runs(services.paths)

    def status(self) -> Message:
        """The server, derived from disk, processes and probes."""
        watched = self._services.watched
        if watched is None:
            with self._life_turn:
                self._status = self._services.server.status()
                ours = self._status.state in (State.READY, State.STALLED)
                self._facts = self._services.server.facts() if ours else None
        else:
            from console.server.foreign import foreign_status

            self._status = foreign_status(watched)
        self._looked = True
        back = self._way_back.look(self._services.server, self._status) if watched is None else None
        return StatusSeen(self._status, back)

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
            fix = "it is starting" if self._status.state is State.STARTING else "start a preset"
            self._keep(absent := GpuReport(time.monotonic(), problem=_ABSENT.format(fix)))
            return CardsSeen(absent)
        if self._cards is None or self._cards_of != url:
            if self._cards is not None:
                self._cards.close()
            self._cards, self._cards_of = self._services.open_gpus(), url
        report = self._cards.read()
        if report.problem and self._services.demo:
            why = "it is starting" if self._status.state is State.STARTING else "it does not answer"
            report = replace(report, problem=_ABSENT.format(why))
        self._keep(report)
        return CardsSeen(report)

    def _keep(self, report: GpuReport) -> None:
        self._report, self._report_at = report, time.monotonic()

    def reading(self) -> Message | None:
        """`/metrics` over the window; when the server is gone, that there is nothing to read, once."""
        if not self._looked:
            return None
        if self._status.state not in SERVING:
            self._feed = self._feed_of = self._reading = None
            told, self._idle_told = self._idle_told, True
            return None if told else ReadingSeen(None)
        feed = self._feed_now()
        if feed is None:
            return None
        self._idle_told = False
        try:
            self._reading = feed.update()
        except ConsoleError as error:
            self._reading = None
            return ReadingLost(error, feed.age_s)
        return ReadingSeen(self._reading)

    def _feed_now(self) -> Feed | None:
        life = (self._status.url, self._status.pid)
        if self._feed is None or self._feed_of != life:
            endpoint: Endpoint | None = self._services.watched or self._services.server.watched()
            if endpoint is None:
                return None
            from console.metrics.feed import Feed, kept_page

            base = None if self._elsewhere else kept_page(self._services.server.baseline())
            self._feed, self._feed_of = Feed(endpoint, base=base), life
        return self._feed

    @property
    def _elsewhere(self) -> bool:
        """Whether the server was not started by this console: nothing is kept about it."""
        return self._services.watched is not None or self._status.state is State.FOREIGN

    def notices(self) -> Message | None:
        """What the other looks have seen, held against the rules."""
        if not self._looked:
            return None
        from console.notices import Look, Watcher
        from console.server.run_lock import run_is_live

        self._watcher = self._watcher or Watcher()
        feed, (count, last) = self._feed, self._errors
        self._errors = (0, None)
        look = Look(
            at=time.monotonic(),
            status=self._status,
            cards=self._cards_of_server(),
            reading=self._reading,
            lifetime=feed.lifetime() if feed else None,
            facts=self._facts,
            log_errors=count,
            log_error=last,
            measured=not self._elsewhere and run_is_live(self._services.paths) is not None,
        )
        return NoticesSeen(look, self._watcher.see(look), self._watcher.begun, self._recorded.tell(self._status))

    def _cards_of_server(self) -> GpuReport | None:
        """The cards as far as they concern the server."""
        report, services = self._report, self._services
        # A server elsewhere has others; simulated ones go when their server goes, which is no fault.
        gone = services.demo and report is not None and report.problem is not None
        # A driver that hangs tells nothing: what it told before is no measurement of this second.
        silent = time.monotonic() - self._report_at > OLD_S
        return None if services.watched is not None or gone or silent else report

    def whole_cards(self) -> WholeCards:
        """The newest look at the cards, and who the processes on them are."""
        from console.tui.card_lines import WholeCards

        report = self._report
        pids = {process.pid for card in (report.cards if report else ()) for process in card.processes or ()}
        commands = {pid: _command(pid) for pid in pids}
        age_s = time.monotonic() - self._report_at
        return WholeCards(report, commands, elsewhere=self._services.watched is not None, age_s=age_s)

    def chain(self) -> tuple[Link, ...]:
        """What really runs, link by link; of a server that is not ours no log tells it."""
        page = self._feed.newest if self._feed else None
        if self._elsewhere:
            from console.server.chain import chain
            from console.server.facts import StartupFacts

            return chain(StartupFacts(), page)
        with self._life_turn:
            return self._services.server.chain(page, self._report)

    def log(self) -> Message | None:
        """New lines of the server's log, folded and without secrets; `None` when there are none."""
        from console.server.log import follow, redact
        from console.server.run_lock import arm_of

        path = self._status.log
        fresh = path != self._log_path
        if fresh:
            self._log_path, self._log_lines = path, deque(maxlen=LOG_LINES)
        if path is None:
            return LogSeen(None, ()) if fresh else None
        of_run = arm_of(self._services.paths, path) is not None
        if fresh or size_of(path) - self._log_offset > _LOG_BEHIND_BYTES:
            lines, self._log_offset = _end_of(path, of_run=of_run)
        else:
            lines, self._log_offset = follow(Path(path), self._log_offset)
        # Of a server at rest the log grows by nothing but our own looks at it.
        folded = list(fold(lines, of_run=of_run))
        if not folded and not fresh:
            return None
        secrets = self._services.server.secrets()
        new = [redact(line, secrets) for line in folded]
        self._log_lines.extend(new)
        if not fresh:
            self._count_errors(new)
        return LogSeen(path, tuple(self._log_lines))

    def _count_errors(self, lines: list[str]) -> None:
        from console.notices import errors_in

        count, last = errors_in(lines)
        if count:
            self._errors = (self._errors[0] + count, last)

    def close(self) -> None:
        """Let go of the driver, as long as it answers: it must not hold up the way out."""
        if self._cards is None:
            return
        cards = self._cards

        def let_go() -> None:
            with suppress(Exception):
                cards.close()

        closing = threading.Thread(target=let_go, daemon=True, name="cards-close")
        closing.start()
        closing.join(_CLOSE_S)


def _end_of(path: str, *, of_run: bool) -> tuple[list[str], int]:
    """The last lines of a log, and the byte to go on from."""
    from console.server.log import follow

    found: list[str] = []
    size = at = size_of(path)
    for back in _LOG_BACK_BYTES:
        begin = at = max(0, size - back)
        found = []
        while at < size:
            lines, after = follow(Path(path), at)
            if after == at:
                break
            found, at = found + lines, after
        if begin:
            # Cut in the middle, most likely.
            del found[:1]
        if not begin or sum(1 for _ in fold(found, of_run=of_run)) >= _LOG_ENOUGH:
            break
    return found, at


def _command(pid: int) -> str:
    """A process's command line, as far as one may read it."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return words or Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
