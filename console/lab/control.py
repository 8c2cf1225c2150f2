"""Runs from outside: list, find, stop, recover after a death."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from console.errors import BusyError, ConsoleError, NothingError
from console.lab.folder import LAB_RECORD, read_folder
from console.lab.journal import Journal, read_events
from console.lab.report import write_reports
from console.lab.restore import restore, runs_an_arm
from console.lab.view import RunView, ended, read_run, run_state
from console.paths import Paths
from console.server.life import Server
from console.server.process import send
from console.server.run_lock import hold_run_lock, run_is_live
from console.server.state import read_server
from console.server.stop import wait_gone

_PATIENCE_S = 1800.0


def list_runs(paths: Paths) -> list[RunView]:
    """All runs, the newest first."""
    folders = [folder for folder in paths.runs.glob("*") if folder.is_dir()] if paths.runs.is_dir() else []
    return [read_run(folder) for folder in sorted(folders, key=lambda folder: folder.name, reverse=True)]


def find_run(paths: Paths, run_id: str | None = None) -> Path:
    """The folder of a run by its id or the beginning of one; without an id the one that runs, else the newest.

    Raises:
        NothingError: there is no such run.
    """
    names = sorted((folder.name for folder in paths.runs.glob("*") if folder.is_dir()), reverse=True)
    wanted = run_id or run_is_live(paths)
    if wanted is None and names:
        return paths.run(names[0])
    found = [name for name in names if wanted and name.startswith(wanted)]
    if wanted in found:
        return paths.run(str(wanted))
    if len(found) == 1:
        return paths.run(found[0])
    why = f"{len(found)} runs begin so" if found else "no run has been made yet" if not names else ""
    raise NothingError(f"there is no run {run_id}" if run_id else "there is no run", why, "`qwen-console ab list`")


def stop_run(paths: Paths, on_event: Callable[[str], None] | None = None) -> RunView:
    """End the run that goes on: its arm is stopped, what ran before runs again. Returns once that is done.

    Raises:
        NothingError: no run goes on.
        ConsoleError: it does not end.
    """
    run_id = run_is_live(paths)
    if run_id is None:
        raise NothingError("no A/B run is going on", "", "`qwen-console ab list` shows those that were")
    run_dir = paths.run(run_id)
    record, _ = read_server(run_dir / LAB_RECORD)
    if record is None or record.child is None:
        raise ConsoleError(
            f"the run {run_id} cannot be told to end", "its record is lost", "end the process that holds run.lock"
        )
    send(record.child, signal.SIGTERM)
    end, said = time.monotonic() + _PATIENCE_S, ""
    while not wait_gone(record.child, min(end, time.monotonic() + 0.25)):
        steps = [event for event in read_events(run_dir) if event["event"] == "step"]
        text = str(steps[-1]["text"]) if steps else ""
        if on_event is not None and text != said:
            on_event(text)
        said = text
        if time.monotonic() >= end:
            raise ConsoleError(
                f"the run {run_id} does not end", f"it is still at: {said}", f"see {run_dir / 'lab.log'}"
            )
    return read_run(run_dir)


def recover(paths: Paths, run_id: str) -> bool:
    """After the lab's death: stop its arm, start what ran before, mark the run interrupted. Again it does nothing.

    Returns:
        Whether there was anything to do.
    """
    run_dir = paths.run(run_id)
    if ended(run_dir) or run_state(run_dir, read_events(run_dir)) == "running":
        return False
    folder = read_folder(run_dir)
    server = Server(paths)
    note = "the lab's process died"
    try:
        with hold_run_lock(paths, run_id), Journal(run_dir) as journal:
            # Without an arm of ours something else was started since, or it runs again already.
            free = runs_an_arm(server, run_dir) or server.record() is None
            if free or not _lives(server):
                restore(server, folder, journal)
            journal.add("run-end", state="interrupted", note=note)
    except BusyError:
        with Journal(run_dir) as journal:
            journal.add("run-end", state="interrupted", note=f"{note}, and another run goes on")
    write_reports(run_dir)
    return True


def _lives(server: Server) -> bool:
    return bool(server.status(probe=False).ours)
