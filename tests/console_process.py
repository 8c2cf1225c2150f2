"""The command as its user runs it: a process of its own, and a sure end for everything it started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

COMMAND = (sys.executable, "-P", "-m", "console")
PORT_VARIABLE = "QWEN_CONSOLE_PORT"
"""The port of the shipped presets, where it is not to be 8000."""
QUIET_PORT = "1"
"""Nobody listens there: a server that somebody runs on 8000 is neither seen nor asked anything by a test."""


def home_of_the_command() -> Path:
    """Where the console that `COMMAND` runs comes from: an environment may have another checkout installed."""
    words = [sys.executable, "-P", "-c", "import console; print(console.__file__)"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd="/")
    return Path(done.stdout.strip()).resolve().parent.parent


@dataclass(frozen=True)
class Result:
    """How a call ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """stdout as JSON; a failure shows both streams."""
        try:
            return json.loads(self.out)
        except ValueError:
            raise AssertionError(f"no JSON on stdout:\n{self.out}\n--- stderr:\n{self.err}") from None


@dataclass
class Console:
    """`qwen-console` with an environment of its own."""

    env: dict[str, str] = field(default_factory=dict)
    demo: bool = False

    def words(self, *words: str) -> list[str]:
        """The whole command line."""
        return [*COMMAND, *(["--demo"] if self.demo else []), *words]

    def environment(self) -> dict[str, str]:
        """The process's environment."""
        return {PORT_VARIABLE: QUIET_PORT} | os.environ | self.env

    def __call__(self, *words: str, code: int | None = 0, timeout: float = 600) -> Result:
        """Run to the end; `code` is the exit code that is expected (`None`: any)."""
        done = subprocess.run(
            self.words(*words), env=self.environment(), capture_output=True, text=True, timeout=timeout, check=False
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in result.err, result.err
        assert code is None or result.code == code, f"{words}: {result.code}\n{result.out}\n--- stderr:\n{result.err}"
        return result

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Run beside the test, in a session of its own."""
        return subprocess.Popen(
            self.words(*words),
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def status(self, *words: str) -> Any:
        """`status --json`."""
        return self("status", "--json", *words).json

    @property
    def state(self) -> str:
        """The server's state in a word."""
        return str(self.status()["server"]["state"])

    def processes(self) -> list[psutil.Process]:
        """Every living process that works with this console's state folder: ours by its environment."""
        state = self.environment()["XDG_STATE_HOME"]
        found = []
        for process in psutil.process_iter():
            try:
                same = process.environ().get("XDG_STATE_HOME") == state
                if same and process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
                continue
        return found

    def end(self) -> None:
        """End whatever is left, so that one failed test does not spoil the next."""
        for process in self.processes():
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue


def wait_until(condition: Callable[[], object], timeout: float = 60, every: float = 0.1) -> None:
    """Wait for a condition, with a deadline."""
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, "the condition never became true"
        time.sleep(every)


def write_preset(folder: Path, name: str, text: str) -> None:
    """A preset file of the test's own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
