"""A log that grows too long: copied aside and cut, while its writer goes on writing.

The first piece stays for ever beside the log, for it tells how the server came up; of the later ones the newest stays.
Imports what the keeper may import.
"""

from __future__ import annotations

import os
from contextlib import suppress

LIMIT_BYTES = 64 * 1024**2
"""A log longer than this is cut."""
FIRST, LATER = ".1", ".2"


def pieces(log: str) -> list[str]:
    """The pieces that were cut off, oldest first."""
    return [path for path in (log + FIRST, log + LATER) if os.path.exists(path)]  # noqa: PTH110 - the keeper is small


def rotate(log: str, limit: int) -> bool:
    """Cut the log if it is too long; whether it was.

    Lines that are written between the last copied byte and the cut are lost: the price of a writer that knows nothing
    of it. A disk that does not take the copy keeps its log whole.
    """
    try:
        source = os.open(log, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if os.fstat(source).st_size <= limit:
            return False
        aside = log + (LATER if os.path.exists(log + FIRST) else FIRST)  # noqa: PTH110 - the keeper is small
        return _cut(source, aside)
    finally:
        os.close(source)


def _cut(source: int, aside: str) -> bool:
    fresh = f"{aside}.new"
    try:
        sink = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            done = 0
            while sent := os.sendfile(sink, source, done, 1 << 22):
                done += sent
        finally:
            os.close(sink)
        os.rename(fresh, aside)  # noqa: PTH104 - the keeper is small
        os.ftruncate(source, 0)
    except OSError:
        with suppress(OSError):
            os.unlink(fresh)  # noqa: PTH108 - the keeper is small
        return False
    return True
