"""Somebody who locks the server's lock and is neither a console nor a keeper: no start and no stop can begin then.

A console that takes the lock puts its name into the file; a keeper, which inherits it, has a record and a marker.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from console.errors import BusyError, NothingError
from console.files import read_text
from console.paths import Paths
from console.server import shapes
from console.server.locks import is_held
from console.server.process import PROC, Identity, alive, command_line, identify
from console.server.state import identity_from
from console.server.status import ServerStatus

_AGAIN_S = 0.3
"""Whoever has just taken the lock has signed it by then."""
_SIGNED_BYTES = 4096


def sign(lock: int) -> None:
    """Put this process into a lock file that it holds; one that cannot be written stays unsigned."""
    me = identify(os.getpid())
    if me is not None:
        with suppress(OSError):
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{me.pid} {me.start} {me.boot}\n".encode(), 0)


def stranger(paths: Paths) -> BusyError | None:
    """What to say of the lock when nobody of ours holds it; asked only where no life of ours is known."""
    path = paths.server_lock
    for last in (False, True):
        if not is_held(path) or alive(_signer(path)):
            return None
        if not last:
            time.sleep(_AGAIN_S)
    pid = _holder(path)
    who = f"{_name(pid)} (pid {pid})" if pid else "a process that this user cannot see"
    fix = f"end it if it may go: `kill {pid}`" if pid else f"`sudo fuser -v {path}` shows who it is"
    return BusyError(
        f"{path} is locked by {who}, which is neither a console nor its server",
        "while somebody else holds this lock, no server can be started or stopped here",
        fix,
    )


def nothing_to_stop(paths: Paths, foreign: ServerStatus | None) -> BusyError | NothingError:
    """What a stop says that finds no life of ours."""
    if (locked := stranger(paths)) is not None:
        return locked
    if foreign is None:
        return NothingError("there is no server to stop", "none of this console runs", "`qwen-console status`")
    what = f"the server on {foreign.url} is not ours to stop"
    return NothingError(what, foreign.note or "", "end it where it was started")


def _signer(path: Path) -> Identity | None:
    try:
        pid, start, boot = read_text(path, _SIGNED_BYTES).split()
        return identity_from((_number(pid), _number(start), boot))
    except (OSError, *shapes.WRONG):
        return None


def _number(word: str) -> int:
    return int(word) if len(word) < 20 else -1


def _holder(path: Path) -> int | None:
    """A process that holds the lock, as the kernel lists it, else one that has the file open."""
    try:
        inode = path.stat().st_ino
        rows = [line.split() for line in (PROC / "locks").read_text().splitlines()]
    except OSError:
        return None
    # number, FLOCK, ADVISORY, WRITE, pid, device:inode, from, to
    listed = [int(row[4]) for row in rows if len(row) > 5 and row[1] == "FLOCK" and row[5].endswith(f":{inode}")]
    found = next((pid for pid in listed if pid > 0 and identify(pid) is not None), None)
    return found or next((pid for pid in _pids() if _has_open(pid, path)), None)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit() and int(name) != os.getpid()]  # noqa: PTH208


def _has_open(pid: int, path: Path) -> bool:
    try:
        return any(handle.samefile(path) for handle in (PROC / str(pid) / "fd").iterdir() if handle.exists())
    except OSError:
        return False


def _name(pid: int) -> str:
    words = command_line(pid).split(b"\0")
    return Path(words[0].decode(errors="replace")).name or "a process"
