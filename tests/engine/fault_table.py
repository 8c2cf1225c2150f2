"""Runs the fault table on the real engine and writes it down.

python -m tests.engine.fault_table                 all rows, an hour; writes docs/faults.md
python -m tests.engine.fault_table ROW…            these rows, on the screen only
python -m tests.engine.fault_table --list          the names of the rows
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from console import __version__, units
from tests.bench.document import ROOT, commit, refused
from tests.engine.fault_bench import GOES_ON, NOTHING, Bench, Outcome, Row
from tests.engine.fault_rows import ROWS, can_mount
from tests.engine.install import VERSION, engine
from tests.ssh.sshd import SSHD

DOCS = ROOT / "docs" / "faults.md"
_CELL = 300
_HEAD = """\
# What goes wrong, and what then happens

Each row was brought about on the real engine (vLLM's CPU build, a tiny hybrid model, tensor parallel 2). *Left running*
counts every process of the console and its server. *Next `up`* is a whole start afterwards.

Written on {date} by `python -m tests.engine.fault_table`: commit {commit}, qwen-console {console}, vLLM {vllm},
Python {python}, Linux {linux}. CI runs one row of each kind (marked •) on every change.

| fault | what the user sees | left running | next `up` |
|---|---|---|---|
"""


def impossible() -> dict[str, str]:
    """Rows that this machine does not allow, and why."""
    found = {}
    if not can_mount():
        found["disk-full"] = "a small disk can be mounted by root only"
    if SSHD is None:
        found["line-lost-in-down"] = "OpenSSH's server is not installed"
    return found


def run(rows: Iterable[Row], bench: Bench) -> list[tuple[Row, Outcome]]:
    """All of them in order, whatever becomes of one; the last start that is owed comes by itself."""
    done = []
    try:
        for row in rows:
            begun = time.monotonic()
            outcome = bench.carry_out(row)
            took = time.monotonic() - begun
            told = outcome.failure or f"{outcome.sees}; left: {outcome.left}; next up: {outcome.next_up}"
            print(f"{row.id} ({took:.0f} s): {told}", flush=True)
            done.append((row, outcome))
        bench.settle()
        bench.stopped()
    finally:
        bench.close()
    return done


def problems(done: Iterable[tuple[Row, Outcome]]) -> list[str]:
    """What is not as it should be."""
    found = []
    for row, outcome in done:
        if outcome.failure:
            found.append(f"{row.id} did not come to its end: {outcome.failure}")
        elif outcome.left not in (NOTHING, GOES_ON):
            found.append(f"{row.id} leaves {outcome.left}")
        elif not outcome.ok:
            found.append(f"after {row.id} the next start is {outcome.next_up}")
    return found


def markdown(done: Iterable[tuple[Row, Outcome]]) -> str:
    """The table."""
    lines = [
        f"| {row.title}{' •' if row.core else ''} | {_told(outcome)} | {_cell(outcome.left)} | {outcome.next_up} |"
        for row, outcome in done
    ]
    head = _HEAD.format(
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        commit=commit(),
        console=__version__,
        vllm=VERSION,
        python=platform.python_version(),
        linux=platform.release().split("-")[0],
    )
    return head + "\n".join(lines) + "\n"


def _told(outcome: Outcome) -> str:
    failed = "" if outcome.ok else "**FAILS** "
    return failed + _cell(units.clip(outcome.failure, _CELL) if outcome.failure else outcome.sees)


def _cell(text: str) -> str:
    return text.removeprefix("qwen-console: ").replace("|", "/")


def main(names: list[str]) -> int:
    """Run and write."""
    if names == ["--list"]:
        print("\n".join(f"{row.id:<24} {row.kind:<14} {row.title}" for row in ROWS))
        return 0
    if unknown := set(names) - {row.id for row in ROWS}:
        print(f"no such row: {', '.join(sorted(unknown))}; --list names them", file=sys.stderr)
        return 2
    if refused():
        return 2
    skipped = {name: why for name, why in impossible().items() if not names or name in names}
    rows = [row for row in ROWS if (not names or row.id in names) and row.id not in skipped]
    for name, why in skipped.items():
        print(f"left out: {name}: {why}")
    with tempfile.TemporaryDirectory(prefix="qwen-console-faults-") as folder:
        done = run(rows, Bench(Path(folder), engine(), each=not names or len(names) > 1))
    text = markdown(done)
    found = problems(done)
    if names:
        print(text)
    else:
        DOCS.parent.mkdir(exist_ok=True)
        DOCS.write_text(text)
    print("\n".join(found) or f"{len(done)} rows, all as they should be")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
