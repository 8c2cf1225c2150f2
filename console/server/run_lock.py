"""The lock of the A/B run: held by the lab's process for the length of a run, its content is the run's id."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from console.errors import BusyError
from console.paths import Paths
from console.server.locks import held, is_held


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
        os.pwrite(handle, run_id.encode(), 0)
        yield


def run_is_live(paths: Paths) -> str | None:
    """The id of the run that lives now."""
    if not is_held(paths.run_lock):
        return None
    try:
        return paths.run_lock.read_text().strip() or "unknown"
    except OSError:
        return "unknown"


def busy_with(run_id: str) -> BusyError:
    """What a verb says that would disturb a run."""
    return BusyError(
        f"the A/B run {run_id} is going on",
        "it starts and stops the server itself, and anything else would spoil what it measures",
        "wait for it (`qwen-console ab show`), or end it: `qwen-console ab stop`",
    )
