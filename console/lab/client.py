"""Streamed chat requests on bare sockets: a stamp a read, and nothing else until the last stream has ended.

A general HTTP client costs three times the CPU a chunk and stamps late under load, and an event loop wakes up dearly;
this one waits on epoll, reads loopback HTTP/1.1 and nothing else. One connection a request, so that no request waits
for another. What the bytes mean is found out afterwards (`console.lab.answer`): a stream that is read must not wait for
another one's JSON.
"""

from __future__ import annotations

import select
import socket
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from console.lab.answer import Read, read_answer
from console.lab.trace import Trace

PATH = "/v1/chat/completions"
_BUFFER_BYTES = 65_536
_END = b"\r\n0\r\n\r\n"
"""How a chunked body ends. Within an event no line ends with a carriage return, so nothing else looks like it."""
_CONNECT_S = 10.0
_SETTLE_S = 0.001
"""Between connecting and writing: the server's accept is no part of its answer's time."""
_IN = select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go."""

    host: str
    port: int
    key: str | None = field(default=None, repr=False)
    end_token: int | None = None
    """The token that ends an answer by itself, where it is known."""

    @classmethod
    def of(cls, url: str, key: str | None, end_token: int | None = None) -> Target:
        """From a base URL such as `http://127.0.0.1:8000`."""
        parts = urlsplit(url)
        return cls(parts.hostname or "127.0.0.1", parts.port or 80, key, end_token)

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


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    body: bytes
    """JSON, rendered before the clock starts."""
    expect: int | None
    """Output tokens the answer must have; any other number is `wrong-length`."""
    timeout_s: float
    """For the whole of it."""


class Lateness:
    """How late this process itself ran while it measured: it wanted to wake up at a moment, and did later."""

    EVERY_S = 0.05

    def __init__(self) -> None:
        self._late: list[float] = []

    def note(self, seconds: float) -> None:
        """One wake-up."""
        self._late.append(max(0.0, seconds))

    def p99(self) -> float | None:
        """99 % of the wake-ups were less late than this, seconds; `None` if nothing was measured."""
        return sorted(self._late)[int(0.99 * (len(self._late) - 1))] if self._late else None


class _Wire:
    """One request on its connection."""

    __slots__ = ("asked", "deadline", "door", "due", "failure", "left", "reads", "start", "trace")

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.trace = Trace()
        self.reads: list[Read] = []
        self.failure: tuple[str, str] | None = None
        self.door: socket.socket | None = None
        self.left = memoryview(b"")
        self.start = self.trace.sent = time.monotonic()
        self.due: float | None = None
        self.deadline = self.start + asked.timeout_s


class Wires:
    """Performs requests, some of them at a time, on one epoll; never raises for what a server does.

    Args:
        target: where to.
        lateness: how late this process ran is noted there.
    """

    def __init__(self, target: Target, lateness: Lateness | None = None) -> None:
        self._target = target
        self._lateness = lateness or Lateness()
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._open: dict[int, _Wire] = {}
        self._waiting: deque[_Wire] = deque()
        self._beat = self._next = 0.0

    def perform(self, asked: Sequence[Asked], at_once: int = 1, after: int = 0) -> list[Trace]:
        """All requests, to the end of the last.

        Args:
            asked: what to send.
            at_once: so many in flight.
            after: the first is sent alone, the others once it has brought so many reads (or has ended).
        """
        wires = [_Wire(one) for one in asked]
        first = wires[0] if after else None
        self._waiting = deque(wires)
        self._beat = time.monotonic() + Lateness.EVERY_S
        with select.epoll() as poller:
            try:
                self._fill(poller, 1 if first else at_once)
                while self._open:
                    self._turns(poller, first, after)
                    if first is not None and (len(first.reads) > after or first.door is None):
                        first = None
                    self._fill(poller, 1 if first else at_once)
            finally:
                for wire in list(self._open.values()):
                    self._close(poller, wire)
        return [self._concluded(wire) for wire in wires]

    def _turns(self, poller: select.epoll, first: _Wire | None, after: int) -> None:
        """Wait for what happens, and deal with it, until a connection has ended or the others may follow the first."""
        wires, poll, clock, now = self._open, poller.poll, time.monotonic, time.monotonic()
        count = len(wires)
        while len(wires) == count:
            wait = self._next - now
            for handle, mask in poll(wait if wait > 0 else 0):
                wire = wires[handle]
                if mask & _IN:
                    self._read(poller, wire)
                elif wire.due is None:
                    self._write(poller, wire)
            now = clock()
            if now >= self._next:
                self._tick(poller, now)
            if first is not None and len(first.reads) > after:
                return

    def _tick(self, poller: select.epoll, now: float) -> None:
        """Whatever is due by the clock."""
        if now >= self._beat:
            self._lateness.note(now - self._beat)
            self._beat = now + Lateness.EVERY_S
        for wire in list(self._open.values()):
            if wire.due is not None and now >= wire.due:
                wire.due = None
                wire.trace.sent = time.monotonic()
                wire.trace.connect_s = wire.trace.sent - wire.start
                self._write(poller, wire)
            elif now >= wire.deadline:
                wire.failure = ("timeout", f"no end within {wire.asked.timeout_s:.0f} s")
                self._close(poller, wire)
        self._plan()

    def _plan(self) -> None:
        """When the clock has to be looked at next."""
        moments = [wire.deadline if wire.due is None else wire.due for wire in self._open.values()]
        self._next = min([self._beat, *moments])

    def _fill(self, poller: select.epoll, at_once: int) -> None:
        """Open connections while there is room."""
        while self._waiting and len(self._open) < at_once:
            wire = self._waiting.popleft()
            wire.start = wire.trace.sent = time.monotonic()
            wire.deadline = wire.start + wire.asked.timeout_s
            try:
                door = socket.create_connection((self._target.host, self._target.port), timeout=_CONNECT_S)
            except OSError as error:
                wire.failure = ("refused", str(error))
                wire.trace.ended = time.monotonic() - wire.start
                continue
            door.setblocking(False)
            door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            wire.door, wire.due = door, time.monotonic() + _SETTLE_S
            wire.left = memoryview(self._target.head(len(wire.asked.body)) + wire.asked.body)
            poller.register(door.fileno(), select.EPOLLIN)
            self._open[door.fileno()] = wire
            self._plan()

    def _write(self, poller: select.epoll, wire: _Wire) -> None:
        """As much of the request as the kernel takes."""
        assert wire.door is not None
        try:
            wire.left = wire.left[wire.door.send(wire.left) :]
        except BlockingIOError:
            pass
        except OSError as error:
            wire.trace.detail = str(error)
            self._close(poller, wire)
            return
        poller.modify(wire.door.fileno(), select.EPOLLIN | (select.EPOLLOUT if wire.left else 0))

    def _read(self, poller: select.epoll, wire: _Wire) -> None:
        assert wire.door is not None
        try:
            count = wire.door.recv_into(self._buffer)
        except BlockingIOError:
            return
        except OSError as error:
            wire.trace.detail = str(error)
            count = 0
        stamp = time.monotonic() - wire.trace.sent
        if count:
            data = bytes(self._buffer[:count])
            wire.reads.append((stamp, data))
            if not (data.endswith(_END) or (count < len(_END) and _tail(wire.reads).endswith(_END))):
                return
        self._close(poller, wire)

    def _close(self, poller: select.epoll, wire: _Wire) -> None:
        if wire.door is None:
            return
        wire.trace.ended = time.monotonic() - wire.trace.sent
        handle = wire.door.fileno()
        with suppress(OSError):
            poller.unregister(handle)
        wire.door.close()
        wire.door = None
        del self._open[handle]
        self._plan()

    def _concluded(self, wire: _Wire) -> Trace:
        """What the answer says, once no stream is read any more."""
        trace = wire.trace
        read_answer(wire.reads, trace, self._target.end_token)
        if wire.failure is not None:
            trace.outcome, trace.detail = wire.failure
        elif trace.ok and wire.asked.expect is not None and trace.completion_tokens != wire.asked.expect:
            trace.outcome = "wrong-length"
            trace.detail = f"{trace.completion_tokens} output tokens, {wire.asked.expect} were asked for"
        return trace


def _tail(reads: Sequence[Read]) -> bytes:
    """The last bytes, where a read was too short to hold the end by itself."""
    return b"".join(data for _, data in reads[-8:])


def stream(target: Target, body: bytes, *, expect: int | None, timeout_s: float) -> Trace:
    """One streamed chat request, followed to its end."""
    return Wires(target).perform([Asked(body, expect, timeout_s)])[0]
