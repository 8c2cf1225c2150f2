"""Waiting until a server has answered what it was asked, before it is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from console.endpoint import Endpoint
from console.errors import ConsoleError
from console.metrics.feed import Feed

_EVERY_S = 0.5
_SAY_EVERY_S = 10.0
_TRIES = 3
"""A busy server misses a scrape now and then."""


@dataclass(frozen=True, slots=True)
class Drained:
    """How the waiting ended."""

    seconds: float
    left: int | None
    """Requests that still run or wait; `None` when the server does not tell."""
    why: str | None = None
    """Why it cannot be told."""


def drain(endpoint: Endpoint, limit_s: float, tell: Callable[[str], None] = lambda _text: None) -> Drained:
    """Wait until no request runs or waits, `limit_s` seconds at most; what is in flight is told as it changes.

    New requests are taken meanwhile: vLLM has no way to refuse them and go on.
    """
    feed, begun, failures = Feed(endpoint), time.monotonic(), 0
    said: tuple[int, int] | None = None
    said_at = begun
    while True:
        waited = time.monotonic() - begun
        try:
            counters = feed.scrape()
            failures = 0
        except ConsoleError as error:
            failures += 1
            if failures >= _TRIES or waited > limit_s:
                return Drained(waited, None, error.why or error.what)
            time.sleep(_EVERY_S)
            continue
        if counters.running is None and counters.waiting is None:
            return Drained(waited, None, "its /metrics names no running requests (--disable-log-stats?)")
        now = (counters.running or 0, counters.waiting or 0)
        if not any(now) or waited >= limit_s:
            return Drained(waited, sum(now))
        if now != said or time.monotonic() - said_at > _SAY_EVERY_S:
            said, said_at = now, time.monotonic()
            tell(f"draining: {now[0]} running, {now[1]} waiting, {max(0.0, limit_s - waited):.0f} s left")
        time.sleep(min(_EVERY_S, max(0.05, limit_s - waited)))
