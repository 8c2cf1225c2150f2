"""One load by one client, in a process of its own, so that its CPU time is its own.

python -m tests.bench.client_load ours|floor PORT STREAMS REQUESTS SCHEDULE_JSON [TIMEOUT_S]     prints what it saw
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from typing import Any

from console.lab.client import Asked, Lateness, Target, Wires
from tests.bench import floor

Json = dict[str, Any]


def ours(port: int, streams: int, bodies: list[bytes], timeout_s: float) -> list[Json]:
    """The lab's client, with the heart that tells how late this process is."""
    wires = Wires(Target("127.0.0.1", port), Lateness())
    traces = wires.perform([Asked(body, None, timeout_s) for body in bodies], streams)
    return [trace.to_json() for trace in traces]


def barest(port: int, streams: int, bodies: list[bytes], _: float) -> list[Json]:
    """The floor."""
    return asyncio.run(_barest(port, streams, bodies))


async def _barest(port: int, streams: int, bodies: list[bytes]) -> list[Json]:
    waiting = iter(list(enumerate(bodies)))
    seen: dict[int, Json] = {}

    async def work() -> None:
        for i, body in waiting:
            found = await floor.ask("127.0.0.1", port, body)
            seen[i] = {"sent": found.sent, "stamps": [at - found.sent for at in found.stamps], "outcome": "ok"}

    await asyncio.gather(*(work() for _ in range(streams)))
    return [seen[i] for i in range(len(bodies))]


def main() -> None:
    """The command line."""
    kind, port, streams, requests, schedule, *timeout = sys.argv[1:]
    bodies = [
        json.dumps({"model": "truth", "user": str(i), "stream": True, "schedule": json.loads(schedule)}).encode()
        for i in range(int(requests))
    ]
    gc.collect()
    gc.freeze()
    gc.disable()
    cpu = time.process_time()
    seen = {"ours": ours, "floor": barest}[kind](
        int(port), int(streams), bodies, float(timeout[0]) if timeout else 60.0
    )
    print(json.dumps({"cpu_s": time.process_time() - cpu, "requests": seen}))


if __name__ == "__main__":
    main()
