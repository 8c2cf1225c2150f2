"""Starts a run in a process of its own, under a keeper: closing the console does not end it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from console.endpoint import EndpointError
from console.errors import BusyError, ConsoleError
from console.lab import carried
from console.lab.folder import LAB_EXIT, LAB_LOG, LAB_RECORD, folder_at_hand, write_folder
from console.lab.history import collect, newest_floor, write_lent
from console.lab.jobs import Job
from console.lab.journal import read_events
from console.lab.plan import Plan
from console.lab.replay import write_recorded
from console.lab.results import BEGINNINGS
from console.metrics.exposition import MetricsError
from console.metrics.feed import Feed
from console.paths import Paths
from console.presets import Preset
from console.server.keeper_spawn import KeeperSpec, spawn_keeper
from console.server.life import Server
from console.server.locks import held
from console.server.log import tail
from console.server.process import alive, identify
from console.server.room import make_state
from console.server.run_lock import arm_of, busy_with, run_is_live
from console.server.status import State

_GRACE_S = 1800.0
"""A lab that is told to end stops its arm and starts what ran before, which can take as long as a cold start."""
_PATIENCE_S = 30.0
_MODULE = ("-P", "-m", "console.lab")


def launch(paths: Paths, plan: Plan, *, interrupt: bool = False, recorded: tuple[Job, ...] = ()) -> str:
    """Spawn the run; returns its id once it lives.

    Args:
        paths: whose state.
        plan: what to do.
        interrupt: go on even if the running server answers requests now.
        recorded: the user's own requests, for the workload `replay`.

    Raises:
        BusyError: a run goes on, or requests do.
        ConsoleError: the run could not be started.
    """
    with beginning(paths):
        before = what_runs(paths, interrupt=interrupt)
        make_state(paths)
        run_dir = _new_folder(paths, plan.kind)
        try:
            write_folder(run_dir, paths, plan, before)
            write_lent(run_dir, collect(paths, plan), newest_floor(paths, plan))
            if recorded:
                write_recorded(recorded, run_dir)
            spawn(run_dir, plan, before)
        except OSError as error:
            # A folder that is not whole would stand in the list as a run for ever.
            rmtree(run_dir, ignore_errors=True)
            raise ConsoleError("the run's folder cannot be written", str(error), "make room there") from None
    return run_dir.name


@contextmanager
def beginning(paths: Paths) -> Iterator[None]:
    """Be the only one that begins a run, or goes on with one, until its process lives.

    Raises:
        BusyError: somebody else does.
    """
    with held(paths.run_lock.with_name("begin.lock")) as lock:
        if lock is None:
            what = f"the A/B run {live} is going on" if (live := run_is_live(paths)) else "an A/B run is being started"
            raise BusyError(what, "by another console", "`qwen-console ab list` shows it")
        yield


def what_runs(paths: Paths, *, interrupt: bool) -> Preset | None:
    """The preset that runs now and will run again after the run.

    What is left of a run whose process died is no server of the user's: what ran before that run is what counts.

    Raises:
        BusyError: a run goes on, or requests do.
        ConsoleError: an arm was left by a run whose folder cannot be read.
    """
    if live := run_is_live(paths):
        raise busy_with(live)
    server = Server(paths)
    try:
        return _what_runs(paths, server, interrupt=interrupt)
    finally:
        server.close()


def _what_runs(paths: Paths, server: Server, *, interrupt: bool) -> Preset | None:
    status, record = server.status(), server.record()
    if record is not None and status.pid is not None and (left := arm_of(paths, record.log)):
        try:
            return folder_at_hand(paths.run(left)).before
        except ConsoleError as error:
            what = f"the server is an arm left by the run {left}, and nobody knows what ran before"
            raise ConsoleError(what, error.why, "stop it: `qwen-console down`") from None
    if status.state is State.READY and not interrupt:
        refuse_if_busy(server)
    return server.preset() if status.state in (State.READY, State.STARTING, State.STALLED) else None


def spawn(run_dir: Path, plan: Plan, before: Preset | None) -> None:
    """Start the process that carries out the run in this folder; returns once it lives.

    Raises:
        ConsoleError: it does not start.
    """
    secrets = carried.pack("plan", plan.base) | carried.pack("before", before) | carried.pack_arms(plan)
    known = len(read_events(run_dir))
    spec = KeeperSpec(
        argv=(sys.executable, *_MODULE, str(run_dir)),
        log=run_dir / LAB_LOG,
        record=run_dir / LAB_RECORD,
        exit=run_dir / LAB_EXIT,
        subreaper=False,
        grace_s=_GRACE_S,
        on_death=(sys.executable, *_MODULE, "--recover", str(run_dir)),
    )
    with carried.in_environment(secrets):
        spawned = spawn_keeper(spec, dict(os.environ))
    _wait_until_it_lives(run_dir, known, spawned.child)


def refuse_if_busy(server: Server) -> None:
    """See that nobody's request would be cut off.

    Raises:
        BusyError: requests run or wait.
    """
    endpoint = server.endpoint()
    if endpoint is None:
        return
    try:
        counters = Feed(endpoint).scrape()
    except (EndpointError, MetricsError):
        return
    finally:
        endpoint.close()
    count = (counters.running or 0) + (counters.waiting or 0)
    if count:
        raise BusyError(
            f"the server answers {count} request{'s' if count > 1 else ''} now",
            "a run stops it and would cut them off",
            "wait until it is idle, or say `--interrupt`",
        )


def _new_folder(paths: Paths, kind: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in kind)
    for extra in ("", *(f"-{n}" for n in range(2, 100))):
        run_dir = paths.run(f"{stamp}-{safe}{extra}")
        try:
            run_dir.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return run_dir
    raise ConsoleError("no folder could be made for the run", str(paths.runs), "try again in a second")


def _wait_until_it_lives(run_dir: Path, known: int, pid: int) -> None:
    """Wait until this very process has begun: another's line in the journal is no sign of its life."""
    child, end = identify(pid), time.monotonic() + _PATIENCE_S
    while True:
        # Looked at before the journal: what it wrote before it ended counts.
        gone = not alive(child) or time.monotonic() >= end
        if any(event["event"] in BEGINNINGS and event.get("pid") == pid for event in read_events(run_dir)[known:]):
            return
        if gone:
            break
        time.sleep(0.05)
    lines = tail(run_dir / LAB_LOG, 3)
    raise ConsoleError("the run did not start", " / ".join(lines) or "its process said nothing", f"see {run_dir}")
