"""Room on the disk for the server's log and our state: without it nothing of what happens can be kept."""

from __future__ import annotations

from pathlib import Path

from console.errors import ConsoleError
from console.paths import Paths
from console.server.weights import free_bytes
from console.units import gib

_FULL_BYTES = 256 * 1024
"""Less than this is no room for a state file, let alone a log."""
_START_BYTES = 16 * 1024**2
"""What a start and some days of a quiet server's log take at most."""


def is_full(folder: Path) -> bool:
    """Whether nothing can be kept there any more."""
    free = free_bytes(folder)
    return free is not None and free < _FULL_BYTES


def full_note(folder: Path) -> str:
    """What that means, in a sentence."""
    return f"the disk of {folder} is full: the log ends early and nothing is kept; make room there"


class NoRoom(ConsoleError):
    """The disk is full: says nothing about the server that was to be started."""

    cause = "no-room"


def make_state(paths: Paths) -> None:
    """Make the state folders, and see that a server's log and record find room there.

    Raises:
        NoRoom: they do not.
        ConsoleError: the folders cannot be made.
    """
    free = free_bytes(paths.state)
    if free is not None and free < _START_BYTES:
        raise NoRoom(
            "there is no room for the server's log and state",
            f"{gib(free)} are free at {paths.state}, {gib(_START_BYTES)} are wanted",
            "make room there, or point XDG_STATE_HOME to another disk",
        )
    try:
        paths.make()
    except OSError as error:
        why = f"{error.filename or paths.state}: {error.strerror}"
        fix = "check its owner, or point XDG_STATE_HOME to another folder"
        raise ConsoleError("the folder for state and logs cannot be made", why, fix) from None
