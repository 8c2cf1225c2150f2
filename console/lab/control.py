"""Runs from outside: list, find, stop, recover after a death."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

from console.errors import BusyError, ConsoleError, NothingError, UsageError
from console.lab.folder import folder_at_hand, read_folder
from console.lab.journal import Journal, read_events, run_names
from console.lab.report import write_reports
from console.lab.restore import restore, runs_an_arm
from console.lab.view import RunView, ended, read_run, run_state
from console.paths import Paths
from console.server.life import Server
from console.server.process import Identity, alive, command_line, identify, send, snapshot
from console.server.run_lock import hold_run_lock, run_holder, run_is_live
from console.server.stop import wait_gone

_PATIENCE_S = 1800.0
_BLIND_S = 10.0
"""So long may nobody be found who holds the lock: a process that was just started, or handed on by its keeper."""
_LOOK_S = 0.1
_MODULE = b"console.lab"
_NAMED = 6
"""So many runs are named where several may be meant, the newest first."""


def list_runs(paths: Paths) -> list[RunView]:
    """All runs, the newest first."""
    return [read_run(paths.run(name)) for name in run_names(paths)]


def find_run(paths: Paths, run_id: str | None = None) -> Path:
    """The folder of a run by its id or the beginning of one; without an id the one that runs, else the newest.

    Raises:
        NothingError: there is no such run.
        UsageError: several begin so.
    """
    names = run_names(paths)
    wanted = run_id or run_is_live(paths)
    if wanted is None and names:
        return paths.run(names[0])
    found = [name for name in names if wanted and name.startswith(wanted)]
    if wanted in found:
        return paths.run(str(wanted))
    if len(found) == 1:
        return paths.run(found[0])
    if found:
        shown = ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
        raise UsageError(
            f"{wanted} is ambiguous: {len(found)} runs begin so", shown, "give more of the one that is meant"
        )
    why = "" if names else "no run has been made yet"
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
    run_dir, told = paths.run(run_id), set[Identity]()
    end, said = time.monotonic() + _PATIENCE_S, ""
    blind = time.monotonic() + _BLIND_S
    while run_is_live(paths) == run_id or any(alive(who) for who in told):
        found = _labs(paths, run_dir)
        if found or any(alive(who) for who in told):
            blind = time.monotonic() + _BLIND_S
        for who in found - told:
            told.add(who)
            if not _recovers(who):
                send(who, signal.SIGTERM)
        _pause(told, min(end, time.monotonic() + 0.25))
        steps = [event for event in read_events(run_dir) if event["event"] == "step"]
        text = str(steps[-1]["text"]) if steps else ""
        if on_event is not None and text != said:
            on_event(text)
        said = text
        if time.monotonic() >= blind:
            fix = f"end the process that holds {paths.run_lock}"
            raise ConsoleError(f"the run {run_id} cannot be told to end", "its process cannot be found", fix)
        if time.monotonic() >= end:
            raise ConsoleError(
                f"the run {run_id} does not end", f"it is still at: {said}", f"see {run_dir / 'lab.log'}"
            )
    return read_run(run_dir)


def _labs(paths: Paths, run_dir: Path) -> set[Identity]:
    """The processes that carry out this run or recover it: who holds the lock, else whoever was started to.

    The record in the run's folder is not asked: it may name a process that never came to hold the lock.
    """
    holder = run_holder(paths)
    if holder is not None and _MODULE in command_line(holder.pid):
        return {holder}
    last = str(run_dir).encode()
    words = {pid: command_line(pid).split(b"\0") for pid in snapshot()}
    found = (identify(pid) for pid, line in words.items() if _MODULE in line and last in line)
    return {who for who in found if who is not None}


def _recovers(who: Identity) -> bool:
    """Whether it puts back what ran before a run that died: told to end, it would leave that undone."""
    return b"--recover" in command_line(who.pid).split(b"\0")


def _pause(told: set[Identity], until: float) -> None:
    """Wait for one that was told to end, so that its end is seen at once; else the whole time."""
    living = next((who for who in told if alive(who)), None)
    if living is None or wait_gone(living, until):
        time.sleep(min(_LOOK_S, max(0.0, until - time.monotonic())))


def recover(paths: Paths, run_id: str, *, by_hand: bool = False) -> bool:
    """After the lab's death: stop its arm, start what ran before, mark the run interrupted. Again it does nothing.

    Args:
        paths: whose state.
        run_id: the run, by its id or the beginning of one.
        by_hand: secrets come from this shell and the preset files; else they were carried into this process.

    Returns:
        Whether there was anything to do.

    Raises:
        NothingError: there is no such run.
        ConsoleError: its folder cannot be read.
    """
    run_dir = find_run(paths, run_id)
    run_id = run_dir.name
    if ended(run_dir) or run_state(run_dir, read_events(run_dir)) == "running":
        return False
    folder = folder_at_hand(run_dir) if by_hand else read_folder(run_dir)
    note = "the lab's process died"
    server = Server(paths)
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
    finally:
        server.close()
    write_reports(run_dir)
    return True


def _lives(server: Server) -> bool:
    return bool(server.status(probe=False).ours)
