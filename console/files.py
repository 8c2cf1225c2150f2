"""Reading files that may be anything and hold anything: regular ones only, of bounded size, and JSON of sane shape.

A pipe would keep its reader waiting for ever, a device feeds it for ever. Standard library only: the keeper imports
this module.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

STATE_BYTES = 16_000_000
"""Far more than any state file of ours holds."""
_DEEPEST = 64
"""Levels of maps and lists: more is no data, and would break whoever walks it."""
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading, links followed.

    Raises:
        OSError: it cannot be read, or it is a pipe, a device, a folder.
    """
    # Looked at before it is opened, which may do something to a device; and after, since it may be another one by then.
    refuse_odd(path)
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _refuse_odd(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except OSError:
        os.close(handle)
        raise


def refuse_odd(path: Path) -> None:
    """See that this is a regular file, for whoever opens it in a way of his own.

    Raises:
        OSError: it is none, or not there.
    """
    _refuse_odd(path, path.stat().st_mode)


def _refuse_odd(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kind = next((name for test, name in _KINDS if test(mode)), "something else")
    raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))


def read_text(path: Path, limit: int = STATE_BYTES) -> str:
    """All of a file's text.

    Raises:
        OSError: it cannot be read, is no regular file, or has more than `limit` bytes.
        UnicodeDecodeError: it is not UTF-8.
    """
    with open_file(path) as file:
        raw = file.read(limit + 1)
    if len(raw) > limit:
        raise OSError(errno.EFBIG, f"it is larger than the {limit:,} bytes such a file may have", str(path))
    return raw.decode()


def read_json(path: Path, limit: int = STATE_BYTES) -> Any:
    """The JSON of a file.

    Raises:
        OSError: as with `read_text`.
        ValueError: it is not UTF-8, or as with `parse_json`.
    """
    return parse_json(read_text(path, limit))


def parse_json(text: str | bytes) -> Any:
    """Text as JSON, whatever it is.

    Raises:
        ValueError: it is none, is nested absurdly deep, or holds a whole number beyond 64 bits.
    """
    try:
        value = json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError(f"it is nested more than {_DEEPEST} levels deep") from None
    _refuse_deep(value, text)
    return value


def _whole(digits: str) -> int:
    # Longer ones are not looked at: that would take its time.
    if len(digits) > 20 or not -(2**63) <= (value := int(digits)) < 2**64:
        raise ValueError("it holds a number out of all proportion")
    return value


def _refuse_deep(value: Any, text: str | bytes) -> None:
    if not isinstance(value, dict | list):
        return
    opened = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    if opened <= _DEEPEST:
        return
    level = [value]
    for _ in range(_DEEPEST):
        inside = (inner for outer in level for inner in (outer.values() if isinstance(outer, dict) else outer))
        level = [inner for inner in inside if isinstance(inner, dict | list)]
        if not level:
            return
    raise ValueError(f"it is nested more than {_DEEPEST} levels deep")


def describe(error: OSError | ValueError) -> str:
    """Why a file cannot be used, in a few words."""
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text: {error.reason} at byte {error.start}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)
