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
    vram_free_bytes: int | None = None
    mem_clock_mhz: int | None = None
    persistence: bool | None = None
    """Persistence mode: without it the driver may unload between two processes, and the next start takes longer."""
    display: bool | None = None
    """Whether a display is attached or a desktop runs here, which takes memory as it likes."""
    visible: bool | None = None
    """Whether `CUDA_VISIBLE_DEVICES` lets the server (else this console's shell) see it; `None`: cannot be told."""
    numa_node: int | None = None
    note: str | None = None
    """Something to know of this card beside its figures, in a sentence."""

    @property
    def margin_bytes(self) -> int | None:
        """Free VRAM: as told, else total less used and reserved."""
        if self.vram_free_bytes is not None:
            return self.vram_free_bytes
        if self.vram_total_bytes is None or self.vram_used_bytes is None:
            return None
        return self.vram_total_bytes - self.vram_used_bytes - (self.vram_reserved_bytes or 0)


@dataclass(frozen=True, slots=True)
class CardPair:
    """How two cards reach each other; `a` and `b` are their indices."""

    a: int
    b: int
    p2p: bool | None = None
    """Whether each can read the other's memory directly."""
    p2p_status: str | None = None
    """The driver's word for it: `ok`, `chipset not supported`, `disabled by regkey` …"""
    nvlink: bool | None = None
    path: str | None = None
    """What lies between them, as `nvidia-smi topo -m` says it: PIX, PXB, PHB, NODE, SYS."""


@dataclass(frozen=True, slots=True)
class GpuReport:
    """All cards at one moment, or the sentence that says why there are none."""

    at: float
    """Monotonic seconds."""
    cards: tuple[GpuSample, ...] = ()
    problem: str | None = None
    driver: str | None = None
    cuda: str | None = None
    """The newest CUDA version this driver takes, such as `13.0`."""
    pairs: tuple[CardPair, ...] = ()
    note: str | None = None
    """Something to know of this platform, in a sentence."""


class GpuSource(Protocol):
    """Something that can look at the cards."""

    def read(self) -> GpuReport:
        """Look once; blocks for milliseconds, never raises for what a card or driver does."""
        ...

    def close(self) -> None:
        """Let go of the driver."""
        ...
