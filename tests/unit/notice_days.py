"""A watcher fed once a second, and what it sees of servers and cards in order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from console.gpu.sample import GpuProcess, GpuReport, GpuSample
from console.metrics.reading import Distribution, Mtp, PrefixCache, Reading
from console.notices import Look, Notice, Watcher
from console.server.status import ServerStatus, State

MIB = 1024**2
READY = ServerStatus(State.READY, pid=10, url="http://127.0.0.1:8000")
QUIET = Reading(window_s=30.0, running=0, waiting=0, kv_used=0.1, preemptions=0, generation_tokens_per_s=0.0)
CARD = GpuSample(
    0,
    vram_used_bytes=15_000 * MIB,
    vram_total_bytes=16_311 * MIB,
    vram_free_bytes=800 * MIB,
    pcie_gen=5,
    pcie_gen_max=5,
    pcie_width=8,
    pcie_width_max=8,
    pcie_replays=0,
    util=0.9,
    throttle=(),
    processes=(GpuProcess(10, 14_000 * MIB, True),),
)


class Day:
    """A watcher fed once a second."""

    def __init__(self) -> None:
        self.watcher = Watcher()
        self.at = 1000.0
        self.events: list[Notice] = []

    def __call__(self, seconds: int = 1, **seen: Any) -> set[str]:
        """So many looks at the same thing; the ids that stand after the last one."""
        notices: tuple[Notice, ...] = ()
        for _ in range(seconds):
            self.at += 1
            notices = self.watcher.see(Look(self.at, **({"status": READY} | seen)))
            self.events += self.watcher.begun
        self.last = notices
        return {notice.id for notice in notices}


def drafting(rate: float, drafts: int = 100) -> Reading:
    return replace(QUIET, mtp=Mtp(acceptance_rate=rate, drafts=drafts))


def hitting(rate: float, **more: Any) -> Reading:
    cache = PrefixCache(True, rate, cached_tokens=int(50_000 * rate), computed_tokens=int(50_000 * (1 - rate)))
    found = replace(QUIET, ttft_s=Distribution(n=5, mean=0.2), prefix_cache=replace(cache, block_tokens=1600))
    return replace(found, **more)


def cards(**changes: Any) -> GpuReport:
    return GpuReport(0.0, (replace(CARD, **changes),))
