"""What runs beside a measured screen: a demo's server, steady streams, a flood of log lines, an A/B run."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

CONSOLE = ("-P", "-m", "console")
_STREAMS = 2


@dataclass(frozen=True, slots=True)
class Served:
    """The demo's server."""

    url: str
    model: str
    log: Path


def demo(*words: str) -> str:
    """One verb of the demo; its stdout."""
    done = subprocess.run([sys.executable, *CONSOLE, "--demo", *words], capture_output=True, text=True, check=False)
    return done.stdout


@contextmanager
def server() -> Iterator[Served]:
    """Up meanwhile."""
    demo("up")
    try:
        told = json.loads(demo("status", "--json"))["server"]
        yield Served(told["url"], told["model"], Path(told["log"]))
    finally:
        demo("down")


@contextmanager
def load(served: Served) -> Iterator[None]:
    """Steady streams with a common beginning."""
    over = threading.Event()

    def stream(name: int) -> None:
        shared = "the same beginning of every prompt " * 600
        body = {"model": served.model, "stream": True, "max_tokens": 120}
        with httpx.Client(timeout=120, trust_env=False) as client:
            for i in range(100_000):
                if over.is_set():
                    return
                asked = body | {"messages": [{"role": "user", "content": f"{shared} {name}.{i}"}]}
                with client.stream("POST", f"{served.url}/v1/chat/completions", json=asked) as reply:
                    for _ in reply.iter_raw():
                        if over.is_set():
                            return

    threads = [threading.Thread(target=stream, args=(i,), daemon=True) for i in range(_STREAMS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(10)


@contextmanager
def flood(served: Served) -> Iterator[None]:
    """Ten thousand lines a second into the server's log."""
    over = threading.Event()

    def write() -> None:
        line = "(EngineCore pid=8) INFO 11-29 12:00:01 [core.py:2] one of very many lines, number {}\n"
        with served.log.open("a") as file:
            for i in range(10_000_000):
                if over.is_set():
                    return
                file.write("".join(line.format(i * 100 + n) for n in range(100)))
                file.flush()
                time.sleep(0.01)

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5)


@contextmanager
def lab() -> Iterator[None]:
    """An A/B run of MTP."""
    demo("ab", "mtp", "--size", "small", "--no-wait")
    try:
        yield
    finally:
        demo("ab", "stop")
