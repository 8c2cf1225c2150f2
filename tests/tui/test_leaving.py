"""However the console ends, the terminal is as it was before, and nothing spins."""

from __future__ import annotations

import os
import signal
import termios
import time
from pathlib import Path

import pytest

from tests.tui.terminal import ENTERED, LEFT, SCRIPT, Terminal, terminal

ROOT = str(Path(__file__).parents[2])
BREAK = """
import sys
from console.tui.app import ConsoleApp
from console.tui.run import run
from tests.tui.fakes import House
def broken(self):
    secret = "hunter22"
    raise ValueError("boom")
ConsoleApp._begin = broken
sys.exit(run(House().services()))
"""

SHELL = """
import os, signal, subprocess, sys
def to_front():
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
sys.exit(subprocess.Popen([sys.executable, "-P", "-c", sys.argv[1]], preexec_fn=to_front).wait())
"""


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)


def restored(console: Terminal) -> bool:
    """Alternate screen off after it was on, cursor visible, no mouse reports."""
    after = console.output.rpartition(ENTERED)[2]
    return LEFT in after and b"\x1b[?25h" in after.rpartition(LEFT)[2] + after


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_restores_the_terminal(number: signal.Signals) -> None:
    with terminal() as console:
        console.shows("ready", "2x RTX 5060 Ti")
        console.send(number)
        console.until(console.ended)
        console.read()
        assert restored(console)
        assert console.code == 128 + number
        assert "keeps running on http://127.0.0.1:8000" in console.output.decode()


def test_whoever_sends_a_quit_gets_the_terminal_back_and_a_death_by_it(tmp_path: Path) -> None:
    quiet = f"import os, resource; os.chdir({str(tmp_path)!r}); resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    with terminal("-P", "-c", quiet + SCRIPT) as console:
        console.shows("ready", "2x RTX 5060 Ti")
        modes = termios.tcgetattr(console.master)[3]
        console.send(signal.SIGQUIT)
        console.until(console.ended)
        console.read()
        assert restored(console)
        assert console.code == -signal.SIGQUIT
        assert not modes & termios.ICANON
        assert termios.tcgetattr(console.master)[3] & termios.ICANON
        assert "keeps running on http://127.0.0.1:8000" in console.output.decode()


def test_a_signal_under_a_box_does_too() -> None:
    with terminal() as console:
        console.shows("ready")
        console.type(b"x")
        console.shows("stop it")
        console.send(signal.SIGTERM)
        console.until(console.ended)
        console.read()
        assert restored(console)


@pytest.mark.parametrize("ignore", [False, True], ids=["hangup", "hangup-ignored"])
def test_a_terminal_that_goes_away_ends_the_console_without_spinning(ignore: bool) -> None:
    script = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" if ignore else ""
    with terminal("-P", "-c", script + SCRIPT) as console:
        console.shows("ready")
        before, began = console.cpu_s(), time.monotonic()
        console.hang_up()
        console.until(console.ended, seconds=15)
        assert console.code == 128 + signal.SIGHUP
        assert before < 20
        assert time.monotonic() - began < 15


def test_q_leaves_at_once_and_says_what_stays() -> None:
    with terminal() as console:
        console.shows("ready", "q quit")
        console.type(b"q")
        console.until(console.ended)
        console.read()
        assert restored(console)
        assert console.code == 0
        said = console.output.rpartition(LEFT)[2].decode()
        assert "`qwen-console down` stops it" in said


def test_ctrl_c_asks_instead_of_surprising() -> None:
    with terminal() as console:
        console.shows("ready")
        console.type(b"\x03")
        console.shows("Leave the console?")
        assert not console.ended()
        console.type(b"q")
        console.until(console.ended)
        assert console.code == 0


