"""What one look at the cards yields. Every field may be unknown by itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory on a card."""

    pid: int
    vram_bytes: int | None
    ours: bool = False


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One card at one moment; `None` means that this card, driver or platform does not say.

    Field names are the JSON contract of `status --json`. Bytes, bytes a second, ratios 0..1, degrees Celsius, watts.
    """

    index: int
    """Position by PCI bus id, as `CUDA_DEVICE_ORDER=PCI_BUS_ID` counts."""
    name: str | None = None
    uuid: str | None = None
    source: str = "nvml"
    vram_used_bytes: int | None = None
    vram_total_bytes: int | None = None
    vram_reserved_bytes: int | None = None
    pcie_tx_bytes_per_s: float | None = None
    pcie_rx_bytes_per_s: float | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    pcie_replays: int | None = None
    pcie_source: str | None = None
    """`counters` (exact, from byte counters) or `sample` (the driver's 20 ms window)."""
    util: float | None = None
    mem_util: float | None = None
    temp_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    throttle: tuple[str, ...] | None = None
    """Why the clocks are held down now; empty when they are not."""
    processes: tuple[GpuProcess, ...] | None = None
    problem: str | None = None
    """Why this card cannot be read, in a sentence; its row stays on the screen."""


@dataclass(frozen=True, slots=True)
class GpuReport:
    """All cards at one moment, or the sentence that says why there are none."""

    at: float
    """Monotonic seconds."""
    cards: tuple[GpuSample, ...] = ()
    problem: str | None = None


class GpuSource(Protocol):
    """Something that can look at the cards."""

    def read(self) -> GpuReport:
        """Look once; blocks for milliseconds, never raises for what a card or driver does."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...
