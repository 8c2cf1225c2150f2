"""How a verb speaks: data on stdout, narration on stderr, every command in it as this console was started."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from console import hints


def say(line: str) -> None:
    """Narration: a line on stderr."""
    print(hints.told(line), file=sys.stderr, flush=True)


def show(lines: Iterable[str]) -> None:
    """Data for people: lines on stdout."""
    for line in lines:
        print(hints.told(line))


def show_json(value: Any) -> None:
    """Data for scripts: one JSON object on stdout."""
    print(json.dumps(hints.told_all(value), indent=1))
