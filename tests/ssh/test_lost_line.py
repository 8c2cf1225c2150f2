"""The console over a real SSH line that is lost: the server and a run go on, and nothing of the console spins."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

import psutil
import pytest

from tests.console_process import COMMAND, Console, wait_until
from tests.ssh.sshd import SSHD, Sshd, Wire, sshd
from tests.tui.terminal import Terminal, terminal

pytestmark = [
    pytest.mark.sshd,
    pytest.mark.skipif(SSHD is None, reason="OpenSSH's server is not installed (openssh-server)"),
]

PRESET = "qwen3.8-27b-nvfp4-100k"
_EXEC = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
_SAMPLE_S = 2.0


class Line:
    """A console on the other side of an SSH line."""

    def __init__(self, server: Sshd, console: Console) -> None:
        self.server = server
        self.console = console

    def __call__(self, *words: str) -> str:
        """A verb by a login of its own; its stdout."""
        done = self.server.run(*COMMAND, "--demo", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def open(self, *words: str, wire: Wire, before: str = "") -> AbstractContextManager[Terminal]:
        """The console, or a verb, on a terminal over that wire."""
        command = self.server.words(*COMMAND, "--demo", *words, wire=wire, tty=True, before=before)
        return terminal("-c", _EXEC, *command)

    def viewers(self) -> list[psutil.Process]:
        """Consoles and verbs that are open; not the server, its keeper, or a run."""
        return [process for process in self.console.processes() if _is_viewer(process)]


def _is_viewer(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        words = process.cmdline()
        return "console" in words and "--demo" in words
    return False


@pytest.fixture
def line(tmp_path: Path, own_folders: Path) -> Iterator[Line]:
    env = {name: os.environ[name] for name in os.environ if name.startswith("XDG_")}
    env |= {"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "1", "TERM": "xterm-256color"}
    env |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PATH": os.environ["PATH"]}
    console = Console(env, demo=True)
    with sshd(tmp_path, env) as server:
        yield Line(server, console)
        console.end()


def _status(line: Line) -> dict[str, object]:
    found: dict[str, object] = json.loads(line("status", "--json"))["server"]
    return found


def _none_spins(line: Line) -> None:
    """Whatever is open uses next to no CPU: a console whose terminal is gone must not read its end over and over."""
    before = {process: _cpu_s(process) for process in line.viewers()}
    time.sleep(_SAMPLE_S)
    for process, used in before.items():
        now = _cpu_s(process)
        assert now is None or used is None or now - used < _SAMPLE_S / 2, f"{process.cmdline()} spins"


def _cpu_s(process: psutil.Process) -> float | None:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return None
    return float(times.user + times.system)


def test_the_server_goes_on_when_the_client_is_killed(line: Line) -> None:
    line("up", PRESET)
    before = _status(line)
    with line.open(wire=line.server.wire()) as shown:
        shown.shows(PRESET)
        wait_until(lambda: len(line.viewers()) == 1)
        shown.send(signal.SIGKILL)
        wait_until(lambda: not line.viewers())
    now = _status(line)
    assert (now["state"], now["pid"]) == ("ready", before["pid"])
    line("down")
    assert line.console.processes() == []


def test_a_run_goes_on_and_the_next_login_finds_it(line: Line) -> None:
    line("up", PRESET)
    wire = line.server.wire()
    with line.open("ab", "mtp", "--size", "small", "--rounds", "2", wire=wire) as client:
        wait_until(lambda: line.console("ab", "list", "--json").json["runs"])
        (run,) = line.console("ab", "list", "--json").json["runs"]
        (folder,) = Path(line.server.env["XDG_STATE_HOME"]).rglob(run["id"])
        journal = folder / "journal.jsonl"
        wait_until(lambda: journal.exists() and b"boot-ready" in journal.read_bytes())
        # A laptop that is closed: sshd finds out by itself, seconds later.
        wire.swallow()
        wait_until(lambda: not line.viewers())
        client.send(signal.SIGKILL)
    size = journal.stat().st_size
    wait_until(lambda: journal.stat().st_size > size)
    found = json.loads(line("ab", "list", "--json"))["runs"]
    assert [(one["id"], one["state"]) for one in found] == [(run["id"], "running")]
    # Somebody who logs in again sees it in the console, too.
    with line.open(wire=line.server.wire()) as again:
        again.shows(PRESET, "A/B SIMULATED", "MTP")
        again.type(b"q")
        again.until(again.ended)
    line("ab", "stop")
    wait_until(lambda: _status(line)["state"] == "ready")
    line("down")
    assert line.console.processes() == []


def test_a_start_goes_on_and_is_seen_through_by_the_next_login(line: Line) -> None:
    line.server.env["QWEN_CONSOLE_SIM_START_S"] = "5"
    wire = line.server.wire()
    with line.open("up", PRESET, wire=wire) as client:
        client.shows("load")
        client.send(signal.SIGKILL)
        wait_until(lambda: not line.viewers())
    assert _status(line)["state"] == "starting"
    assert line("up", PRESET).startswith("http://")
    line("down")


def test_a_stop_goes_on_to_its_end(line: Line) -> None:
    line.server.env["QWEN_CONSOLE_SIM_FAULT"] = "ignore-sigterm"
    line("up", PRESET, "--set", "server.stop-grace=4")
    wire = line.server.wire()
    with line.open("down", wire=wire) as client:
        client.shows("asked")
        wire.cut()
        wait_until(lambda: not line.viewers())
    wait_until(lambda: _status(line)["state"] == "stopped")
    assert line.console.processes() == []


def test_a_console_that_does_not_hear_the_hang_up_does_not_spin(line: Line) -> None:
    """Under `nohup`, or a shell that ignores SIGHUP: only reading the dead terminal tells."""
    line("up", PRESET)
    wire = line.server.wire()
    with line.open(wire=wire, before="trap '' HUP; ") as shown:
        shown.shows(PRESET)
        shown.send(signal.SIGKILL)
        wire.cut()
        _none_spins(line)
        wait_until(lambda: not line.viewers())
    assert _status(line)["state"] == "ready"
    line("down")
