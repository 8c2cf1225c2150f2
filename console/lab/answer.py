"""What a streamed answer says, from its raw reads; read once the stream has ended, so that no stamp waits. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import httptools

from console.files import parse_json
from console.lab.trace import OK, Trace

_ERROR_BYTES = 4000
Read = tuple[float, bytes]
"""Seconds after the request was written, and the bytes that came."""


def read_answer(reads: Sequence[Read], trace: Trace, end_token: int | None = None) -> None:
    """Fill the trace from what came over the connection.

    Args:
        reads: everything, in order.
        trace: stamps, counts and outcome go here; a detail already there (how the connection broke) stays.
        end_token: the token that ends an answer by itself, where it is known.
    """
    _Answer(trace, end_token).take(reads)


class _Answer:
    """One answer; httptools calls `on_body` and `on_message_complete`."""

    def __init__(self, trace: Trace, end_token: int | None) -> None:
        self._trace = trace
        self._events = _Events(trace, end_token)
        self._pending = b""
        self._data: list[bytes] = []
        self._error_body = b""
        self._stamp = 0.0
        self._status = 0
        self._whole = False
        self._parser: Any = httptools.HttpResponseParser(self)

    def take(self, reads: Sequence[Read]) -> None:
        trace, parser = self._trace, self._parser
        try:
            for stamp, data in reads:
                self._stamp = stamp
                parser.feed_data(data)
        except httptools.HttpParserError as error:
            trace.detail = f"not HTTP: {error}"
        trace.status = parser.get_status_code() or None
        if trace.status is not None and trace.status != 200:
            trace.outcome, trace.detail = "http-error", _error_text(self._error_body)
        else:
            self._events.conclude(whole=self._whole)

    def on_headers_complete(self) -> None:
        self._status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        if self._status != 200:
            self._error_body = (self._error_body + body)[:_ERROR_BYTES]
            return
        lines = (self._pending + body if self._pending else body).split(b"\n")
        self._pending = lines.pop()
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].strip())
            elif self._data and not line.strip():
                self._events.take(self._data[0] if len(self._data) == 1 else b"\n".join(self._data), self._stamp)
                self._data.clear()

    def on_message_complete(self) -> None:
        self._whole = True


class _Events:
    """Meaning of the events of one stream."""

    def __init__(self, trace: Trace, end_token: int | None) -> None:
        self._trace = trace
        self._end_token = end_token
        self._closed = False
        self._error: str | None = None
        self._count: int | None = None

    def take(self, event: bytes, stamp: float) -> None:
        if event == b"[DONE]":
            self._closed = True
            return
        try:
            chunk = parse_json(event)
        except ValueError:
            self._error = f"an event that is no JSON: {event[:80]!r}"
            return
        if not isinstance(chunk, dict):
            self._error = f"an event that is no object: {event[:80]!r}"
        elif "error" in chunk:
            error = chunk["error"]
            self._error = str(error.get("message", error)) if isinstance(error, dict) else str(error)
        else:
            grew = self._usage(chunk.get("usage"))
            for choice in chunk.get("choices") or ():
                self._choice(choice, stamp, grew=grew)

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

    def _choice(self, choice: dict[str, Any], stamp: float, *, grew: bool) -> None:
        trace, delta = self._trace, choice.get("delta") or {}
        if choice.get("finish_reason"):
            trace.finish = choice["finish_reason"]
        if ids := choice.get("token_ids"):
            self._ids(ids)
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

    def _ids(self, ids: list[int]) -> None:
        trace = self._trace
        if trace.natural is None and self._end_token is not None and self._end_token in ids:
            trace.natural = len(trace.ids) + ids.index(self._end_token) + 1
        trace.ids.extend(ids)

    def conclude(self, *, whole: bool) -> None:
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
        raw = parse_json(text)
        error = raw.get("error", raw)
        return str(error.get("message", error)) if isinstance(error, dict) else str(error)
    except (ValueError, AttributeError):
        return text[:200]
