"""Identity, kinship and signals of processes, read from /proc.

A pid alone names nobody: it is reused. An `Identity` (pid, start time, boot) is checked before every signal, and the
signal goes through a pidfd opened before the check, so no process that came later can ever be hit.

Standard library only and no import of the console: the keeper lives on this module.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

MARKER = "QWEN_CONSOLE_LIFE"
"""Variable in the environment of everything we start; its value names one life of one server or run."""
KEEP_ENVIRON = "SPT_NOENV"
"""Tells setproctitle (vLLM's workers call it) not to overwrite the environment that /proc shows."""
PROC = Path("/proc")
_GONE = frozenset("ZXx")
_DEAF = "D"


class Identity(NamedTuple):
    """One process for ever: `start` in clock ticks since boot (field 22 of /proc/PID/stat), `boot` the boot's id."""

    pid: int
    start: int
    boot: str


@dataclass(frozen=True, slots=True)
class Stat:
    """What /proc/PID/stat says of one process."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    start: int

    @property
    def lives(self) -> bool:
        """Whether it still runs; a zombie does not."""
        return self.state not in _GONE

    @property
    def deaf(self) -> bool:
        """Whether it hangs in the kernel, where no signal reaches it."""
        return self.state == _DEAF


Table = Mapping[int, Stat]
"""Every living process by pid, at one moment."""


@cache
def boot_id() -> str:
    """This boot of the machine, which no process outlives."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def read_stat(pid: int) -> Stat | None:
    """One process, or `None` when there is no such process (or only its zombie)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - read for every process of the machine
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    # The name may hold blanks and brackets: the last bracket ends it.
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    stat = Stat(
        pid=pid,
        name=head.partition("(")[2],
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start=int(fields[19]),
    )
    return stat if stat.lives else None


def identify(pid: int) -> Identity | None:
    """The identity of a living process."""
    stat = read_stat(pid)
    return Identity(pid, stat.start, boot_id()) if stat else None


def alive(who: Identity | None) -> bool:
    """Whether exactly this process still lives."""
    return who is not None and identify(who.pid) == who


def snapshot() -> dict[int, Stat]:
    """Every living process."""
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())  # noqa: PTH208 - names only, no Path each
    return {stat.pid: stat for stat in map(read_stat, pids) if stat}


def send(who: Identity, number: int) -> bool:
    """Signal exactly this process; `False` when it is gone or not ours to signal."""
    try:
        handle = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return False
    except OSError:
        return _send_plain(who, number)
    try:
        if identify(who.pid) != who:
            return False
        signal.pidfd_send_signal(handle, number)
    except (ProcessLookupError, PermissionError):
        return False
    finally:
        os.close(handle)
    return True


def _send_plain(who: Identity, number: int) -> bool:
    """For kernels and sandboxes without pidfds: checked, with a race of microseconds."""
    try:
        if identify(who.pid) != who:
            return False
        os.kill(who.pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def may_signal(who: Identity) -> bool:
    """Whether the kernel would let us signal this process."""
    try:
        os.kill(who.pid, 0)
    except OSError:
        return False
    return True


def environ(pid: int) -> dict[str, str] | None:
    """The environment a process was started with; `None` when it cannot be read."""
    try:
        raw = (PROC / str(pid) / "environ").read_bytes()
    except OSError:
        return None
    pairs = (item.decode(errors="replace").partition("=") for item in raw.split(b"\0"))
    return {name: value for name, separator, value in pairs if separator}


def command_line(pid: int) -> bytes:
    """The words a process was started with, each ended by a zero byte; empty when they cannot be read."""
    try:
        return (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return b""


def is_recorder(pid: int) -> bool:
    """Whether this process records a server's figures: it runs beside the server, and is no part of it."""
    return b"console.server.recorder" in command_line(pid)


def life_of(pid: int) -> str | None:
    """The life that a process was started in, by the marker in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - read for every process of the machine
            raw = b"\0" + file.read()
    except OSError:
        return None
    _, found, rest = raw.partition(f"\0{MARKER}=".encode())
    return rest.partition(b"\0")[0].decode(errors="replace") if found else None


def marked(life: str, pids: Iterable[int]) -> set[int]:
    """Those of the pids whose environment carries this life's marker."""
    needle = f"{MARKER}={life}".encode()
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:  # noqa: PTH123 - read for every process of the machine
                if needle in file.read().split(b"\0"):
                    found.add(pid)
        except OSError:
            continue
    return found


def descendants(roots: Iterable[int], table: Table) -> set[int]:
    """The roots that live, their children, and theirs."""
    children: dict[int, list[int]] = {}
    for stat in table.values():
        children.setdefault(stat.parent, []).append(stat.pid)
    found: set[int] = set()
    todo = [pid for pid in roots if pid in table]
    while todo:
        pid = todo.pop()
        if pid not in found:
            found.add(pid)
            todo += children.get(pid, ())
    return found


@dataclass(frozen=True, slots=True)
class Kin:
    """How to find everything that belongs to one life: descent, group and session, and the marker.

    Each alone has a hole: descent breaks when a leader dies, a group is left by `setsid`, the marker by a cleared
    environment. A reused pid or group matches none of them.
    """

    life: str
    keeper: Identity
    """Leader of the life's session."""
    child: Identity | None
    """The server (or lab) itself, leader of its group."""
    whole: bool = True
    """Also what left the session. A lab's keeper says no: the servers it starts have keepers of their own."""

    def find(self, *, search: bool = False) -> list[Identity]:
        """All living processes of this life but the keeper; `search` looks at every environment as well."""
        boot = boot_id()
        if self.keeper.boot != boot:
            return []
        table = snapshot()
        keeper = _lives(self.keeper, table)
        roots = {pid for pid, stat in table.items() if self._sits_with_us(stat, table)}
        roots |= {who.pid for who in (self.keeper, self.child) if who and _lives(who, table)}
        if search:
            roots |= marked(self.life, table)
        family = descendants(roots, table) - {self.keeper.pid if keeper else 0, os.getpid()}
        if not self.whole:
            family = {pid for pid in family if table[pid].session == self.keeper.pid}
        return [Identity(pid, table[pid].start, boot) for pid in sorted(family)]

    def _sits_with_us(self, stat: Stat, table: Table) -> bool:
        """By session, which nobody else can join while its leader lives; afterwards by session and group together.

        The number of a session or group is not given out again while it has members. So a stranger under the keeper's
        or the child's pid proves that ours are all gone.
        """
        if stat.session != self.keeper.pid or stat.start < self.keeper.start:
            return False
        if _lives(self.keeper, table):
            return True
        if self.child is None or stat.group != self.child.pid or self.keeper.pid in table:
            return False
        return self.child.pid not in table or _lives(self.child, table)


def _lives(who: Identity, table: Table) -> bool:
    return who.pid in table and table[who.pid].start == who.start


def uptime_s(who: Identity) -> float | None:
    """Seconds since this process began."""
    if not alive(who):
        return None
    return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - who.start / os.sysconf("SC_CLK_TCK"))
