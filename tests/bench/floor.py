"""The least that a client can do: a bare protocol, a stamp a read, a loose look for events. What ours is held against.

It knows nothing of HTTP beyond the end of a chunked body, of outcomes nothing at all, and takes its tokens from the
last `usage`. A client that has to be right about more than that cannot be faster; how much slower it may be is the
budget.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field


@dataclass
class Seen:
    """One answer."""

    sent: float = 0.0
    stamps: list[float] = field(default_factory=list)
    """Monotonic, one a token-bearing event."""
    tokens: int = 0


class _Floor(asyncio.Protocol):
    def __init__(self, seen: Seen, done: asyncio.Future[None]) -> None:
        self._seen, self._done, self._buffer = seen, done, b""

    def data_received(self, data: bytes) -> None:
        now = time.monotonic()
        self._buffer += data
        while (end := self._buffer.find(b"\n\n")) >= 0:
            event, self._buffer = self._buffer[:end], self._buffer[end + 2 :]
            start = event.find(b"data: ")
            if start >= 0 and event[start + 6 :] != b"[DONE]":
                self._take(event[start + 6 :], now)
        if self._buffer.endswith(b"0\r\n\r\n") and not self._done.done():
            self._done.set_result(None)

    def _take(self, event: bytes, now: float) -> None:
        body = json.loads(event)
        if usage := body.get("usage"):
            self._seen.tokens = usage["completion_tokens"]
        for choice in body.get("choices", ()):
            delta = choice["delta"]
            if delta.get("content") or delta.get("reasoning"):
                self._seen.stamps.append(now)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's own signature
        if not self._done.done():
            self._done.set_result(None)


async def ask(host: str, port: int, body: bytes) -> Seen:
    """One request, followed to its end."""
    seen, loop = Seen(), asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    transport, _ = await loop.create_connection(lambda: _Floor(seen, done), host, port)
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: truth\r\ncontent-length: %d\r\n\r\n" % len(body)
    seen.sent = time.monotonic()
    transport.write(head + body)
    await done
    transport.close()
    return seen
