"""The lock of the A/B run: held by the lab's process for the length of a run; it holds the run's id and its pid."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from console.errors import BusyError
from console.files import read_text
from console.paths import Paths
from console.server.locks import held, is_held
from console.server.process import Identity, identify

_PID = re.compile(r"[0-9]{1,9}")
PROBE_SPOILS = "an A/B run is going on: a probe would spoil it"


@contextmanager
def hold_run_lock(paths: Paths, run_id: str) -> Iterator[None]:
    """Be the one run of this console within the block.

    Raises:
        BusyError: another run holds the lock.
    """
    with held(paths.run_lock) as handle:
        if handle is None:
            raise busy_with(run_is_live(paths) or "another run")
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{run_id}\n{os.getpid()}\n".encode(), 0)
        yield


def run_is_live(paths: Paths) -> str | None:
    """The id of the run that lives now."""
    if not is_held(paths.run_lock):
        return None
    return _words(paths)[0]


def run_holder(paths: Paths) -> Identity | None:
    """The process that holds the lock, as it wrote itself down; `None` where none does or it cannot be told."""
    if not is_held(paths.run_lock):
        return None
    _, *pid = _words(paths)
    return identify(int(pid[0])) if pid and _PID.fullmatch(pid[0]) else None


def _words(paths: Paths) -> list[str]:
    """The run's id, and the pid of its process."""
    try:
        return read_text(paths.run_lock).split() or ["unknown"]
    except (OSError, UnicodeDecodeError):
        return ["unknown"]


def arm_of(paths: Paths, log: str) -> str | None:
    """The id of the run whose boot writes this log; `None` for a server that belongs to no run."""
    inside = Path(log)
    return inside.relative_to(paths.runs).parts[0] if inside.is_relative_to(paths.runs) else None


def left_note(paths: Paths, log: str) -> str | None:
    """What to know of a living server that a run started and did not live to stop; `None` for any other."""
    run_id = arm_of(paths, log)
    if run_id is None or run_is_live(paths):
        return None
    return (
        f"this server is an arm left by the A/B run {run_id}, which died "
        f"(`qwen-console ab recover {run_id}` puts back what ran before)"
    )


def refuse_probe(paths: Paths) -> None:
    """See that requests of this console's own would spoil nothing.

    Raises:
        BusyError: a run goes on: it would count them as foreign traffic, and the boot would be void.
    """
    if run_id := run_is_live(paths):
        raise BusyError(
            PROBE_SPOILS,
            f"the run {run_id} voids a boot that answers requests of anybody else",
            f"wait for it (`qwen-console ab show {run_id}`), or end it: `qwen-console ab stop {run_id}`",
        )


def refuse_during_a_run(paths: Paths, for_run: str | None = None) -> None:
    """See that no run owns the server, but for the one that asks.

    Raises:
        BusyError: one does.
    """
    run_id = run_is_live(paths)
    if run_id is not None and run_id != for_run:
        raise busy_with(run_id)


def busy_with(run_id: str) -> BusyError:
    """What a verb says that would disturb a run."""
    named = f" {run_id}" if " " not in run_id else ""
    return BusyError(
        f"the A/B run {run_id} is going on",
        "it starts and stops the server itself, and anything else would spoil what it measures",
        f"wait for it (`qwen-console ab show`), or end it: `qwen-console ab stop{named}`",
    )
