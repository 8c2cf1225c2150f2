"""The stand-in as a process of its own, for tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx

from console.endpoint import free_port

MODEL = "unsloth/Qwen3.8-27B-NVFP4"
DEADLINE_S = 30.0


@dataclass(frozen=True)
class Stand:
    """A running stand-in."""

    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_bytes().decode(errors="replace")

    def until(self, words: str) -> str:
        """Wait until the log holds `words`; the whole log."""
        end = time.monotonic() + DEADLINE_S
        while words not in self.text():
            assert time.monotonic() < end, f"{words!r} never came:\n{self.text()}"
            time.sleep(0.02)
        return self.text()

    def wait(self) -> int:
        """Its exit code."""
        return self.process.wait(DEADLINE_S)


def ready(stand: Stand) -> None:
    """Wait until it answers."""
    end = time.monotonic() + DEADLINE_S
    while True:
        try:
            httpx.get(f"{stand.url}/health", trust_env=False).raise_for_status()
            return
        except httpx.TransportError:
            assert time.monotonic() < end, stand.text()
            assert stand.process.poll() is None, stand.text()
            time.sleep(0.02)


@contextlib.contextmanager
def stand_in(folder: Path, *flags: str, port: int | None = None, **env: str) -> Iterator[Stand]:
    """Start one on a free port; it is ended with the block."""
    number = free_port() if port is None else port
    log = folder / f"sim-{number}.log"
    words = [MODEL, "--host", "127.0.0.1", "--port", str(number), "--served-model-name", "q", *flags]
    words += ["--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8"]
    settings = {"QWEN_CONSOLE_SIM_START_S": "0.2", "QWEN_CONSOLE_SIM_SEED": "7", "QWEN_CONSOLE_SIM_SPEED": "20", **env}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "console.sim", *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=os.environ | settings,
        )
    try:
        yield Stand(process, f"http://127.0.0.1:{number}", log)
    finally:
        process.kill()
        process.wait()
