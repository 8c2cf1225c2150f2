"""Which cards to look at, and how a single look gets all its figures."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from console.endpoint import Endpoint
from console.gpu.nvml import NvmlSource
from console.gpu.sample import GpuReport, GpuSource
from console.gpu.sim import SimSource
from console.gpu.visible import seen_by


def open_source(
    sim: Endpoint | None,
    ours: Callable[[], frozenset[int]],
    env: Callable[[], Mapping[str, str]] = lambda: os.environ,
    rest_s: float = 0.0,
) -> GpuSource:
    """The real cards, or with `sim` the stand-in engine's; never raises, no card is a sentence in the report.

    Args:
        sim: the stand-in engine to ask instead of the driver.
        ours: the pids of our server's processes, asked at each look.
        env: the environment that tells which cards the server sees, asked at each look.
        rest_s: as `PcieMeter` takes it.
    """
    return _Marked(NvmlSource(ours, rest_s=rest_s) if sim is None else SimSource(sim, ours), env)


class _Marked:
    """A source whose cards are marked by whether the server sees them."""

    def __init__(self, source: GpuSource, env: Callable[[], Mapping[str, str]]) -> None:
        self._source = source
        self._env = env

    def read(self) -> GpuReport:
        report = self._source.read()
        seen = seen_by(report.cards, self._env())
        cards = tuple(replace(card, visible=known) for card, known in zip(report.cards, seen, strict=True))
        return replace(report, cards=cards)

    def close(self) -> None:
        self._source.close()


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
