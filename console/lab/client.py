"""One streamed chat request on a bare `asyncio.Protocol`: stamps on arrival, before anything is parsed.

A general HTTP client costs three times the CPU a chunk and stamps late under load; this one does loopback HTTP/1.1 and
nothing else. One connection a request, so that no request waits for another.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httptools

from console.lab.trace import OK, Trace

PATH = "/v1/chat/completions"
_ERROR_BYTES = 4000


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    key: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str, key: str | None) -> Target:
        """From a base URL such as `http://127.0.0.1:8000`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80, key)

    def head(self, length: int) -> bytes:
        """The request's head for a body of `length` bytes."""
        lines = [
            f"POST {PATH} HTTP/1.1",
            f"host: {self.host}:{self.port}",
            "content-type: application/json",
            "accept: text/event-stream",
            f"content-length: {length}",
            "connection: close",
        ]
        if self.key:
            lines.append(f"authorization: Bearer {self.key}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()


class _Stream(asyncio.Protocol):
    """One request on one connection; fills its trace."""

    def __init__(self, request: bytes, trace: Trace, done: asyncio.Future[None]) -> None:
        self._request = request
        self._trace = trace
        self._done = done
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pending = b""
        self._data: list[bytes] = []
        self._error_body = b""
        self._stamp = 0.0
        self._finished = False
        self._events = _Events(trace)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._trace.sent = time.monotonic()
        transport.write(self._request)  # type: ignore[attr-defined]

    def data_received(self, data: bytes) -> None:
        self._stamp = time.monotonic() - self._trace.sent
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._trace.detail = f"not HTTP: {error}"
            self._end()

    def on_body(self, body: bytes) -> None:
        if self._parser.get_status_code() != 200:
            self._error_body = (self._error_body + body)[:_ERROR_BYTES]
            return
        lines = (self._pending + body).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            self._line(line.rstrip(b"\r"))

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].lstrip())
        elif not line and self._data:
            event, self._data = b"\n".join(self._data), []
            self._events.take(event, self._stamp)

    def on_message_complete(self) -> None:
        self._finished = True
        self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done() and exc is not None:
            self._trace.detail = str(exc)
        self._end()

    def _end(self) -> None:
        if self._done.done():
            return
        trace = self._trace
        trace.ended = time.monotonic() - trace.sent
        trace.status = self._parser.get_status_code() or None
        if trace.status is not None and trace.status != 200:
            trace.outcome, trace.detail = "http-error", _error_text(self._error_body)
        else:
            self._events.conclude(self._finished)
        self._done.set_result(None)


class _Events:
    """Meaning of the events of one stream."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._closed = False
        self._error: str | None = None
        self._count: int | None = None

    def take(self, event: bytes, stamp: float) -> None:
        if event == b"[DONE]":
            self._closed = True
            return
        try:
            chunk = json.loads(event)
        except ValueError:
            self._error = f"an event that is no JSON: {event[:80]!r}"
            return
        if "error" in chunk:
            error = chunk["error"]
            self._error = str(error.get("message", error)) if isinstance(error, dict) else str(error)
            return
        grew = self._usage(chunk.get("usage"))
        for choice in chunk.get("choices") or ():
            self._choice(choice, stamp, grew)

    def _usage(self, usage: dict[str, Any] | None) -> bool:
        """Take the running usage (the last counts, never a sum); whether the output grew."""
        if not usage:
            return False
        trace, count = self._trace, usage.get("completion_tokens")
        trace.prompt_tokens = usage.get("prompt_tokens")
        trace.completion_tokens = count
        if details := usage.get("prompt_tokens_details"):
            trace.cached_tokens = details.get("cached_tokens")
        grew = count is not None and count > (self._count or 0)
        self._count = count
        return grew

    def _choice(self, choice: dict[str, Any], stamp: float, grew: bool) -> None:
        trace, delta = self._trace, choice.get("delta") or {}
        if choice.get("finish_reason"):
            trace.finish = choice["finish_reason"]
        content = bool(delta.get("content"))
        visible = content or bool(delta.get("reasoning") or delta.get("reasoning_content") or delta.get("tool_calls"))
        if not visible and not (grew and trace.stamps):
            if not trace.stamps and trace.role_at is None:
                trace.role_at = stamp
            return
        if content and trace.content_at is None:
            trace.content_at = stamp
        if trace.stamps and trace.stamps[-1] == stamp:
            trace.tokens[-1] = self._count
        else:
            trace.stamps.append(stamp)
            trace.tokens.append(self._count)

    def conclude(self, whole: bool) -> None:
        """Decide how the stream ended; whatever is missing is named."""
        trace = self._trace
        missing = [
            name
            for name, there in (
                ("[DONE]", self._closed),
                ("a finish reason", trace.finish is not None),
                ("usage", trace.completion_tokens is not None),
            )
            if not there
        ]
        if self._error is not None:
            trace.outcome, trace.detail = "error-event", self._error
        elif missing or not whole:
            trace.outcome = "cut"
            trace.detail = trace.detail or "the stream ended without " + (", ".join(missing) or "its last bytes")
        else:
            trace.outcome = OK


def _error_text(body: bytes) -> str:
    text = body.decode("utf-8", errors="replace").strip()
    try:
        raw = json.loads(text)
        error = raw.get("error", raw)
        return str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        return text[:200]


async def stream(target: Target, body: bytes, *, expect: int | None, timeout_s: float) -> Trace:
    """Send one streamed chat request and follow it to its end; never raises for what a server does.

    Args:
        target: where to.
        body: the JSON of the request, rendered before the clock starts.
        expect: output tokens the answer must have; any other number is `wrong-length`.
        timeout_s: seconds for the whole of it.
    """
    trace, loop = Trace(), asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    request = target.head(len(body)) + body
    start = trace.sent = time.monotonic()
    transport: asyncio.BaseTransport | None = None
    try:
        async with asyncio.timeout(timeout_s):
            transport, _ = await loop.create_connection(lambda: _Stream(request, trace, done), target.host, target.port)
            trace.connect_s = trace.sent - start
            await done
    except TimeoutError:
        trace.outcome, trace.detail = "timeout", f"no end within {timeout_s:.0f} s"
        trace.ended = time.monotonic() - trace.sent
    except OSError as error:
        trace.outcome, trace.detail = "refused", str(error)
        trace.ended = time.monotonic() - trace.sent
    finally:
        if transport is not None:
            transport.close()
    if trace.ok and expect is not None and trace.completion_tokens != expect:
        trace.outcome = "wrong-length"
        trace.detail = f"{trace.completion_tokens} output tokens, {expect} were asked for"
    return trace


class Lateness:
    """How late this process's own event loop ran while it measured."""

    EVERY_S = 0.01

    def __init__(self) -> None:
        self._late: list[float] = []

    async def beat(self) -> None:
        """Sleep in small steps for ever and note how much too long each took."""
        while True:
            due = time.monotonic() + self.EVERY_S
            await asyncio.sleep(self.EVERY_S)
            self._late.append(max(0.0, time.monotonic() - due))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Beat while the block runs; needs a running loop."""
        task = asyncio.get_running_loop().create_task(self.beat())
        try:
            yield
        finally:
            task.cancel()

    def p99(self) -> float | None:
        """99 % of the beats were less late than this, seconds; `None` if nothing was measured."""
        return sorted(self._late)[int(0.99 * (len(self._late) - 1))] if self._late else None
