"""The console in a pseudo-terminal of a fixed size, as a user's terminal would run it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.tui.glass import Glass

SCRIPT = """
import sys
from tests.tui.fakes import READY, FakeServer, House
from console.tui.run import run
sys.exit(run(House(FakeServer(READY)).services()))
"""
LEFT = b"\x1b[?1049l"
ENTERED = b"\x1b[?1049h"


@dataclass
class Terminal:
    """One program on a pseudo-terminal; `output` is all that it has written."""

    pid: int
    master: int
    glass: Glass
    """What its terminal shows."""
    output: bytes = b""
    code: int | None = None
    closed: bool = field(default=False, repr=False)

    def read(self, seconds: float = 0.05) -> None:
        """Take what there is."""
        with suppress(OSError):
            if not self.closed and select.select([self.master], [], [], seconds)[0]:
                found = os.read(self.master, 65536)
                self.output += found
                self.glass.feed(found)

    def until(self, condition: Callable[[], bool], seconds: float = 30.0) -> None:
        """Read until a condition holds."""
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"never came true; the terminal:\n{self.glass.text}")
            if self.closed:
                time.sleep(0.02)
            self.read()

    def shows(self, *texts: str) -> None:
        """Wait until all of these stand on the terminal at once."""
        self.until(lambda: all(text in self.glass.text for text in texts))

    def type(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self.master, keys)

    def send(self, number: int) -> None:
        """Send the program a signal."""
        os.kill(self.pid, number)

    def hang_up(self) -> None:
        """Close the terminal under it."""
        os.close(self.master)
        self.closed = True

    def ended(self) -> bool:
        """Whether the program has ended; its code is kept."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def cpu_s(self) -> float:
        """CPU seconds it has used."""
        with open(f"/proc/{self.pid}/stat") as file:  # noqa: PTH123 - a pseudo-file
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def terminal(*words: str, size: tuple[int, int] = (80, 24), env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """Run `python WORDS…` on a new pseudo-terminal; it is ended at the end."""
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", **(env or {})})
        os.execv(sys.executable, [sys.executable, *(words or ("-P", "-c", SCRIPT))])
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
    running = Terminal(pid, master, Glass(*size))
    try:
        yield running
    finally:
        if not running.ended():
            os.kill(pid, signal.SIGKILL)
            running.until(running.ended)
        if not running.closed:
            os.close(master)
