"""What the console costs on a terminal: time to the first frame and number, bytes, CPU, memory.

    python -m tests.bench.screen_meter [--size 120x40] [--seconds 30] [--case NAME ...] [--json]

Every case runs the console in a pseudo-terminal against the stand-in engine of a demo, which is started for it and
stopped afterwards. Another program is measured the same way: `--command 'nvitop'`, with `--number REGEX` for what counts
as its first live number.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from tests.tui.terminal import Terminal, terminal

CONSOLE = ("-P", "-m", "console")
VRAM = r"\d+\.\d+/\d+\.\d+"
"""On our screen the first thing that only a look at the cards can give."""
_WARM_UP_S = 8.0
_STREAMS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """One case."""

    case: str
    size: str
    first_paint_s: float | None
    first_number_s: float | None
    bytes_per_s: float
    zlib_bytes_per_s: float
    """As `ssh -C` would send it, flushed with every write."""
    worst_second_bytes: int
    cpu_percent: float
    """Of one core, the console's own process only."""
    rss_mib: float


def measure(case: str, words: Sequence[str], size: tuple[int, int], seconds: float, number: str) -> Measured:
    """Run a program for `seconds` after it has come up."""
    pattern = re.compile(number.encode())
    begun = time.monotonic()
    paint = first = None
    with terminal(*words, size=size) as shown:
        while time.monotonic() - begun < _WARM_UP_S:
            shown.read()
            if paint is None and "─".encode() in shown.output:
                paint = time.monotonic() - begun
            if first is None and pattern.search(shown.output):
                first = time.monotonic() - begun
        at, cpu, seen = time.monotonic(), shown.cpu_s(), len(shown.output)
        bins = _watch(shown, seconds)
        took, used = time.monotonic() - at, shown.cpu_s() - cpu
        rss = _rss_mib(shown.pid)
    steady = shown.output[seen:]
    return Measured(
        case=case,
        size=f"{size[0]}x{size[1]}",
        first_paint_s=paint and round(paint, 3),
        first_number_s=first and round(first, 3),
        bytes_per_s=round(len(steady) / took, 1),
        zlib_bytes_per_s=round(sum(bins.compressed) / took, 1),
        worst_second_bytes=max(bins.plain, default=0),
        cpu_percent=round(used / took * 100, 2),
        rss_mib=round(rss, 1),
    )


@dataclass
class _Bins:
    plain: list[int]
    compressed: list[int]


def _watch(shown: Terminal, seconds: float) -> _Bins:
    """Bytes of every second, plain and as a compressed stream."""
    bins, squeeze = _Bins([], []), zlib.compressobj()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        second, before, small = time.monotonic() + 1.0, len(shown.output), 0
        while time.monotonic() < second:
            at = len(shown.output)
            shown.read()
            if len(shown.output) > at:
                small += len(squeeze.compress(shown.output[at:]) + squeeze.flush(zlib.Z_SYNC_FLUSH))
        bins.plain.append(len(shown.output) - before)
        bins.compressed.append(small)
    return bins


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


# --- what runs beside it


def _demo(*words: str) -> str:
    done = subprocess.run([sys.executable, *CONSOLE, "--demo", *words], capture_output=True, text=True, check=False)
    return done.stdout


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    """The demo's server; its address and model."""
    _demo("up")
    try:
        told = json.loads(_demo("status", "--json"))["server"]
        yield told["url"], told["model"]
    finally:
        _demo("down")


@contextmanager
def _load(url: str, model: str) -> Iterator[None]:
    """Steady streams with a common beginning."""
    over = threading.Event()

    def stream(name: int) -> None:
        shared = "the same beginning of every prompt " * 600
        body = {"model": model, "stream": True, "max_tokens": 120}
        with httpx.Client(timeout=120, trust_env=False) as client:
            for i in range(100_000):
                if over.is_set():
                    return
                message = {"role": "user", "content": f"{shared} {name}.{i}"}
                with client.stream("POST", f"{url}/v1/chat/completions", json=body | {"messages": [message]}) as reply:
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
def _flood() -> Iterator[None]:
    """Ten thousand lines a second into the server's log."""
    over = threading.Event()
    path = Path(json.loads(_demo("status", "--json"))["server"]["log"])

    def write() -> None:
        line = "(EngineCore pid=8) INFO 11-29 12:00:01 [core.py:2] one of very many lines, number {}\n"
        with path.open("a") as file:
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


def case(name: str, size: tuple[int, int], seconds: float) -> Measured:
    """One of the cases, with what it needs around it."""
    words = (*CONSOLE, "--demo")
    if name == "stopped":
        return measure(name, words, size, seconds, "stopped")
    with _server() as (url, model):
        if name == "idle":
            return measure(name, words, size, seconds, VRAM)
        if name == "flood":
            with _flood():
                return measure(name, words, size, seconds, VRAM)
        if name == "lab":
            _demo("ab", "mtp", "--size", "small", "--no-wait")
            try:
                return measure(name, words, size, seconds, VRAM)
            finally:
                _demo("ab", "stop")
        low = ("--low-bandwidth",) if name == "low" else ()
        with _load(url, model):
            return measure(name, (*words, *low), size, seconds, VRAM)


CASES = ("stopped", "idle", "busy", "low", "flood", "lab")


def main() -> None:
    """Measure the cases that were asked for; a table, or JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--command", help="another program instead, as a shell would split it")
    parser.add_argument("--number", default=r"\d", help="its first live number, a regular expression")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    width, height = (int(part) for part in asked.size.split("x"))
    folder = tempfile.mkdtemp(prefix="screen-meter-")
    os.environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "CONFIG", "CACHE")}
    try:
        for found in _found(asked, (width, height)):
            if asked.json:
                print(json.dumps(asdict(found)), flush=True)
            else:
                print("  ".join(f"{name} {value}" for name, value in asdict(found).items()), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _found(asked: argparse.Namespace, size: tuple[int, int]) -> Iterator[Measured]:
    if asked.command:
        code = f"import os; os.execvp({shlex.split(asked.command)[0]!r}, {shlex.split(asked.command)!r})"
        yield measure(asked.command, ("-c", code), size, asked.seconds, asked.number)
        return
    for name in asked.case or CASES:
        yield case(name, size, asked.seconds)


if __name__ == "__main__":
    main()
