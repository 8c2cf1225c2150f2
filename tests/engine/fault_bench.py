"""What the rows of the fault table work with: a console, a real engine, and what happened so far."""

from __future__ import annotations

import math
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.console_process import Console, Result, wait_until, write_preset
from tests.engine.conftest import preset_text
from tests.engine.install import Engine

PLAIN = "plain"
_UP_S = 400.0
_GONE_S = 60.0


_UNKNOWN = "(cause: unknown)"


def last_line(text: str, *, of: str = "qwen-console:") -> str:
    """What an error says first; where its cause is not known, what it says about that."""
    lines = [line for line in text.splitlines() if line.startswith(of)]
    if not lines:
        return (text.strip().splitlines() or ["nothing"])[-1]
    said = lines[-1]
    why = text.partition(said)[2].lstrip().partition("\n")[0]
    return f"{said}: {why.removeprefix('why: ')}" if said.endswith(_UNKNOWN) and why.startswith("why: ") else said


NOTHING = "nothing"
GOES_ON = "the server, as it should"


@dataclass
class Outcome:
    """One row as it went."""

    sees: str
    """What the user is told."""
    left: str
    next_up: str = "not tried"
    failure: str | None = None
    """Why the row did not come to its end."""

    @property
    def ok(self) -> bool:
        """Whether all is as it should be."""
        return self.failure is None and self.left in (NOTHING, GOES_ON) and self.next_up.startswith("ready")


@dataclass(frozen=True)
class Row:
    """One fault."""

    id: str
    kind: str
    title: str
    run: Callable[[Bench], str]
    """Brings it about and deals with it as a user would; what that user sees."""
    stays: bool = False
    """The server goes on, as it should."""
    core: bool = False
    """One of those that CI never leaves out."""


@dataclass
class Bench:
    """A console with folders of its own, and the real engine."""

    folder: Path
    engine: Engine
    console: Console = field(init=False)
    start_s: float | None = None
    """What the quickest start took: moments of the others are parts of it."""
    boots: int = 0
    """Starts of the real engine, those that were to fail too."""
    each: bool = False
    """Every row gets a next start of its own; otherwise the next one that comes along counts for all before it."""
    _owing: list[Outcome] = field(default_factory=list)

    def __post_init__(self) -> None:
        state, presets = self.folder / "state", self.folder / "presets"
        state.mkdir(parents=True, exist_ok=True)
        self.console = Console({"XDG_STATE_HOME": str(state), "QWEN_CONSOLE_PRESETS": str(presets)})

    @property
    def state(self) -> Path:
        """The console's own folder."""
        return Path(self.console.env["XDG_STATE_HOME"]) / "qwen-console"

    def preset(self, name: str = PLAIN, *, prefix: bool = False, model: str | None = None, more: str = "") -> str:
        """A preset of the real engine on a fresh port; its name."""
        folder = Path(self.console.env["QWEN_CONSOLE_PRESETS"])
        write_preset(folder, name, preset_text(self.engine, prefix=prefix, model=model) + more)
        return name

    def up(self, name: str | None = None) -> Result:
        """A start that has to succeed: what the rows before still had to show."""
        begun = time.monotonic()
        result = self.console("up", name or self.preset(), timeout=_UP_S)
        took = time.monotonic() - begun
        if "is ready already" not in result.err:
            self.start_s = min(self.start_s or math.inf, float(self.server()["uptime_s"]))
            self.boots += 1
        for outcome in self._owing:
            outcome.next_up = f"ready in {took:.0f} s"
        self._owing.clear()
        return result

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """An `up` beside the test, seen until a process of the server runs."""
        if self.start_s is None:
            self.running()
        self.stopped()
        up = self.console.start("up", *(words or (self.preset(),)))
        self.boots += 1
        wait_until(lambda: self.server()["pid"], timeout=60)
        return up

    def at(self, part: float) -> None:
        """Wait until so much of the quickest start is over."""
        server = self.server()
        end = time.monotonic() - float(server["uptime_s"]) + part * (self.start_s or 0)
        wait_until(lambda: time.monotonic() >= end, timeout=_UP_S, every=0.02)

    def running(self) -> dict[str, Any]:
        """A ready server."""
        if self.server()["state"] != "ready":
            self.stopped()
            self.up()
        return self.server()

    def stopped(self) -> None:
        """No server."""
        self.console("down", code=None, timeout=120)
        wait_until(lambda: not self.console.processes(), timeout=_GONE_S)

    def server(self) -> dict[str, Any]:
        """The server as `status` tells it."""
        found: dict[str, Any] = self.console.status()["server"]
        return found

    def seen(self) -> str:
        """The server in a line, as a user would sum up the screen."""
        server = self.server()
        told = server["diagnosis"]
        words = f"{server['state']}: {told['cause']}: {told['what']}" if told else str(server["state"])
        return f"{words} ({server['note']})" if server["note"] else words

    def until(self, *states: str) -> str:
        """Wait for one of these states; what is seen then."""
        wait_until(lambda: self.server()["state"] in states, timeout=120)
        return self.seen()

    def kill(self, title: str) -> int:
        """kill -9 of the server's process of this title; its pid."""
        server = self.running()
        if title == "api":
            pid = int(server["pid"])
        else:
            pid, *_ = self.pids(title)
        os.kill(pid, signal.SIGKILL)
        return pid

    def pids(self, title: str) -> list[int]:
        """The server's processes of this title."""
        return [one for one in self.server()["ours"] if psutil.Process(one).name().startswith(title)]

    def keeper(self, module: str = "console.server.keeper") -> psutil.Process:
        """The newest process of this module."""
        found = [process for process in self.console.processes() if module in process.cmdline()]
        return max(found, key=lambda process: process.create_time())

    def carry_out(self, row: Row) -> Outcome:
        """One row: the fault, what is left, and with the next start that it works. A row that fails is told as such."""
        try:
            return self._carry_out(row)
        except (AssertionError, OSError, LookupError, ValueError, psutil.Error, subprocess.SubprocessError) as error:
            why = self._plain(f"{type(error).__name__}: {error}")
            left = self._left(within_s=0)
            self._clear()
            return Outcome("FAILED", left, failure=why)

    def _carry_out(self, row: Row) -> Outcome:
        sees = self._plain(row.run(self))
        if row.stays:
            left = GOES_ON if self.server()["state"] == "ready" else "NOT the server"
            return Outcome(sees, left, "ready already" if "ready already" in self.up_again() else "refused")
        outcome = Outcome(sees, self._left())
        self._owing.append(outcome)
        if self.each:
            self.settle()
        return outcome

    def settle(self) -> None:
        """The start that the rows so far still owe."""
        if self._owing:
            self.stopped()
            self.up()

    def _plain(self, text: str) -> str:
        return " ".join(text.split()).replace(str(self.folder), "…")

    def _clear(self) -> None:
        """After a row that broke off: nothing of it may spoil the next."""
        self.console.end()
        wait_until(lambda: not self.console.processes(), timeout=_GONE_S)
        shutil.rmtree(self.state, ignore_errors=True)

    def up_again(self) -> str:
        """`up` of what runs already."""
        return self.console("up", str(self.server()["preset"]), timeout=_UP_S).err

    def _left(self, within_s: float = _GONE_S) -> str:
        end = time.monotonic() + within_s
        while (processes := self.console.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        return NOTHING if not processes else ", ".join(process.name() for process in processes)

    def close(self) -> None:
        """Nothing stays."""
        self.console.end()
