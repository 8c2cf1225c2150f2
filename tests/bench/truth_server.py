"""A streaming server with a schedule: every chunk has its planned time, and the time of its write is kept.

    python -m tests.bench.truth_server        prints its port; POST a chat completion with a `schedule`, GET /log

One thread, one loop on select() (epoll rounds its timeout up to a millisecond), everything rendered before the first
chunk is due. Its clock is CLOCK_MONOTONIC, as its clients' is, so that stamps of both can be subtracted.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import selectors
import socket
import struct
import sys
import time
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

Json = dict[str, Any]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
DIED = b'data: {"error": {"message": "EngineCore died", "type": "InternalServerError", "code": 500}}\n\n'
DONE = b"data: [DONE]\n\n"
RESET, CLOSE, STALL, EOF, EVENT = "reset", "close", "stall", "eof", "event"
_WORD = " the"


@dataclass(frozen=True)
class Schedule:
    """What one answer looks like in time; milliseconds."""

    first: float = 100.0
    gap: float = 20.0
    gaps: tuple[float, ...] = ()
    """Overrides `gap`, in turn."""
    chunks: int = 32
    tokens: tuple[int, ...] = (1,)
    """Tokens of each chunk, in turn."""
    role: float = -1.0
    """An event that only names the role, so long before the first token; negative: none."""
    reasoning: int = 0
    """So many chunks of reasoning come first."""
    field: str = "reasoning"
    usage: str = "every"
    """none, final or every."""
    glue: int = 1
    """So many chunks leave in one write, when the last of them is due."""
    ending: str = ""
    """reset, close, stall, eof or event instead of chunk number `broken_at`."""
    broken_at: int = -1


@dataclass
class Write:
    """One write to the socket."""

    at: float
    """Planned, seconds after the request."""
    data: bytes
    tokens: int
    kind: str


@dataclass
class Sent:
    """What became of one request."""

    received: float
    name: str = ""
    """The request's `user`."""
    writes: list[tuple[str, int, float]] = field(default_factory=list)
    """Kind, tokens, monotonic time just before the write."""
    late: list[float] = field(default_factory=list)
    """How much later than planned each write was."""


def _event(body: Json) -> bytes:
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _usage(count: int) -> Json:
    details = {"cached_tokens": 256}
    return {
        "prompt_tokens": 512,
        "completion_tokens": count,
        "total_tokens": 512 + count,
        "prompt_tokens_details": details,
    }


