"""The rows of the fault table: what goes wrong on a real workstation, brought about on the real engine."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from tests.engine.fault_bench import Bench, Row
from tests.engine.fault_ground import (
    bad_flag,
    crash_at_first_request,
    disk_full,
    model_missing,
    pid_reused,
    port_stolen,
    state_torn,
    two_consoles,
)
from tests.engine.fault_processes import (
    api_server_killed,
    console_killed,
    engine_core_killed,
    engine_hangs,
    keeper_killed,
    keeper_of_the_lab_killed,
    lab_killed,
    line_lost_in_down,
    sigterm_in_start,
    stop_in_start,
    stop_under_load,
    worker_killed,
)

MOMENTS = (0.1, 0.3, 0.5, 0.7, 0.85)


def _moments(name: str, kind: str, title: str, run: Callable[[float, Bench], str], core: float) -> list[Row]:
    return [
        Row(
            f"{name}-{part:.0%}".rstrip("%"),
            kind,
            title.format(part=f"{part:.0%}"),
            partial(run, part),
            core=part == core,
        )
        for part in MOMENTS
    ]


def can_mount() -> bool:
    """Whether a small disk can be had."""
    return os.geteuid() == 0


ROWS: tuple[Row, ...] = (
    Row("two-consoles", "at once", "two consoles start two presets in the same moment", two_consoles, True, True),
    Row("console-killed", "console", "the console is killed (kill -9)", console_killed, True, True),
    Row("keeper-killed", "keeper", "the keeper is killed (kill -9)", keeper_killed, core=True),
    Row("pid-reused", "disk", "the pids on record belong to somebody else", pid_reused, core=True),
    Row("worker-killed", "engine", "one of two workers is killed (kill -9)", worker_killed, core=True),
    Row("engine-core-killed", "engine", "EngineCore is killed (kill -9)", engine_core_killed),
    Row("api-server-killed", "engine", "the API server is killed (kill -9)", api_server_killed),
    Row("engine-hangs", "engine", "EngineCore hangs (SIGSTOP) in the middle of an answer", engine_hangs),
    Row("stop-under-load", "stop", "`down` while two answers are being written", stop_under_load),
    *_moments("sigterm", "stop", "SIGTERM to the server at {part} of its start", sigterm_in_start, 0.5),
    *_moments("stop", "stop", "`down` at {part} of a start", stop_in_start, 0.0),
    Row("port-stolen", "start refused", "the port is stolen between check and bind", port_stolen, core=True),
    Row("model-missing", "start refused", "the model is not there", model_missing),
    Row("bad-flag", "start refused", "a flag that vLLM does not know", bad_flag),
    Row("crash-at-first-request", "crash", "the engine dies of its first request", crash_at_first_request, core=True),
    Row("disk-full", "disk", "the disk of state and log is full (a tmpfs of 24 MiB)", disk_full),
    Row("state-torn", "disk", "the state file is torn while the server runs", state_torn),
    Row("line-lost-in-down", "stop", "the SSH line is cut in the middle of `down`", line_lost_in_down),
    Row("lab-killed", "lab", "the lab is killed (kill -9) in the middle of an arm", lab_killed, core=True),
    Row("lab-keeper-killed", "lab", "the keeper of the lab is killed (kill -9)", keeper_of_the_lab_killed),
)