def test_over_ssh_the_mouse_is_left_to_the_terminal() -> None:
    with terminal(env={"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}) as console:
        console.shows("ready")
        console.type(b"q")
        console.until(console.ended)
        assert b"\x1b[?1000h" not in console.output
    with terminal() as console:
        console.shows("ready")
        assert b"\x1b[?1000h" in console.output


def test_a_fault_of_the_console_restores_the_terminal_and_shows_no_traceback() -> None:
    with terminal("-P", "-c", BREAK) as console:
        console.until(console.ended)
        console.read()
        assert restored(console)
        assert console.code == 1
        said = console.output.rpartition(LEFT)[2].decode()
        assert "the console itself failed" in said
        assert "ValueError: boom" in said
        assert "Traceback" not in said
        assert "hunter22" not in said


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "screen"), ("TERM", "linux")])
def test_poor_terminals_get_the_same_text(name: str, value: str) -> None:
    with terminal(env={name: value}) as console:
        console.shows("ready", "14.62/15.93", "hit rate")
        console.type(b"q")
        console.until(console.ended)
        assert console.code == 0
        assert b"38;2;" not in console.output


def shell_like() -> tuple[str, ...]:
    """A parent with job control: it leads the session, the console has a group of its own in the foreground."""
    return "-P", "-c", SHELL, SCRIPT


@pytest.mark.parametrize("key", [b"", b"\x1a"], ids=["SIGTSTP", "ctrl+z"])
def test_a_console_that_is_stopped_and_continued_paints_again(key: bytes) -> None:
    with terminal(*shell_like()) as console:
        console.shows("ready", "q quit")
        pid = int(Path(f"/proc/{console.pid}/task/{console.pid}/children").read_text())
        console.type(key) if key else os.kill(pid, signal.SIGTSTP)
        console.until(lambda: _state(pid) == "T")
        console.read()
        assert "hit rate" not in console.glass.text
        # Meant for the shell, not for the console: it must not quit as soon as it goes on.
        console.type(b"q")
        os.kill(pid, signal.SIGCONT)
        console.shows("hit rate", "ready")
        console.type(b"?")
        console.shows("previous preset")
        console.type(b"?")
        console.shows("hit rate")
        console.type(b"q")
        console.until(console.ended)


@pytest.mark.parametrize("held", [False, True], ids=["SIGCONT", "SIGSTOP, SIGCONT"])
def test_going_on_without_having_been_suspended_keeps_what_is_to_be_restored(held: bool) -> None:
    with terminal() as console:
        console.shows("ready", "q quit")
        if held:
            console.send(signal.SIGSTOP)
            console.until(lambda: _state(console.pid) == "T")
            # A shell would take its own modes back meanwhile.
            modes = termios.tcgetattr(console.master)
            modes[3] |= termios.ICANON | termios.ECHO
            termios.tcsetattr(console.master, termios.TCSANOW, modes)
        console.send(signal.SIGCONT)
        console.until(lambda: not termios.tcgetattr(console.master)[3] & termios.ICANON)
        console.type(b"?")
        console.shows("keys")
        console.type(b"\x1b")
        console.shows("hit rate")
        console.type(b"q")
        console.until(console.ended)
        assert console.code == 0
        left = termios.tcgetattr(console.master)[3]
        assert left & termios.ICANON
        assert left & termios.ECHO
        assert left & termios.ISIG


def test_without_a_shell_behind_it_the_console_is_not_suspended() -> None:
    """`ssh -t HOST qwen-console`: nobody could continue it."""
    with terminal() as console:
        console.shows("ready", "q quit")
        console.type(b"\x1a")
        console.shows("not suspended: no shell behind this terminal")
        assert _state(console.pid) != "T"
        console.type(b"q")
        console.until(console.ended)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_the_real_command_runs_a_demo_on_a_terminal() -> None:
    with terminal("-P", "-m", "console", "--demo", size=(120, 40)) as console:
        console.shows("SIMULATED", "○", "qwen3.8-27b-nvfp4-100k")
        console.type(b"q")
        console.until(console.ended)
        assert console.code == 0
