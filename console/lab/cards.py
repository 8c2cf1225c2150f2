"""The cards during one boot: looked at between workloads only, since a look at the driver would colour stamps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from console.gpu.patience import PatientReader
from console.gpu.sample import GpuReport, GpuSample, GpuSource

_PEAKS = ("vram_used_bytes", "temp_c", "power_w", "sm_clock_mhz", "pcie_gen", "pcie_width", "pcie_replays")
_PATIENCE_S = 5.0
_RATES = ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")


class CardLog:
    """Extremes over the looks of one boot. The source stays open: byte counters become rates between two looks.

    Args:
        open_source: opens the cards at the first look.
    """

    def __init__(self, open_source: Callable[[], GpuSource]) -> None:
        self._reader = PatientReader(open_source, _PATIENCE_S)
        self._seen: list[GpuReport] = []
        self.silent = False
        """Whether the driver let a look wait in vain: a card that dies must not hold up the run."""

    def look(self) -> None:
        """Look once; milliseconds."""
        if (report := self._reader.read()) is not None:
            self._seen.append(report)
        else:
            self.silent = True

    def close(self) -> None:
        """Let go of the driver."""
        self._reader.close()

    @property
    def driver(self) -> str | None:
        """The driver's version, as it says it."""
        return next((report.driver for report in reversed(self._seen) if report.driver), None)

    @property
    def vram_peak_bytes(self) -> list[int | None] | None:
        """By card; `None` without cards."""
        found = [row["vram_used_bytes"] for row in self.rows()]
        return found or None

    def rows(self) -> list[dict[str, Any]]:
        """One row a card: the highest of every figure, the lowest clock, why it was held down."""
        indices = sorted({card.index for report in self._seen for card in report.cards})
        return [self._row([c for r in self._seen for c in r.cards if c.index == index]) for index in indices]

    def _row(self, cards: list[GpuSample]) -> dict[str, Any]:
        row: dict[str, Any] = {"index": cards[0].index, "name": cards[0].name}
        for name in (*_PEAKS, *_RATES):
            known = [value for card in cards if (value := getattr(card, name)) is not None]
            row[name] = max(known) if known else None
        clocks = [card.sm_clock_mhz for card in cards if card.sm_clock_mhz is not None]
        row["sm_clock_low_mhz"] = min(clocks) if clocks else None
        reasons = [card.throttle for card in cards if card.throttle is not None]
        row["throttle"] = sorted({word for words in reasons for word in words}) if reasons else None
        return row
