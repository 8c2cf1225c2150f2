"""A living server of ours that no state file tells of: its record was replaced by one of an earlier life (a backup that
was restored), or the whole folder was. Told by what lives: a keeper of this folder, or a child that logs into it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

from console.server.found import child_among, keeper_among
from console.server.process import Identity, Stat, alive, command_line, is_recorder, life_of, snapshot, uptime_s
from console.server.state import ServerRecord, spec_path

NOTE = (
    "the state folder does not tell of this server (restored from a backup, or not readable?): it was found by its "
    "processes, its preset is not known; `qwen-console down` stops it whole"
)
_EVERY_S = 10.0
"""Every environment of the machine is read for this."""


class Strays:
    """Looks for such a server now and then.

    Args:
        record: where the record of a life stands.
    """

    def __init__(self, record: Path) -> None:
        self._record = record
        self._at = -math.inf
        self._found: ServerRecord | None = None

    def find(self, known: ServerRecord | None) -> ServerRecord | None:
        """The living server that is not of the known life, which is over."""
        if self._found and (alive(self._found.keeper) or alive(self._found.child)):
            return self._found
        now = time.monotonic()
        self._found = None
        if now - self._at >= _EVERY_S:
            self._at = now
            self._found = find_stray(self._record, known)
        return self._found


def find_stray(record: Path, known: ServerRecord | None) -> ServerRecord | None:
    """A record as it would stand at `record`, of a life that is not the known one; `None` when none lives."""
    table = snapshot()
    lives: dict[str, list[Stat]] = {}
    for stat in table.values():
        life = life_of(stat.pid)
        if life and (known is None or life != known.life) and not is_recorder(stat.pid):
            lives.setdefault(life, []).append(stat)
    for life, ours in lives.items():
        keeper, child = keeper_among(ours, table), child_among(ours)
        # A keeper without a child is about to start one, or to end: it says so itself.
        if keeper and child and _is_of(record, keeper, child):
            return _rebuilt(life, keeper, child)
    return None


def _is_of(record: Path, keeper: Identity, child: Identity) -> bool:
    """Whether this life belongs to this state folder, and is none of a run."""
    words = command_line(keeper.pid).split(b"\0")
    return os.fsencode(spec_path(record)) in words or Path(_log(child)).parent == record.parent / "logs"


def _rebuilt(life: str, keeper: Identity, child: Identity) -> ServerRecord:
    words = [word.decode(errors="replace") for word in command_line(child.pid).split(b"\0")[:-1]]
    port = _after(words, "--port")
    begun = datetime.now(UTC) - timedelta(seconds=uptime_s(child) or 0.0)
    return ServerRecord(
        life=life,
        keeper=keeper,
        child=child,
        argv=tuple(words),
        log=_log(child),
        started=begun.isoformat(timespec="milliseconds"),
        host=_after(words, "--host"),
        port=int(port) if port and port.isdecimal() else None,
    )


def _after(words: Sequence[str], flag: str) -> str | None:
    return next((value for word, value in pairwise(words) if word == flag), None)


def _log(child: Identity) -> str:
    with suppress(OSError):
        return str(Path(f"/proc/{child.pid}/fd/1").readlink())
    return ""
