"""Goes on with a run where it was cut off: by a crash, a reboot, a full disk or `ab stop`."""

from __future__ import annotations

import os

from console.errors import ConsoleError, UsageError
from console.lab.control import find_run
from console.lab.folder import BEFORE_FILE, LAB_EXIT, LAB_RECORD, read_folder
from console.lab.journal import read_events, write_json
from console.lab.launch import spawn, what_runs
from console.lab.progress import progress_of
from console.lab.view import run_state
from console.paths import Paths
from console.presets import Preset


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
    running = what_runs(paths, interrupt=interrupt)
    folder = read_folder(run_dir, os.environ)
    missing = [n for n, _, _ in folder.plan.boots() if n not in progress_of(run_dir).ended]
    if run_state(run_dir, read_events(run_dir)) == "done" or not missing:
        raise UsageError(
            f"the run {run_dir.name} is whole", "no boot is missing", f"`qwen-console ab show {run_dir.name}`"
        )
    if folder.missing_secrets:
        why = f"its preset needs {', '.join(folder.missing_secrets)}"
        raise ConsoleError(f"the run {run_dir.name} cannot go on", why, "set these variables and try again")
    before = _before(running, folder.before, was_restored=_was_restored(run_dir.name, paths))
    write_json(run_dir / BEFORE_FILE, {"preset": before.to_json() if before else None})
    # The records of the process that is gone would be taken for those of the new one.
    for name in (LAB_RECORD, LAB_EXIT):
        (run_dir / name).unlink(missing_ok=True)
    spawn(run_dir, folder.plan.base, before)
    return run_dir.name


def _before(running: Preset | None, recorded: Preset | None, *, was_restored: bool) -> Preset | None:
    """What has to run afterwards: what runs now; else what ran before a run that never came to its end."""
    if running is not None or was_restored:
        return running
    return recorded


def _was_restored(run_id: str, paths: Paths) -> bool:
    return any(event["event"] == "restored" for event in read_events(paths.run(run_id)))
