"""Which cards to look at, and how a single look gets all its figures."""

from __future__ import annotations

import time
from collections.abc import Callable

from console.endpoint import Endpoint
from console.gpu.nvml import NvmlSource
from console.gpu.sample import GpuReport, GpuSource
from console.gpu.sim import SimSource


def open_source(sim: Endpoint | None, ours: Callable[[], frozenset[int]]) -> GpuSource:
    """The real cards, or with `sim` the stand-in engine's; never raises, no card is a sentence in the report.

    Args:
        sim: the stand-in engine to ask instead of the driver.
        ours: the pids of our server's processes, asked at each look.
    """
    return NvmlSource(ours) if sim is None else SimSource(sim, ours)


def read_settled(source: GpuSource, within_s: float = 0.25) -> GpuReport:
    """One look for verbs that look once: repeated until PCIe rates, which need two, are there or `within_s` passed."""
    end = time.monotonic() + within_s
    report = source.read()
    while time.monotonic() < end and any(
        card.problem is None and card.pcie_source is not None and card.pcie_tx_bytes_per_s is None
        for card in report.cards
    ):
        time.sleep(0.03)
        report = source.read()
    return report
