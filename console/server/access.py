"""What keeps this user from reading or writing a place, in words: its owner and mode, a mount that takes no writing."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

_ELSEWHERE = "or point XDG_STATE_HOME to a folder of your own"


def in_the_way(place: Path) -> tuple[str, str] | None:
    """Why this user cannot read and write there, and the remedy; `None` where nothing is seen to be in the way.

    Of what is not there (or is behind a closed folder) the nearest folder above that can be seen decides.
    """
    for found in (place, *place.parents):
        try:
            status = found.stat()
        except OSError:
            continue
        if found != place and not stat.S_ISDIR(status.st_mode):
            return f"{found} is a file, not a folder", f"move it away, {_ELSEWHERE}"
        return _of(found, status)
    return None


def folder_in_the_way(place: Path) -> tuple[str, str] | None:
    """The same for what has to be a folder."""
    try:
        if not stat.S_ISDIR(place.stat().st_mode):
            return f"{place} is a file, not a folder", f"move it away, {_ELSEWHERE}"
    except OSError:
        pass
    return in_the_way(place)


def _of(place: Path, status: os.stat_result) -> tuple[str, str] | None:
    wanted = os.R_OK | os.W_OK | (os.X_OK if stat.S_ISDIR(status.st_mode) else 0)
    if os.access(place, wanted):
        return None
    if _is_read_only(place):
        return (
            f"the file system of {place} takes no writing (read-only)",
            f"`findmnt -T {place}` shows it; {_ELSEWHERE}",
        )
    mine, owner = os.geteuid(), status.st_uid
    mode = f"mode {stat.S_IMODE(status.st_mode):o}"
    if owner == mine:
        return f"{place} is yours, but its {mode} keeps you out", f"`chmod u+rwX {place}`, {_ELSEWHERE}"
    why = f"{place} belongs to {_name(owner)} ({mode}), and you are {_name(mine)}"
    return why, f"`sudo chown -R {_name(mine)} {place}`, {_ELSEWHERE}"


def _is_read_only(place: Path) -> bool:
    try:
        return bool(os.statvfs(place).f_flag & os.ST_RDONLY)
    except OSError:
        return False


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
