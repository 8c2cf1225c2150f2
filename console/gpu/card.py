"""One card through NVML: every field is asked by itself, and what this card refuses for good is not asked again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from console.gpu.pcie import LinkRates, PcieMeter, link_bytes_per_s
from console.gpu.sample import GpuProcess, GpuSample

T = TypeVar("T")

_NOT_AVAILABLE = (2**64 - 1, 2**32 - 1)
_SLOWLY_S = 10.0
"""Fields that change by hand only are asked this often."""
_MIG = (
    "MIG is on: this is the whole card, and the driver refuses its utilisation and its processes; "
    "`sudo nvidia-smi -mig 0` undoes it."
)
_REASONS = (
    (0x2, "clocks set"),
    (0x4, "power cap"),
    (0x8, "hw slowdown"),
    (0x10, "sync boost"),
    (0x20, "thermal"),
    (0x40, "hw thermal"),
    (0x80, "power brake"),
    (0x100, "display clocks"),
)
"""Bits of the clock event reasons in short words; an idle card is not a throttled one."""


class CardGoneError(Exception):
    """A card, or the whole driver, that does not answer any more."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Card:
    """One card behind an NVML handle.

    Args:
        nvml: the `pynvml` module.
        handle: the card's handle.
        clock: monotonic seconds.
        rest_s: as `PcieMeter` takes it.
    """

    def __init__(
        self, nvml: Any, handle: Any, clock: Callable[[], float] = time.monotonic, rest_s: float = 0.0
    ) -> None:
        self._nvml = nvml
        self._handle = handle
        self._clock = clock
        self._rest_s = rest_s
        self._refused: set[str] = set()
        self._fixed: dict[str, Any] = {}
        self._slow: dict[str, tuple[float, Any]] = {}
        self._meter: PcieMeter | None = None
        self._answers = 0
        self._failure: Any = None
        self.name: str | None = self._once("name", lambda: nvml.nvmlDeviceGetName(handle))
        self.uuid: str | None = self._once("uuid", lambda: nvml.nvmlDeviceGetUUID(handle))
        self.handle = handle
        self.bus: tuple[int, int, int] | None = self._once("bus", self._bus)

    def sample(self, index: int, ours: frozenset[int]) -> GpuSample:
        """The card now.

        Raises:
            CardGoneError: it does not answer; other cards may.
        """
        self._answers, self._failure = 0, None
        used, total, reserved, free = self._memory()
        util, mem_util = self._utilisation()
        gen_max = self._once("gen max", lambda: self._call("nvmlDeviceGetMaxPcieLinkGeneration"))
        width_max = self._once("width max", lambda: self._call("nvmlDeviceGetMaxPcieLinkWidth"))
        found = GpuSample(
            index=index,
            name=self.name,
            uuid=self.uuid,
            vram_used_bytes=used,
            vram_total_bytes=total,
            vram_reserved_bytes=reserved,
            pcie_gen=self._number("gen", "nvmlDeviceGetCurrPcieLinkGeneration"),
            pcie_gen_max=_known(gen_max),
            pcie_width=self._number("width", "nvmlDeviceGetCurrPcieLinkWidth"),
            pcie_width_max=_known(width_max),
            pcie_replays=self._number("replays", "nvmlDeviceGetPcieReplayCounter"),
            util=util,
            mem_util=mem_util,
            temp_c=self._number("temp", "nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU),
            power_w=_scaled(self._number("power", "nvmlDeviceGetPowerUsage"), 1000),
            power_limit_w=_scaled(self._power_limit(), 1000),
            sm_clock_mhz=self._number("sm clock", "nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM),
            throttle=self._throttle(),
            processes=self._processes(ours, total),
            vram_free_bytes=free,
            mem_clock_mhz=self._number("mem clock", "nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_MEM),
            persistence=self._switch("persistence", "nvmlDeviceGetPersistenceMode"),
            display=self._display(),
            numa_node=self._slowly("numa", self._numa),
            note=_MIG if self._mig() else None,
        )
        if self._answers == 0 and self._failure is not None:
            raise CardGoneError(self._failure.value, str(self._failure))
        return _with_rates(found, self._rates(found.pcie_gen_max, found.pcie_width_max))

    def close(self) -> None:
        """End what measures the card."""
        if self._meter is not None:
            self._meter.stop()
            self._meter = None

    def _ask(self, field: str, call: Callable[[], T]) -> T | None:
        """One field; `None` where it is refused, remembered where it is refused for good."""
        if field in self._refused:
            return None
        nvml = self._nvml
        try:
            answer = call()
        except (nvml.NVMLError_Uninitialized, nvml.NVMLError_GpuIsLost, nvml.NVMLError_ResetRequired) as error:
            raise CardGoneError(error.value, str(error)) from None
        except (nvml.NVMLError_DriverNotLoaded, nvml.NVMLError_LibRmVersionMismatch) as error:
            raise CardGoneError(error.value, str(error)) from None
        except (
            nvml.NVMLError_NotSupported,
            nvml.NVMLError_NoPermission,
            nvml.NVMLError_FunctionNotFound,
            nvml.NVMLError_InvalidArgument,
            nvml.NVMLError_ArgumentVersionMismatch,
        ):
            self._refused.add(field)
            return None
        except nvml.NVMLError as error:
            self._failure = error
            return None
        except UnicodeDecodeError:
            return None
        self._answers += 1
        return answer

    def _call(self, function: str, *arguments: Any) -> Any:
        return getattr(self._nvml, function)(self._handle, *arguments)

    def _number(self, field: str, function: str, *arguments: Any) -> int | None:
        return _known(self._ask(field, lambda: self._call(function, *arguments)))

    def _once(self, field: str, call: Callable[[], T]) -> T | None:
        """A field that does not change while the driver runs."""
        if field not in self._fixed:
            answer = self._ask(field, call)
            if answer is None:
                return None
            self._fixed[field] = answer
        kept: T = self._fixed[field]
        return kept

    def _slowly(self, field: str, call: Callable[[], T | None]) -> T | None:
        """A field that is asked every few looks only."""
        now = self._clock()
        kept = self._slow.get(field)
        if kept is None or now - kept[0] >= _SLOWLY_S:
            kept = self._slow[field] = (now, call())
        known: T | None = kept[1]
        return known

    def _switch(self, field: str, function: str) -> bool | None:
        state = self._slowly(field, lambda: self._number(field, function))
        return {0: False, 1: True}.get(-1 if state is None else state)

    def _display(self) -> bool | None:
        """A display on a connector, or a desktop that has memory here without one."""
        known = [
            state
            for state in (
                self._switch("display", "nvmlDeviceGetDisplayMode"),
                self._switch("desktop", "nvmlDeviceGetDisplayActive"),
            )
            if state is not None
        ]
        return any(known) if known else None

    def _mig(self) -> bool:
        modes = self._slowly("mig", lambda: self._ask("mig", lambda: self._call("nvmlDeviceGetMigMode")))
        return modes is not None and modes[0] == 1

    def _numa(self) -> int | None:
        """The memory node next to the card: the driver's word, else the kernel's."""
        node = self._number("numa", "nvmlDeviceGetNumaNodeId")
        if node is not None and node >= 0:
            return node
        if self.bus is None:
            return None
        domain, bus, device = self.bus
        try:
            told = int(Path(f"/sys/bus/pci/devices/{domain:04x}:{bus:02x}:{device:02x}.0/numa_node").read_text())
        except (OSError, ValueError):
            return None
        return told if told >= 0 else None  # -1: a machine with one node

    def _bus(self) -> tuple[int, int, int]:
        info = self._call("nvmlDeviceGetPciInfo")
        return int(info.domain), int(info.bus), int(info.device)

    def _memory(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Used, total, reserved and free bytes; the older call counts what the driver reserves as used."""
        info = self._ask("memory", lambda: self._call("nvmlDeviceGetMemoryInfo", self._nvml.nvmlMemory_v2))
        if info is not None:
            return _sizes(info.used, info.total, info.reserved, info.free)
        info = self._ask("memory v1", lambda: self._call("nvmlDeviceGetMemoryInfo"))
        if info is None:
            return None, None, None, None
        return _sizes(info.used, info.total, None, info.free)

    def _utilisation(self) -> tuple[float | None, float | None]:
        rates = self._ask("util", lambda: self._call("nvmlDeviceGetUtilizationRates"))
        return (None, None) if rates is None else (_percent(rates.gpu), _percent(rates.memory))

    def _power_limit(self) -> int | None:
        enforced = self._number("limit", "nvmlDeviceGetEnforcedPowerLimit")
        return self._number("limit set", "nvmlDeviceGetPowerManagementLimit") if enforced is None else enforced

    def _throttle(self) -> tuple[str, ...] | None:
        bits = self._number("reasons", "nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = self._number("reasons, old name", "nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if bits is None else tuple(word for bit, word in _REASONS if bits & bit)

    def _processes(self, ours: frozenset[int], total: int | None) -> tuple[GpuProcess, ...] | None:
        """Who holds memory here; `None` where the platform does not say."""
        lists = [self._running("Compute"), self._running("Graphics")]
        if all(listed is None for listed in lists):
            return None
        held: dict[int, int | None] = {}
        for process in (process for listed in lists if listed is not None for process in listed):
            pid, size = _known(process.pid), _known(process.usedGpuMemory)
            if pid is None:
                continue
            size = None if size is None or (total is not None and size > total) else size
            sizes = [known for known in (held.get(pid), size) if known is not None]
            held[pid] = max(sizes, default=None)
        return tuple(GpuProcess(pid, size, pid in ours) for pid, size in sorted(held.items()))

    def _running(self, kind: str) -> list[Any] | None:
        name = f"nvmlDeviceGet{kind}RunningProcesses"
        listed = self._ask(f"{kind} processes", lambda: self._call(f"{name}_v3"))
        return listed if listed is not None else self._ask(f"{kind} processes v2", lambda: self._call(f"{name}_v2"))

    def _rates(self, gen: int | None, width: int | None) -> LinkRates:
        if self._meter is None:
            self._meter = PcieMeter(self._nvml, self._handle, link_bytes_per_s(gen, width), self._clock, self._rest_s)
        return self._meter.rates()


def _with_rates(found: GpuSample, rates: LinkRates) -> GpuSample:
    return replace(found, pcie_tx_bytes_per_s=rates.tx, pcie_rx_bytes_per_s=rates.rx, pcie_source=rates.source)


def _known(value: Any) -> int | None:
    """A whole number; `None` for the sentinels that drivers give instead of one."""
    return None if value is None or int(value) in _NOT_AVAILABLE else int(value)


def _sizes(used: Any, total: Any, reserved: Any, free: Any) -> tuple[int | None, int | None, int | None, int | None]:
    """The parts of a card's memory; a part larger than the whole is no number."""
    whole = _known(total)
    parts = [
        None if (part := _known(size)) is None or (whole is not None and part > whole) else part
        for size in (used, reserved, free)
    ]
    return parts[0], whole, parts[1], parts[2]


def _percent(value: Any) -> float | None:
    known = _known(value)
    return None if known is None or known > 100 else known / 100


def _scaled(value: int | None, by: float) -> float | None:
    return None if value is None else value / by
