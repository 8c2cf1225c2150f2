"""Looks at the cards on command: started by the tests with their own NVML in the library path.

Reads commands from stdin, a line each, and answers each with one line of JSON: `read`, `settled`, `advance SECONDS`
(moves the source's clock), `new` (a new source), `kernel NAME` (a new source on a kernel of that name),
`rest SECONDS` (a new source that rests between its looks at the links).
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict

from console.gpu.nvml import NvmlSource
from console.gpu.source import read_settled

OURS = frozenset({4242})


def main() -> None:
    """Answer until stdin ends."""
    ahead = 0.0

    def clock() -> float:
        return time.monotonic() + ahead

    source = NvmlSource(lambda: OURS, clock)
    answer: dict[str, object]
    for line in sys.stdin:
        match line.split():
            case ["read"]:
                answer = asdict(source.read())
            case ["settled"]:
                answer = asdict(read_settled(source, within_s=5.0))
            case ["advance", seconds]:
                ahead += float(seconds)
                answer = {}
            case ["kernel", release]:
                source.close()
                source = NvmlSource(lambda: OURS, clock, release)
                answer = {}
            case ["rest", seconds]:
                source.close()
                source = NvmlSource(lambda: OURS, clock, rest_s=float(seconds))
                answer = {}
            case _:
                source.close()
                source = NvmlSource(lambda: OURS, clock)
                answer = {}
        print(json.dumps(answer), flush=True)
    source.close()


if __name__ == "__main__":
    main()
