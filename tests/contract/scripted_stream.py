"""A scripted streaming server: what it sends, in which pieces, and how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

CLOSE, RESET, STALL = "close", "reset", "stall"
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
DONE = b"data: [DONE]\n\n"


def event(count: int | None, finish: str | None = None, **delta: Any) -> bytes:
    """One chunk as vLLM writes it with running counts; `count` is the output so far."""
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    if count is not None:
        chunk["usage"] = _usage(count)
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def usage(count: int, cached: int | None = None) -> bytes:
    """The last chunk: no choices, only counts."""
    return b"data: " + json.dumps({"choices": [], "usage": _usage(count, cached)}).encode() + b"\n\n"


def _usage(count: int, cached: int | None = None) -> dict[str, Any]:
    details = None if cached is None else {"cached_tokens": cached}
    return {"prompt_tokens": 7, "completion_tokens": count, "prompt_tokens_details": details}


def wrap(body: bytes) -> bytes:
    """One piece of a chunked body."""
    return b"%x\r\n%s\r\n" % (len(body), body)


@dataclass
class Script:
    """Steps: bytes are written as they are, a number is a pause in seconds, a word is an ending."""

    steps: Sequence[bytes | float | str]
    requests: list[bytes] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    """Loop time of every write."""


def events(*parts: bytes | float) -> list[bytes | float | str]:
    """A good stream: each event a chunk of its own, then its orderly end."""
    return [HEAD, *(wrap(part) if isinstance(part, bytes) else part for part in parts), wrap(DONE), END]


@asynccontextmanager
async def serving(script: Script) -> AsyncIterator[int]:
    """The port of a server that plays the script for every request."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await play(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()
            gone.set()

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.startswith(b"content-length"))
        script.requests.append(head + await reader.readexactly(length))
        for step in script.steps:
            if isinstance(step, bytes):
                writer.write(step)
                await writer.drain()
                script.sent.append(asyncio.get_running_loop().time())
            elif isinstance(step, float):
                await asyncio.sleep(step)
            elif step == RESET:
                writer.transport.abort()
                return
            elif step == STALL:
                await reader.read()

    gone = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await gone.wait()
        # The transport says goodbye in a later turn of the loop.
        await asyncio.sleep(0)