@lru_cache(maxsize=64)
def plan(schedule: Schedule) -> tuple[Write, ...]:
    """All writes of one answer."""
    writes: list[Write] = []
    count, at = 0, schedule.first / 1000
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "truth"}
    gaps = schedule.gaps or (schedule.gap,)

    def chunk(delta: Json, finish: str | None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        usage = {"usage": _usage(count)} if schedule.usage == "every" else {}
        return _event({**base, "choices": [choice], **usage})

    if schedule.role >= 0:
        writes.append(Write(at - schedule.role / 1000, chunk({"role": "assistant", "content": ""}, None), 0, "role"))
    for i in range(schedule.chunks):
        if schedule.ending and i == schedule.broken_at:
            data = DIED + DONE if schedule.ending == EVENT else b""
            return (*writes, Write(at, data, 0, schedule.ending))
        size = schedule.tokens[i % len(schedule.tokens)]
        count += size
        name = schedule.field if i < schedule.reasoning else "content"
        last = i == schedule.chunks - 1
        writes.append(Write(at, chunk({name: _WORD * size}, "length" if last else None), size, "tokens"))
        at += 0.0 if last else gaps[i % len(gaps)] / 1000
    tail = DONE if schedule.usage == "none" else _event({**base, "choices": [], "usage": _usage(count)}) + DONE
    writes.append(Write(at, tail, 0, "end"))
    return tuple(writes)


class Door(asyncio.Protocol):
    """One connection."""

    def __init__(self, log: list[Sent]) -> None:
        self._log = log
        self._buffer = b""
        self._queue: list[tuple[float, bytes, tuple[Write, ...]]] = []
        self._handle: asyncio.TimerHandle | None = None
        self._sent: Sent | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's own signature
        if self._handle is not None:
            self._handle.cancel()

    def data_received(self, data: bytes) -> None:
        received = time.monotonic()
        self._buffer += data
        head, blank, rest = self._buffer.partition(b"\r\n\r\n")
        length = next(
            (int(w.split(b":")[1]) for w in head.lower().split(b"\r\n") if w.startswith(b"content-length:")), 0
        )
        if not blank or len(rest) < length:
            return
        self._buffer = rest[length:]
        verb, path, _ = head.split(b"\r\n")[0].split(b" ")
        self._handle_request(verb, path.partition(b"?")[0], rest[:length], received)

    def _handle_request(self, verb: bytes, path: bytes, body: bytes, received: float) -> None:
        if verb == b"POST" and path.endswith(b"/chat/completions"):
            self._answer(json.loads(body), received)
        elif path == b"/log":
            self._reply([asdict(sent) for sent in self._log])
            self._log.clear()
            gc.collect()
        else:
            self._reply({"object": "list", "data": [{"id": "truth", "object": "model", "max_model_len": 32768}]})

    def _reply(self, value: Any) -> None:
        body = json.dumps(value).encode()
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)

    def _answer(self, body: Json, received: float) -> None:
        raw = {**DEFAULT, **(body.get("schedule") or {})}
        lists = {key: tuple(value) for key, value in raw.items() if isinstance(value, list)}
        schedule = Schedule(**{**raw, **lists})
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if limit and "chunks" not in raw:
            schedule = Schedule(**{**raw, **lists, "chunks": -(-int(limit) // schedule.tokens[0])})
        self._sent = Sent(received, str(body.get("user") or ""))
        self._log.append(self._sent)
        self._queue = [(received + at, data, group) for at, data, group in pieces(schedule)]
        self._transport.write(HEAD)
        self._arm()

    def _arm(self) -> None:
        self._handle = None
        if self._queue:
            self._handle = asyncio.get_running_loop().call_at(self._queue[-1][0], self._fire)
        else:
            self._transport.write(b"0\r\n\r\n")

    def _fire(self) -> None:
        assert self._sent is not None
        while self._queue and self._queue[-1][0] <= time.monotonic():
            due, data, group = self._queue.pop()
            now = time.monotonic()
            if data:
                self._transport.write(data)
            self._sent.late.append(now - due)
            self._sent.writes += [(write.kind, write.tokens, now) for write in group]
            if self._breaks(group[-1].kind):
                return
        self._arm()

    def _breaks(self, kind: str) -> bool:
        """Whether the answer ends here without an end."""
        if kind == RESET:
            linger = struct.pack("ii", 1, 0)
            self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self._transport.abort()
        elif kind == CLOSE:
            self._transport.close()
        return kind in (RESET, CLOSE, STALL)


DEFAULT: Json = {}
"""What the command line set for requests that bring no schedule of their own."""


@lru_cache(maxsize=64)
def pieces(schedule: Schedule) -> tuple[tuple[float, bytes, tuple[Write, ...]], ...]:
    """Writes in groups of `glue`, the last one first: (when its last one is due, the wire's bytes, the writes)."""
    groups: list[list[Write]] = []
    for write in plan(schedule):
        full = groups and write.kind == "tokens" == groups[-1][-1].kind and len(groups[-1]) < schedule.glue
        if full:
            groups[-1].append(write)
        else:
            groups.append([write])
    found = []
    for group in groups:
        data = b"".join(b"%x\r\n%s\r\n" % (len(write.data), write.data) for write in group if write.data)
        found.append((group[-1].at, data, tuple(group)))
    return tuple(reversed(found))


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    log: list[Sent] = []
    server = await asyncio.get_running_loop().create_server(lambda: Door(log), "127.0.0.1", port, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    """`python -m tests.bench.truth_server [PORT] [DEFAULT_SCHEDULE_JSON]`."""
    words = sys.argv[1:]
    DEFAULT.update(json.loads(words[1]) if len(words) > 1 else {})
    gc.disable()
    loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
    with contextlib.suppress(KeyboardInterrupt):
        loop.run_until_complete(serve(int(words[0]) if words else 0))


if __name__ == "__main__":
    main()
