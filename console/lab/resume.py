"""Goes on with a run where it was cut off: by a crash, a reboot, a full disk or `ab stop`."""

from __future__ import annotations

import time
from pathlib import Path

from console.errors import BusyError, ConsoleError, UsageError
from console.lab.control import find_run
from console.lab.folder import BEFORE_FILE, LAB_RECORD, Folder, folder_at_hand
from console.lab.journal import read_events, write_json
from console.lab.launch import beginning, spawn, what_runs
from console.lab.progress import progress_of
from console.lab.results import BEGINNINGS
from console.lab.view import readable, run_state
from console.paths import Paths
from console.presets import Preset
from console.server.found import known_life
from console.server.run_lock import busy_with, run_is_live
from console.server.stop import wait_gone

_ENDING_S = 10.0
"""The last breath of the process before: its keeper goes when nothing of it is left."""


def resume(paths: Paths, run_id: str | None = None, *, interrupt: bool = False) -> str:
    """Go on with the first boot that is missing; the run's id once it lives again.

    Args:
        paths: whose state.
        run_id: the run, by its id or the beginning of one; the newest without one.
        interrupt: go on even if the running server answers requests now.

    Raises:
        NothingError: there is no such run.
        UsageError: nothing of it is missing.
        BusyError: a run goes on, or requests do.
        ConsoleError: its folder cannot be read, or its process does not start.
    """
    run_dir = find_run(paths, run_id)
    with beginning(paths), readable(run_dir):
        _see_it_gone(paths, run_dir)
        running = what_runs(paths, interrupt=interrupt)
        folder = _to_go_on(run_dir)
        before = _before(running, folder.before, was_restored=_was_restored(run_dir))
        write_json(run_dir / BEFORE_FILE, {"preset": before.to_json() if before else None})
        spawn(run_dir, folder.plan, before)
    return run_dir.name


def _see_it_gone(paths: Paths, run_dir: Path) -> None:
    """See that the process that carried out the run before, and its keeper, have ended."""
    if live := run_is_live(paths):
        raise busy_with(live)
    record, _ = known_life(run_dir / LAB_RECORD)
    end = time.monotonic() + _ENDING_S
    for who in (record.child, record.keeper) if record else ():
        if who is not None and not wait_gone(who, end):
            raise BusyError(
                f"the run {run_dir.name} is still ending", f"its process {who.pid} lives", "try again later"
            )


def _to_go_on(run_dir: Path) -> Folder:
    """The run, which lacks boots and nothing that they need."""
    folder = folder_at_hand(run_dir)
    missing = [n for n, _, _ in folder.plan.boots() if n not in progress_of(run_dir).ended]
    if run_state(run_dir, read_events(run_dir)) == "done" or not missing:
        raise UsageError(
            f"the run {run_dir.name} is whole", "no boot is missing", f"`qwen-console ab show {run_dir.name}`"
        )
    if folder.missing_secrets:
        why = f"its preset needs {', '.join(folder.missing_secrets)}"
        raise ConsoleError(f"the run {run_dir.name} cannot go on", why, "set these variables and try again")
    return folder


def _before(running: Preset | None, recorded: Preset | None, *, was_restored: bool) -> Preset | None:
    """What has to run afterwards: what runs now; else what ran before a run that never came to its end."""
    if running is not None or was_restored:
        return running
    return recorded


def _was_restored(run_dir: Path) -> bool:
    """Whether what ran before was started again since the run was begun, or gone on with, the last time."""
    names = [event["event"] for event in read_events(run_dir)]
    last = max((i for i, name in enumerate(names) if name in BEGINNINGS), default=0)
    return "restored" in names[last:]
