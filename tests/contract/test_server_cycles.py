"""Start and stop, over and over, with a kill at a random moment: no orphan, no stale lock, no wrong "ready"."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from console.endpoint import free_port
from tests.console_process import Console, wait_until, write_preset

SIM = f"[{sys.executable}, -P, -m, console.sim]"
START_S = 0.4
_END_S = 60.0
SEED = 20_26


class Cycles:
    """One console whose server is started and stopped, with accidents drawn from a seed."""

    def __init__(self, folder: Path, state: Path, seed: int) -> None:
        env = {"XDG_STATE_HOME": str(state), "QWEN_CONSOLE_PRESETS": str(folder / "presets")}
        self.console = Console(env | {"QWEN_CONSOLE_SIM_START_S": str(START_S)})
        self._folder = folder
        self._dice = random.Random(seed)
        self.told: list[str] = []
        """What was done, for whoever has to find out."""

    def one(self, number: int) -> None:
        """One cycle, from nothing to nothing."""
        port = free_port()
        write_preset(
            self._folder / "presets",
            "p",
            f"model: acme/tiny\nserved-name: tiny\ncommand: {SIM}\nargs: {{tensor-parallel-size: 2}}\n"
            f"server: {{port: {port}, stop-grace: 3, ready-timeout: 30}}\n",
        )
        accident = self._dice.choice(ACCIDENTS)
        at_s = self._dice.uniform(0.0, 3 * START_S)
        self.told.append(f"{number}: {accident.__name__} at {at_s:.2f} s")
        up = self.console.start("up", "p")
        time.sleep(at_s)
        accident(self, up)
        out = up.communicate(timeout=_END_S)[0]
        assert "Traceback" not in out, (self.told[-1], out)
        self._is_honest()
        self._ends()

    def server(self) -> list[psutil.Process]:
        """The server's own processes that live now."""
        return [process for process in self.console.processes() if "console.sim" in _words(process)]

    def keeper(self) -> list[psutil.Process]:
        """The keepers that live now."""
        return [process for process in self.console.processes() if "console.server.keeper" in _words(process)]

    def _is_honest(self) -> None:
        """What is called ready answers; what is not there is not called so."""
        server = self.console.status()["server"]
        if server["state"] == "ready":
            assert psutil.pid_exists(server["pid"]), self.told[-1]
            assert self.console.status("--window", "0.1")["reading"]["running"] is not None, self.told[-1]
        if server["state"] in ("stopped", "failed") and not server["ours"]:
            wait_until(lambda: not self.server(), timeout=_END_S)

    def _ends(self) -> None:
        """`down` leaves nothing: no process, no lock that refuses the next start."""
        down = self.console("down", code=None, timeout=_END_S)
        assert down.code in (0, 3), (self.told[-1], down.err)
        wait_until(lambda: not self.console.processes(), timeout=_END_S)
        assert self.console.state in ("stopped", "failed"), self.told[-1]


def _words(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return []


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue


def nothing(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """An ordinary start."""
    del cycles, up


def console_killed(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """kill -9 of the console that starts it."""
    del cycles
    os.killpg(up.pid, signal.SIGKILL)


def keeper_killed(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """kill -9 of the keeper."""
    del up
    _kill(cycles.keeper())


def server_killed(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """kill -9 of the server."""
    del up
    _kill(cycles.server())


def keeper_and_server_killed(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """kill -9 of both at once."""
    del up
    _kill([*cycles.keeper(), *cycles.server()])


def everything_killed(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """kill -9 of all that there is, the console included."""
    del up
    cycles.console.end()


def stopped_meanwhile(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """Another console stops it."""
    del up
    assert cycles.console("down", code=None, timeout=_END_S).code in (0, 3)


def started_twice(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """Another console starts it too: it sees the same start through, or is refused."""
    del up
    assert cycles.console("up", "p", code=None, timeout=_END_S).code in (0, 1, 4)


def record_torn(cycles: Cycles, up: subprocess.Popen[str]) -> None:
    """The state file is half written."""
    del up
    for path in Path(cycles.console.env["XDG_STATE_HOME"]).rglob("server.json"):
        path.write_text('{"schema": 1, "li')


ACCIDENTS: tuple[Callable[[Cycles, subprocess.Popen[str]], None], ...] = (
    nothing,
    console_killed,
    keeper_killed,
    server_killed,
    keeper_and_server_killed,
    everything_killed,
    stopped_meanwhile,
    started_twice,
    record_torn,
)


@pytest.fixture
def cycles(tmp_path: Path, own_folders: Path) -> Iterator[Cycles]:
    found = Cycles(tmp_path, own_folders / "state", SEED)
    yield found
    found.console.end()


def _run(cycles: Cycles, count: int) -> None:
    for number in range(count):
        cycles.one(number)


def test_a_dozen_cycles_with_accidents_leave_nothing(cycles: Cycles) -> None:
    _run(cycles, 12)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_two_hundred_cycles_with_accidents_leave_nothing(cycles: Cycles) -> None:
    _run(cycles, 200)
