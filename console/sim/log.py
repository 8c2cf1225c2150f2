"""Lines as vLLM writes them: process prefix, level, time, place."""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import Literal

Role = Literal["APIServer", "EngineCore", "Worker", "Worker_TP0", "Worker_TP1"]
Level = Literal["INFO", "WARNING", "ERROR"]


def line(role: Role, place: str, text: str, level: Level = "INFO") -> str:
    """One line (or several, each with the prefix). One process plays all roles: the pid is its own."""
    stamp = time.strftime("%m-%d %H:%M:%S")
    head = f"({role} pid={os.getpid()}) {level} {stamp} [{place}] "
    return "\n".join(head + part for part in text.split("\n"))


def say(role: Role, place: str, text: str, level: Level = "INFO") -> None:
    """Write such a line to standard output; a full disk costs the line and no more, as with vLLM's logging."""
    with suppress(OSError):
        print(line(role, place, text, level), flush=True)


def raw(text: str, end: str = "\n") -> None:
    """Write text to standard error as it is: progress bars, tracebacks."""
    with suppress(OSError):
        print(text, end=end, file=sys.stderr, flush=True)
