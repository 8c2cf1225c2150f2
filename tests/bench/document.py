"""What every written table says of itself, and where it goes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.console_process import home_of_the_command

ROOT = Path(__file__).resolve().parents[2]


def commit() -> str:
    """What is checked out, and whether something was changed since."""
    words = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def refused() -> bool:
    """Whether a table would name one checkout and measure another; then that is said on stderr."""
    if (home := home_of_the_command()) == ROOT:
        return False
    print(f"this environment runs the console of {home}, the table would name the commit of {ROOT}", file=sys.stderr)
    return True


def listed(texts: Sequence[str], otherwise: str) -> list[str]:
    """A line each, or what holds where there is none."""
    return [f"- {text}" for text in texts] or [f"- {otherwise}"]


def hand_in(lines: Iterable[str], out: Path | None, failures: Sequence[str], word: str) -> int:
    """Write the document where it is to be, each failure on stderr after `word`; the exit code."""
    text = "\n".join(lines) + "\n"
    if out:
        out.write_text(text, encoding="utf-8")
    else:
        print(text, end="")
    for failure in failures:
        print(f"{word} {failure}", file=sys.stderr)
    return 1 if failures else 0
