"""Locks that live as long as the process that inherited them (flock)."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from console.errors import ConsoleError
from console.files import refuse_odd

_PATIENCE_S = 1.0
"""An onlooker holds the lock for microseconds; whoever wants it waits that out."""


def take(path: Path, patience_s: float = _PATIENCE_S) -> int | None:
    """Lock the file for ourselves; the descriptor that holds it, or `None` when somebody else does.

    Raises:
        ConsoleError: it is no file.
        OSError: it cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    _refuse_odd(path)
    handle = _above_the_streams(_open(path))
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return handle
        except BlockingIOError:
            if time.monotonic() >= end:
                os.close(handle)
                return None
            time.sleep(0.02)


def _refuse_odd(path: Path) -> None:
    try:
        refuse_odd(path)
    except OSError as error:
        # Of what is missing or closed the opening tells.
        if error.errno == errno.EINVAL:
            raise ConsoleError(f"the lock {path} cannot be held", str(error.strerror), "remove it") from None


def _open(path: Path) -> int:
    """The file, made where it is missing. One that is there can be locked where nothing can be written, too."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EROFS):
            raise
        with suppress(OSError):
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        raise


def _above_the_streams(handle: int) -> int:
    """The same file as a descriptor above 2: a child's standard streams would take its place."""
    if handle > 2:
        return handle
    raised = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, 3)
    os.close(handle)
    return raised


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock now, as far as this user can see."""
    try:
        # A pipe in its place would keep us waiting for a writer.
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextmanager
def held(path: Path, patience_s: float = _PATIENCE_S) -> Iterator[int | None]:
    """Hold the lock within the block; yields `None` when somebody else has it.

    A descriptor that was handed to a child meanwhile keeps the lock there.
    """
    handle = take(path, patience_s)
    try:
        yield handle
    finally:
        if handle is not None:
            with suppress(OSError):
                os.close(handle)
