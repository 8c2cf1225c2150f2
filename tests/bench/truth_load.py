"""The load of the truth table, what watches it, and how far the measuring process itself ran late."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from console.endpoint import Endpoint
from console.metrics.feed import Feed
from console.metrics.reading import Reading
from tests.engine import truth

_BEAT_S = 0.02


@dataclass
class Load:
    """Clients that ask again and again until told to stop; what each answer looked like."""

    url: str
    at_once: int
    words: int
    tokens: int
    seen: list[truth.Seen] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def client(self, number: int) -> None:
        turn = 0
        while not self._stop.is_set():
            content = truth.prompt(self.words + 7 * (turn % 5), number % 3)
            self.seen.append(truth.ask(self.url, content, self.tokens))
            turn += 1

    def run(self, seconds: float) -> None:
        """Keep the load up for so long, and wait until its last answer is whole."""
        with ThreadPoolExecutor(max(1, self.at_once)) as pool:
            working: list[Future[None]] = [pool.submit(self.client, number) for number in range(self.at_once)]
            time.sleep(seconds)
            self._stop.set()
            for one in working:
                one.result()


class Watch:
    """The console's own feed, a page a second."""

    def __init__(self, url: str) -> None:
        self._feed = Feed(Endpoint(url))
        self._stop = threading.Event()
        self.readings: list[tuple[float, Reading]] = []
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(1.0):
            reading = self._feed.update()
            newest = self._feed.newest
            assert newest is not None
            self.readings.append((newest.at, reading))

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._thread.join()


class Heart:
    """Beats in the process that measures: a beat that comes late tells that its stamps do, too."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._late: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        due = time.monotonic() + _BEAT_S
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            self._late.append((now, now - due))
            due = now + _BEAT_S

    def late_s(self, start: float, end: float) -> float:
        """Seconds between these moments in which it stood still."""
        return sum(late for at, late in list(self._late) if start < at <= end and late > _BEAT_S)

    def close(self) -> None:
        """Stop."""
        self._stop.set()
        self._thread.join()
