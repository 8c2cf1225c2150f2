"""How a verb speaks: data on stdout, narration on stderr, every command in it as this console was started."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterable
from typing import Any

from console import hints
from console.units import finite


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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def say(line: str) -> None:
    """Narration: a line on stderr. Whoever stops listening to it does not stop the work."""
    if sys.stderr is None:
        return
    try:
        print(hints.told(line), file=sys.stderr, flush=True)
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
        print(hints.told(line))


def show_json(value: Any) -> None:
    """Data for scripts: one JSON object on stdout."""
    print(json.dumps(finite(hints.told_all(value)), indent=1, allow_nan=False))
