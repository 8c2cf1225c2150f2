"""What the tests of whole runs share: a console on quick stand-ins, and the proof that nothing of it stays."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from console.errors import NothingError
from console.lab.control import stop_run
from console.lab.launch import launch
from console.lab.plan import make_plan
from console.lab.report import to_json
from console.lab.view import RunView, read_run
from console.paths import Paths
from console.presets import Preset, ServerOptions
from console.server.life import Server
from console.server.process import Identity, identify, send, snapshot
from console.server.state import read_server
from console.server.status import State

DEADLINE_S = 180.0
"""Generous: what takes longer than this hangs."""
KEY = "a-key-of-the-user"
ARGS: dict[str, Any] = {
    "tensor-parallel-size": 2,
    "kv-cache-dtype": "fp8",
    "max-model-len": 16384,
    "max-num-seqs": 2,
    "max-num-batched-tokens": 2048,
    "enable-prefix-caching": True,
    "enable-prompt-tokens-details": True,
    "enable-auto-tool-choice": True,
    "tool-call-parser": "qwen3_coder",
}


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, f"{what} never came true"
        time.sleep(0.02)


class LabHouse:
    """One console whose presets are stand-ins that compute many times faster than a card."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = Paths.from_env()
        self.server = Server(self.paths)

    def preset(self, *, fault: str = "", **env: str) -> Preset:
        """A stand-in of its own seed, with a key."""
        return Preset(
            name="quick",
            model="m",
            served_name="q",
            command=(sys.executable, "-P", "-m", "console.sim"),
            args=ARGS,
            env={
                "QWEN_CONSOLE_SIM_START_S": "0.2",
                "QWEN_CONSOLE_SIM_SPEED": "20",
                "QWEN_CONSOLE_SIM_FAULT": fault,
                "VLLM_API_KEY": KEY,
                **env,
            },
            secrets=frozenset({"VLLM_API_KEY"}),
            server=ServerOptions(port=0, ready_timeout=60, stop_grace=5),
            lab={"mtp": {"speculative-config": {"method": "mtp", "num_speculative_tokens": 2}}},
            simulated=True,
        )

    def up(self, preset: Preset) -> None:
        """Start a server as `up` does."""
        self.server.start(preset)
        *_, last = self.server.follow_start()
        assert last.state is State.READY, last

    def begin(self, kind: str, preset: Preset, **options: Any) -> str:
        """Launch a small run; its id."""
        plan = make_plan(kind, preset, **{"size": "small", "rounds": 2, "seed": 1, **options})
        return launch(self.paths, plan)

    def view(self, run_id: str) -> RunView:
        """The run now."""
        return read_run(self.paths.run(run_id))

    def ended(self, run_id: str) -> dict[str, Any]:
        """The report of the run, once it has ended and its process is gone."""
        until(lambda: self.view(run_id).state != "running", "the end of the run")
        record, _ = read_server(self.paths.run(run_id) / "lab.json")
        assert record is not None
        until(lambda: identify(record.keeper.pid) != record.keeper, "the end of the run's keeper")
        return to_json(self.paths.run(run_id))

    def lab(self, run_id: str) -> Identity:
        """The run's own process."""
        record, _ = read_server(self.paths.run(run_id) / "lab.json")
        assert record is not None
        assert record.child is not None
        return record.child

    def alive(self) -> list[Identity]:
        """Everything that was started from here and lives."""
        needle = str(self.folder).encode()
        found = []
        for pid in snapshot():
            with suppress(OSError):
                if pid != os.getpid() and needle in Path(f"/proc/{pid}/environ").read_bytes():
                    who = identify(pid)
                    found += [who] if who else []
        return found

    def close(self) -> None:
        """After a stop of run and server nothing may be left; what is, is ended all the same."""
        with suppress(NothingError):
            stop_run(self.paths)
        with suppress(NothingError):
            self.server.stop()
        self.server.close()
        end = time.monotonic() + 10
        while (left := self.alive()) and time.monotonic() < end:
            time.sleep(0.05)
        for who in left:
            send(who, signal.SIGKILL)
        assert not left, f"left behind: {left}"


@contextmanager
def open_lab(folder: Path) -> Iterator[LabHouse]:
    """A house whose processes are known by the folders in their environment."""
    house = LabHouse(folder)
    try:
        yield house
    finally:
        house.close()
