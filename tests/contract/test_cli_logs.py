"""`logs`: what our own consoles ask stays out of sight, and following it has an end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.console_process import Console, wait_until, write_preset

SIM = f"[{sys.executable}, -P, -m, console.sim]"


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Iterator[Console]:
    presets = tmp_path / "presets"
    write_preset(presets, "p", f"model: m\nserved-name: m\ncommand: {SIM}\nserver: {{port: {free_port()}}}\n")
    found = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_PRESETS": str(presets)})
    found.env["QWEN_CONSOLE_SIM_START_S"] = "0.3"
    yield found
    found.end()


class Reader:
    """A follower whose lines can be waited for."""

    def __init__(self, console: Console, out: Path) -> None:
        self._out = out
        with out.open("w") as file:
            self.process = subprocess.Popen(
                console.words("logs", "-f", "-n", "0"), env=console.environment(), stdout=file, stderr=file
            )

    @property
    def said(self) -> str:
        """All of it so far."""
        return self._out.read_text()


def test_what_our_own_consoles_ask_is_left_out(console: Console) -> None:
    console("up", "p")
    for _ in range(3):
        console.status()
    whole = console("logs", "--all", "-n", "1000").out.splitlines()
    shown = console("logs", "-n", "1000").out.splitlines()
    assert sum("GET /metrics" in line for line in whole) >= 3
    assert not any("GET /metrics" in line or "GET /health" in line for line in shown)
    assert any("Application startup complete" in line for line in shown)
    assert len(console("logs", "-n", "5").out.splitlines()) == 5
    assert console("logs", "-n", "0").out == ""
    console("down")


def test_following_goes_on_into_the_next_start_and_ends_with_the_server(console: Console, tmp_path: Path) -> None:
    console("up", "p")
    reader = Reader(console, tmp_path / "said")
    console("restart")
    wait_until(lambda: "a server was started again" in reader.said and "startup complete" in reader.said)
    assert reader.process.poll() is None
    console("down")
    assert reader.process.wait(30) == 0
    assert reader.said.splitlines()[-1].startswith("the log ends here: p was stopped; `qwen-console up`")


def test_following_a_server_that_died_says_of_what(console: Console, tmp_path: Path) -> None:
    console.env["QWEN_CONSOLE_SIM_START_S"] = "2"
    up = console.start("up", "p", "--set", "env.QWEN_CONSOLE_SIM_FAULT=oom")
    wait_until(lambda: console.status()["server"]["pid"])
    reader = Reader(console, tmp_path / "said")
    assert reader.process.wait(60) == 0
    up.communicate(timeout=30)
    assert "the log ends here: p failed (" in reader.said.splitlines()[-1]
