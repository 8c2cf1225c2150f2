"""A total deadline for a request, and time that went by in a sleep.

A timeout a read is no deadline, for a server that drips bytes never exceeds it.

Works on the streams of whatever HTTP library the caller has; imports none.
"""

from __future__ import annotations

import io
import math
import socket
import threading
import time
from contextlib import suppress
from typing import Any

_SLEPT_S = 1.0
_OVER_S = 0.001
"""What is left of a deadline that has passed: what lies there already may be taken, nothing is waited for."""


def asleep_s() -> float:
    """How long the machine has been suspended since it was started: a clock that runs on, less one that does not."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()


def slept_since(before: float) -> float | None:
    """Seconds of suspension since `asleep_s` said `before`; `None` if there was none."""
    slept = asleep_s() - before
    return slept if slept > _SLEPT_S else None


class Deadline(threading.local):
    """Until when the request of this thread may take."""

    end = math.inf
    """Monotonic seconds."""

    def left(self, timeout: float | None = None) -> float | None:
        """Seconds for the next wait, at most `timeout`."""
        rest = max(self.end - time.monotonic(), _OVER_S)
        if rest == math.inf:
            return timeout
        return rest if timeout is None else min(timeout, rest)


class TimelyBackend:
    """Opens connections as `inner` does, an httpcore network backend; none of their waits outlasts the deadline."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, **how: Any) -> TimelyStream:
        """Connect; of a name with several addresses each is tried with what time is left, not with all of it."""
        *others, last = _addresses(host, port)
        for name in others:
            with suppress(Exception):  # the last one's says it
                return self._stream(self._inner.connect_tcp(name, port, timeout=self._deadline.left(timeout), **how))
        return self._stream(self._inner.connect_tcp(last, port, timeout=self._deadline.left(timeout), **how))

    def _stream(self, inner: Any) -> TimelyStream:
        return TimelyStream(inner, self._deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TimelyStream:
    """A connection whose reads and writes end with the deadline of the thread that does them."""

    def __init__(self, inner: Any, deadline: Deadline) -> None:
        self._inner = inner
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        return bytes(self._inner.read(max_bytes, timeout=self._deadline.left(timeout)))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """All these bytes."""
        self._inner.write(buffer, timeout=self._deadline.left(timeout))

    def start_tls(self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None) -> Any:
        """The same connection under TLS."""
        inner = self._inner.start_tls(ssl_context, server_hostname, timeout=self._deadline.left(timeout))
        return TimelyStream(inner, self._deadline)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class TimelyFile(io.RawIOBase):
    """What comes in on a socket, as a file; `end` in monotonic seconds bounds all of its reads together."""

    def __init__(self, connection: socket.socket, file: io.RawIOBase, end: float) -> None:
        self._connection = connection
        self._file = file
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._connection.settimeout(max(self._end - time.monotonic(), _OVER_S))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _addresses(host: str, port: int) -> list[str]:
    """The addresses of a name, in the system's order; the name itself where there is only one, or none is known."""
    with suppress(OSError, UnicodeError):
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        names = [str(one[4][0]) for one in found if len(one[4]) < 4 or not one[4][3]]
        if len(names) > 1:
            return list(dict.fromkeys(names))
    return [host]
