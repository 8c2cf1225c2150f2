"""How a verb speaks: data on stdout, narration on stderr, every command in it as this console was started.

Nothing else prints. What files and servers say passes through `printable` here: their control characters would write
to the terminal, and not to its reader. JSON has its own escapes.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from console import hints
from console.units import finite, printable


class ClosedOutput(OSError):
    """stdout was closed by whoever started us, and there was something to deliver there."""


class _Nowhere(io.TextIOBase):
    """stdout where there is none: what is written is lost, and the next flush says so once."""

    _lost = False

    def write(self, text: str) -> int:
        self._lost = self._lost or bool(text)
        return len(text)

    def flush(self) -> None:
        if self._lost:
            self._lost = False
            raise ClosedOutput(errno.EBADF, "standard output is closed")

    def fileno(self) -> int:
        return 1


def ready_to_speak() -> None:
    """Make the three standard streams safe to use, whoever started us.

    A closed one (`>&-`, some cron daemons) is opened on /dev/null: the next file opened would take its number, and a
    lock that is 0, 1 or 2 is lost in every child. What a stream's encoding has no sign for prints as `?`.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = _Nowhere()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say(line: str) -> None:
    """Narration: a line on stderr. Whoever stops listening to it does not stop the work."""
    if sys.stderr is None:
        return
    try:
        print(printable(hints.told(line)), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr.fileno())


def silence(number: int) -> None:
    """Let a stream whose reader has left go to /dev/null: Python would complain once more while it shuts down."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def show(lines: Iterable[str]) -> None:
    """Data for people: lines on stdout."""
    for line in lines:
        print(printable(hints.told(line)))


def offer(word: str) -> None:
    """What a script may pick up on stdout: an address, an id, a path. A closed stdout has no use for it."""
    if not isinstance(sys.stdout, _Nowhere):
        print(printable(word))


def show_json(value: Any) -> None:
    """Data for scripts: one JSON object on stdout."""
    print(json.dumps(finite(hints.told_all(value)), indent=1, allow_nan=False).replace("\x7f", "\\u007f"))
