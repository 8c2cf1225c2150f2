"""A server's `/metrics`, scraped again and again, as readings over a window and a list of its last requests."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from console.endpoint import Endpoint
from console.metrics import vllm, window
from console.metrics.exposition import MetricsError, parse
from console.metrics.reading import LastRequests, Reading
from console.metrics.span import restarted
from console.metrics.vllm import Counters
from console.timely import asleep_s, slept_since

WINDOW_S = 30.0
MIN_WINDOW_S = 10.0
"""Below this a figure is noise: one chunk of a prefill outlasts it."""
_SLACK_S = 0.5
_UNSEEN_S = 12.0
"""Pages farther apart than this have a gap between them; with little bandwidth they are 3 s apart."""
_KEPT = 4096
_LAST = 8


def kept_page(text: str | None) -> Counters | None:
    """A page that was kept as text, such as the one after the canary; `None` where there is none that can be read."""
    if text is None:
        return None
    try:
        return vllm.read(parse(text), at=0.0)
    except MetricsError:
        return None


def _no_page(url: str, status: int) -> MetricsError:
    """What another answer than 200 means."""
    why, fix = "the server is up, but gives no metrics", "check that the address is vLLM's"
    if status in (401, 403):
        why, fix = "the server wants a key, or another one", "give it the key: VLLM_API_KEY"
    elif status >= 500:
        why, fix = "the web server answers, and what stands behind it does not", "look at the server's log"
    elif 300 <= status < 400:
        why = "it points to another address"
    return MetricsError(f"{url} answered {status}", why, fix)


class Feed:
    """Scrapes one endpoint; bounded memory, one caller at a time.

    Args:
        endpoint: where the server answers.
        window_s: span of the live figures in seconds, 10 at least.
        base: the page that lifetime figures count from; the server's own start without one.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        window_s: float = WINDOW_S,
        base: Counters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = endpoint
        self._window_s = max(window_s, MIN_WINDOW_S)
        self._base = base
        self._clock = clock
        self._asleep_s = asleep_s()
        self._ring: deque[Counters] = deque(maxlen=_KEPT)
        self._last: deque[tuple[float, LastRequests]] = deque(maxlen=_LAST)

    @property
    def newest(self) -> Counters | None:
        """The last page that could be read, however old."""
        return self._ring[-1] if self._ring else None

    @property
    def age_s(self) -> float | None:
        """Seconds since that page was scraped: what a screen shows beside numbers that no longer move."""
        return None if not self._ring else max(0.0, self._clock() - self._ring[-1].at)

    def scrape(self) -> Counters:
        """One page, typed; changes nothing here.

        Raises:
            EndpointError: the server did not answer.
            MetricsError: it answered with something else than vLLM's metrics.
        """
        asked = self._clock()
        reply = self._endpoint.get("/metrics")
        answered = self._clock()
        if reply.status != 200:
            raise _no_page(f"{self._endpoint.url}/metrics", reply.status)
        return vllm.read(parse(reply.text), at=(asked + answered) / 2)

    def update(self) -> Reading:
        """Scrape, and read the window that ends now.

        Raises what `scrape` raises; the pages seen so far stay.
        """
        self.keep(self.scrape())
        return self.reading()

    def reading(self) -> Reading:
        """The window that ends with the newest page, without scraping."""
        if not self._ring:
            return Reading()
        found = window.reading(self._window_start(), self._ring[-1], self._base)
        now = self._clock()
        last = tuple(replace(requests, age_s=max(0.0, now - at)) for at, requests in reversed(self._last))
        if found.window_s is not None and found.window_s < MIN_WINDOW_S - _SLACK_S:
            # Means are exact over any span; a rate over a few seconds of chunked prefill is noise.
            found = replace(found, prompt_tokens_per_s=None, generation_tokens_per_s=None)
        return replace(found, last=last)

    def lifetime(self, base: Counters | None = None) -> Reading:
        """Everything from `base` (or the feed's own base, or the server's start) to the newest page."""
        return Reading() if not self._ring else window.lifetime(self._ring[-1], base or self._base)

    def keep(self, new: Counters) -> None:
        """Take a page that was scraped into the window and the last requests."""
        before = self.newest
        if before is not None and restarted(before, new):
            self._ring.clear()
            self._last.clear()
        if slept_since(self._asleep_s):
            # What was counted meanwhile is of a span that this clock does not know.
            self._asleep_s = asleep_s()
            self._ring.clear()
        before = self.newest
        # Of requests that ended while nobody looked nobody knows when.
        if before is not None and new.at - before.at <= _UNSEEN_S:
            requests = window.last_requests(before, new, new.at)
            self._last.extend([(new.at, requests)] if requests is not None else [])
        self._ring.append(new)
        self._forget()

    def _forget(self) -> None:
        """Drop what no window needs: all before its start, and a start that a long silence left far behind."""
        newest = self._ring[-1].at
        while len(self._ring) > 1 and newest - self._ring[1].at >= self._window_s:
            self._ring.popleft()
        if len(self._ring) > 1 and newest - self._ring[0].at > 2 * self._window_s:
            self._ring.popleft()

    def _window_start(self) -> Counters | None:
        return self._ring[0] if len(self._ring) > 1 else None
