"""What the console costs on a terminal: time to the first frame and number, bytes, CPU, memory; and what rivals cost.

    python -m tests.bench.screen_meter [--size 120x40] [--seconds 30] [--case NAME ...] [--rivals FOLDER] [--json]

Every case runs a program in a pseudo-terminal that is always drained, against the stand-in engine of a demo, which is
started for it and stopped afterwards. Rivals are measured in the same minutes under the same load: those that are found
on PATH or in `--rivals`, a folder such as the `bin` of a virtual environment. Any other program: `--command 'nvitop'`,
with `--number REGEX` for what counts as its first live number.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from console import __version__
from tests.bench.screen_ground import CONSOLE, Served, flood, lab, load, server
from tests.tui.terminal import Terminal, terminal

VRAM = r"\d+\.\d+/\d+\.\d+"
"""On our screen the first thing that only a look at the cards can give."""
CASES = ("stopped", "idle", "busy", "low-bandwidth", "log flood", "lab running")
RIVALS = {
    "vllm-htop": "vllm-htop --url {url} --interval 1",
    "vllmpytop": "vllmpytop --url {url} --interval 1",
    "vllmstat": "vllmstat --url {url} --interval 1",
    "vllm-dash": "vllm-dash --url {url} --interval 1",
    "vllm-top": "vllm-top --host {host} --port {port} --interval 1",
}
"""Consoles for vLLM that the package index has, each told to look once a second."""
_WARM_UP_S = 8.0
_PAINTED = re.compile(rb"[^\x00-\x20\x7f]{3}")
"""Something to read, once sequences are taken out."""
_SEQUENCES = re.compile(rb"\x1b\[[0-9;?<>=$]*[A-Za-z~]|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()=>78][0B]?")


@dataclass(frozen=True, slots=True)
class Measured:
    """One program in one case."""

    program: str
    case: str
    size: str
    first_paint_s: float | None
    first_number_s: float | None
    bytes_per_s: float
    zlib_bytes_per_s: float
    """As `ssh -C` would send it, flushed with every write."""
    worst_second_bytes: int
    cpu_percent: float
    """Of one core, the program's own process only."""
    rss_mib: float


@dataclass(frozen=True, slots=True)
class Program:
    """What is measured."""

    name: str
    words: tuple[str, ...]
    """As python's arguments."""
    number: str


def ours(*words: str, number: str = VRAM) -> Program:
    """The console on its demo."""
    return Program("qwen-console", (*CONSOLE, "--demo", *words), number)


def other(command: str, number: str) -> Program:
    """Any program, as a shell would split it."""
    words = shlex.split(command)
    return Program(Path(words[0]).name, ("-c", f"import os; os.execvp({words[0]!r}, {words!r})"), number)


def rivals(served: Served, folder: str | None) -> Iterator[Program]:
    """Those that are here; their first live number is what only the server can have told: its model."""
    path = os.pathsep.join(word for word in (folder, os.environ.get("PATH")) if word)
    at = urlsplit(served.url)
    for name, command in RIVALS.items():
        if found := shutil.which(name, path=path):
            words = command.format(url=served.url, host=at.hostname, port=at.port).partition(" ")[2]
            yield other(f"{shlex.quote(found)} {words}", re.escape(served.model[:8]))


def measure(case: str, program: Program, size: tuple[int, int], seconds: float) -> Measured:
    """Run a program for `seconds` after it has come up."""
    pattern = re.compile(program.number.encode())
    begun = time.monotonic()
    paint = first = None
    with terminal(*program.words, size=size) as shown:
        while time.monotonic() - begun < _WARM_UP_S:
            shown.read()
            if paint is None and _PAINTED.search(_SEQUENCES.sub(b"", shown.output)):
                paint = time.monotonic() - begun
            if first is None and pattern.search(shown.output):
                first = time.monotonic() - begun
        at, cpu, seen = time.monotonic(), shown.cpu_s(), len(shown.output)
        bins = _watch(shown, seconds)
        took, used = time.monotonic() - at, shown.cpu_s() - cpu
        rss = _rss_mib(shown.pid)
    steady = shown.output[seen:]
    return Measured(
        program=program.name,
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


def measured(asked: argparse.Namespace, size: tuple[int, int]) -> Iterator[Measured]:
    """Every case that was asked for, rivals beside ours where the server is busy."""
    wanted = asked.case or CASES
    if asked.command:
        yield measure("alone", other(asked.command, asked.number), size, asked.seconds)
        return
    if "stopped" in wanted:
        yield measure("stopped", ours(number="stopped"), size, asked.seconds)
    if set(wanted) <= {"stopped"}:
        return
    with server() as served:
        if "idle" in wanted:
            yield measure("idle", ours(), size, asked.seconds)
        if "busy" in wanted or "low-bandwidth" in wanted:
            with load(served):
                yield from _busy(wanted, served, size, asked)
        for case, ground in (("log flood", flood(served)), ("lab running", lab())):
            if case in wanted:
                with ExitStack() as stack:
                    stack.enter_context(ground)
                    yield measure(case, ours(), size, asked.seconds)


def _busy(
    wanted: Sequence[str], served: Served, size: tuple[int, int], asked: argparse.Namespace
) -> Iterator[Measured]:
    if "busy" in wanted:
        yield measure("busy", ours(), size, asked.seconds)
        for program in rivals(served, asked.rivals):
            yield measure("busy", program, size, asked.seconds)
    if "low-bandwidth" in wanted:
        yield measure("low-bandwidth", ours("--low-bandwidth"), size, asked.seconds)


def table_head() -> list[str]:
    """The names of the columns."""
    names = "program | case | terminal | paint s | number s | B/s | zlib B/s | worst second B | CPU % | RSS MiB"
    return [f"| {names} |", "|---" * len(names.split("|")) + "|"]


def head() -> str:
    """What is above the table."""
    loads = " ".join(f"{value:.1f}" for value in os.getloadavg())
    here = f"qwen-console {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores, load {loads}."
    return "\n".join([here, "", *table_head()])


def row(found: Measured) -> str:
    """One line of the table."""
    return f"| {' | '.join('n/a' if value is None else str(value) for value in asdict(found).values())} |"


def main() -> None:
    """Measure the cases that were asked for; a table, or JSON lines."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="120x40")
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--rivals", metavar="FOLDER", help="look for rivals here, beside PATH")
    parser.add_argument("--command", help="another program instead, as a shell would split it")
    parser.add_argument("--number", default=r"\d", help="its first live number, a regular expression")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    width, height = (int(part) for part in asked.size.split("x"))
    folder = tempfile.mkdtemp(prefix="screen-meter-")
    os.environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "CONFIG", "CACHE")}
    if not asked.json:
        print(head(), flush=True)
    try:
        for found in measured(asked, (width, height)):
            print(json.dumps(asdict(found)) if asked.json else row(found), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
