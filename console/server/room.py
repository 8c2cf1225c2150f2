"""Room on the disk for the server's log and our state: without it nothing of what happens can be kept."""

from __future__ import annotations

import os
from pathlib import Path

from console.errors import ConsoleError
from console.paths import Paths
from console.server.access import folder_in_the_way
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


def closed_note(folder: Path) -> str | None:
    """What it means that this user cannot read or write the state folder, in a sentence."""
    if os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return None
    problem = folder_in_the_way(folder)
    return (
        f"the state folder cannot be used: {problem[0]}; what happens is not kept. Fix: {problem[1]}"
        if problem
        else None
    )


class NoRoom(ConsoleError):
    """The disk is full: says nothing about the server that was to be started."""

    cause = "no-room"


def make_state(paths: Paths) -> None:
    """Make the state folders, and see that a server's log and record find room there.

    Raises:
        NoRoom: they do not.
        ConsoleError: the folders cannot be made, or not be written.
    """
    free = free_bytes(paths.state)
    if free is not None and free < _START_BYTES:
        raise NoRoom(
            "there is no room for the server's log and state",
            f"{gib(free)} are free at {paths.state}, {gib(_START_BYTES)} are wanted",
            "make room there, or point XDG_STATE_HOME to another disk",
        )
    problem: tuple[str, str] | None = None
    try:
        paths.make()
    except OSError as error:
        why = f"{error.filename or paths.state}: {error.strerror}"
        problem = folder_in_the_way(paths.state) or (why, "point XDG_STATE_HOME to another folder")
    problem = problem or next(filter(None, map(folder_in_the_way, (paths.state, paths.logs, paths.runs))), None)
    if problem:
        raise ConsoleError("the folder for state and logs cannot be used", *problem)
