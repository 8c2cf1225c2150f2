"""The console's cost on a terminal, beside its rivals and our own budgets, as one document.

    python -m tests.bench.screen_table --rivals VENV/bin [--seconds 30] [--out docs/screen.md]      a quarter of an hour

Everything is measured in one run: each case at 120x40 and 80x24, rivals in the same minutes under the same load, and
how long a key takes to be seen while everything polls and the log floods. Compare within one run only: absolute times
are the machine's. Rivals that are not in the folder are left out; `pip install` them into an environment of their own.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from console import __version__, units
from tests.bench.document import commit, hand_in, refused
from tests.bench.screen_ground import CONSOLE, Served, flood, load, server
from tests.bench.screen_meter import CASES, RIVALS, Measured, measured, row, table_head
from tests.tui.terminal import Terminal, terminal

SIZES = ((120, 40), (80, 24))
BUDGETS: dict[str, float] = {"busy": 2000, "idle": 200, "low-bandwidth": 800}
"""Bytes a second at 120x40."""
_PACKAGES = {"vllm-dash": "vllm-mon"}
"""Where the command is not called as its package is."""
_PRESSES = ((b"j", "▸2"), (b"?", "draw anew"), (b"k", "▸1"), (b"g", "not throttled"))
"""Keys, and what only they bring on the screen."""


def key_times(served: Served, size: tuple[int, int]) -> list[float]:
    """Seconds from a key to what it shows, while streams run and the log takes 10,000 lines a second.

    `esc` is not among them: a terminal's escape sequences begin with it, so every program waits a while (Textual 0.1 s)
    for what may follow.
    """
    found: list[float] = []
    with load(served), flood(served), terminal(*CONSOLE, "--demo", size=size) as shown:
        shown.shows("ready", "▸1")
        for key, shows in _PRESSES * 5:
            begun = time.monotonic()
            shown.type(key)
            shown.shows(shows)
            found.append(time.monotonic() - begun)
            _settle(shown, 0.3)
            if key in {b"?", b"g"}:
                shown.type(b"\x1b")
                _settle(shown, 0.5)
    return found


def _settle(shown: Terminal, seconds: float) -> None:
    """Go on reading, so that keys fall anywhere between two ticks."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        shown.read()


def rival_versions(folder: str | None) -> str:
    """Name and version of every rival that is measured."""
    python = Path(folder or "") / "python"
    names = [_PACKAGES.get(name, name) for name in RIVALS]
    if not python.exists():
        return "none"
    script = (
        "import sys\nfrom importlib.metadata import version, PackageNotFoundError\n"
        "for name in sys.argv[1:]:\n    try: print(name, version(name))\n    except PackageNotFoundError: pass"
    )
    done = subprocess.run([str(python), "-c", script, *names], capture_output=True, text=True, check=False)
    return ", ".join(done.stdout.split("\n")).strip(", ") or "none"


def judged(found: Sequence[Measured]) -> Iterator[str]:
    """Which of our budgets the run misses."""
    for one in found:
        limit = BUDGETS.get(one.case)
        if one.program == "qwen-console" and limit and one.bytes_per_s > limit:
            yield f"{one.case} at {one.size}: {one.bytes_per_s:.0f} B/s, budget {limit:.0f}"


def head(args: argparse.Namespace, seconds: float, busy: float) -> list[str]:
    """What the document says first."""
    what = [f"qwen-console {__version__}", f"Textual {version('textual')}", f"Python {platform.python_version()}"]
    return [
        "# What the console costs on a terminal",
        "",
        f"Written on {datetime.now(UTC):%Y-%m-%d} by `python -m tests.bench.screen_table`: commit {commit()}, "
        f"{', '.join(what)}, {os.cpu_count()} cores (load {busy:.1f} before it began), {args.seconds:.0f} s a case, "
        f"{units.duration(seconds)} in all. Rivals: {rival_versions(args.rivals)}.",
        "",
        "Each program runs in a pseudo-terminal that is always drained, against the stand-in engine, *busy* with two",
        "streams; rivals look once a second as we do. *Paint* is the first thing to read, *number* the first figure",
        "that only the server or a card can have told, both from exec. CPU is of one core, the program's own process.",
        "Absolute times are this machine's; the ratios within the table are what counts.",
        "",
        "Budgets: 2 kB/s busy, 0.2 kB/s idle, 0.8 kB/s busy with `--low-bandwidth`; a key is seen within 100 ms; 2 %",
        "of one core; 60 MB. The demo also simulates two cards and their link, which change every second.",
        "",
        *table_head(),
    ]


def main() -> int:
    """Measure, and write the document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rivals", metavar="FOLDER", help="look for rivals here, beside PATH")
    parser.add_argument("--out", type=Path, help="write the document there instead of to stdout")
    args = parser.parse_args()
    if refused():
        return 2
    args.case, args.command = CASES, None
    folder = tempfile.mkdtemp(prefix="screen-table-")
    os.environ |= {f"XDG_{kind}_HOME": f"{folder}/{kind}" for kind in ("STATE", "CONFIG", "CACHE")}
    begun, busy, found, keys = time.monotonic(), os.getloadavg()[0], [], {}
    try:
        for size in SIZES:
            for one in measured(args, size):
                print(row(one), file=sys.stderr, flush=True)
                found.append(one)
        with server() as served:
            for size in SIZES:
                keys[size] = key_times(served, size)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seen = [
        f"- {size[0]}x{size[1]}: median {units.seconds(statistics.median(times))}, slowest of {len(times)} "
        f"{units.seconds(max(times))}"
        for size, times in keys.items()
    ]
    lines = [*head(args, time.monotonic() - begun, busy), *map(row, found)]
    lines += [
        "",
        "## From a key to what it shows",
        "",
        "While both streams run and the log takes 10,000 lines a second:",
        "",
        *seen,
    ]
    return hand_in(lines, args.out, list(judged(found)), "OVER BUDGET")


if __name__ == "__main__":
    sys.exit(main())
