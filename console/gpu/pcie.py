"""Bytes over a card's PCIe link, measured in a thread of its own so that looking at the cards never waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

WRAP = 2**32
"""Drivers hand out the byte counters modulo this, so at full speed a wide link wraps them several times a second."""
_COUNT_FIELDS = (197, 198)
"""NVML's ids of the bytes sent and received over PCIe; ids never change, and older bindings do not name these."""
_LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
_WIDEST = 16 * _LANE_BYTES_PER_S[5]
_SAMPLE_EVERY_S = 1.0
_SAMPLE_STALE_S = 5.0
_SHORTEST_SPAN_S = 0.02
_PROMPT_S, _TRIES = 0.002, 3
_ROOM, _BURST_BYTES = 1.5, 64e6
"""How much a counter may seem to be ahead of the link: it is set in steps, and stamps are taken around the call."""


@dataclass(frozen=True, slots=True)
class LinkRates:
    """Bytes a second from the card (`tx`) and to it (`rx`); `source` as in `GpuSample.pcie_source`."""

    tx: float | None = None
    rx: float | None = None
    source: str | None = None


def link_bytes_per_s(gen: int | None, width: int | None) -> float:
    """What a link can carry one way; a fast one where the card does not say."""
    # A card that is passed through to a virtual machine may tell a width of 0.
    if gen not in _LANE_BYTES_PER_S or not width:
        return _WIDEST
    return _LANE_BYTES_PER_S[gen] * width


class ByteCounter:
    """A byte counter that wraps, as a rate.

    Exact as long as looks are closer than the link needs to carry 2^32 bytes; after a longer gap the rate covers the
    time since the gap only.
    """

    def __init__(self, link: float) -> None:
        self._link = link
        self._safe_s = WRAP / link
        self._last: tuple[int, float] | None = None
        self._total = 0
        self._mark: tuple[int, float] | None = None
        self._wide = False
        self._rate: float | None = None

    def add(self, raw: int, at: float) -> None:
        """The counter's value at monotonic second `at`."""
        before, self._last = self._last, (raw, at)
        self._wide = self._wide or raw >= WRAP
        if before is None:
            self._mark = (self._total, at)
            return
        step, span = raw - before[0], at - before[1]
        if step < 0 and not self._wide:
            step += WRAP
        # More than the link can carry: the counter was set back, with the driver or the card.
        impossible = step < 0 or step > _ROOM * self._link * span + _BURST_BYTES
        if impossible or (not self._wide and span >= self._safe_s):
            self._mark = (self._total, at)
            return
        self._total += step

    def rate(self) -> float | None:
        """Bytes a second since the last call that had something to measure; `None` before the first span."""
        if self._mark is None or self._last is None:
            return None
        span = self._last[1] - self._mark[1]
        if span >= _SHORTEST_SPAN_S:
            self._rate = (self._total - self._mark[0]) / span
            self._mark = (self._total, self._last[1])
        return self._rate


class PcieMeter:
    """Measures one card's link: byte counters where the driver has them, else the driver's own 20 ms samples.

    Args:
        nvml: the `pynvml` module.
        handle: the card's handle.
        link: bytes a second that the link can carry.
        clock: monotonic seconds.
        rest_s: rest so long between two looks at the counters, and measure only the moment after each rest; for whoever
            wants to take no time. Without a rest nothing that crosses the link is missed.
    """

    def __init__(
        self, nvml: Any, handle: Any, link: float, clock: Callable[[], float] = time.monotonic, rest_s: float = 0.0
    ) -> None:
        self._nvml = nvml
        self._handle = handle
        self._clock = clock
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._tx, self._rx = ByteCounter(link), ByteCounter(link)
        self._sampled: tuple[float, float | None, float | None] | None = None
        # Two looks within the time in which the link can wrap the counter, with room for a late thread.
        self._every_s = max(0.02, 0.6 * WRAP / link)
        self._rest_s = rest_s
        self._source: str | None = "counters" if self._count() else "sample"
        target = self._follow_counters if self._source == "counters" else self._follow_samples
        self._thread = threading.Thread(target=target, name="pcie-meter", daemon=True)
        self._thread.start()

    def rates(self) -> LinkRates:
        """The latest rates; never waits for the driver's sampling."""
        if self._source == "counters":
            known = self._count()
            with self._lock:
                tx, rx = self._tx.rate(), self._rx.rate()
            return LinkRates(tx, rx, "counters") if known else LinkRates(source="counters")
        sampled = self._sampled
        if sampled is None or self._clock() - sampled[0] > _SAMPLE_STALE_S:
            return LinkRates(source=self._source)
        return LinkRates(sampled[1], sampled[2], self._source)

    def stop(self) -> None:
        """End the thread; waits for a sample under way."""
        self._stop.set()
        self._thread.join(timeout=1.0)

    def _count(self) -> bool:
        """Look at the counters once; whether the driver has them."""
        nvml = self._nvml
        with self._lock:
            try:
                values, at = self._stamped()
            except nvml.NVMLError:
                return False
            raw = [_value(nvml, value) for value in values]
            if raw[0] is None or raw[1] is None:
                return False
            self._tx.add(raw[0], at)
            self._rx.add(raw[1], at)
            return True

    def _stamped(self) -> tuple[Any, float]:
        """Both counters and when they were read; again where this thread was held up within, as then nobody knows."""
        values, begun, ended = None, 0.0, 0.0
        for _ in range(_TRIES):
            begun = self._clock()
            values = self._nvml.nvmlDeviceGetFieldValues(self._handle, list(_COUNT_FIELDS))
            ended = self._clock()
            if ended - begun < _PROMPT_S:
                break
        return values, (begun + ended) / 2

    def _follow_counters(self) -> None:
        while not self._stop.wait(self._every_s):
            self._count()
            if self._rest_s:
                with self._lock:
                    self._tx.rate()
                    self._rx.rate()
                if self._stop.wait(self._rest_s):
                    return
                # After so long nobody knows how often it wrapped: the next span begins here.
                self._count()

    def _follow_samples(self) -> None:
        while True:
            tx = self._sample(self._nvml.NVML_PCIE_UTIL_TX_BYTES)
            rx = self._sample(self._nvml.NVML_PCIE_UTIL_RX_BYTES)
            if self._source is None:
                return
            self._sampled = (self._clock(), tx, rx)
            if self._stop.wait(max(_SAMPLE_EVERY_S, self._rest_s)):
                return

    def _sample(self, direction: int) -> float | None:
        """The driver's sample of one direction in bytes a second (it counts in kB/s)."""
        nvml = self._nvml
        try:
            value = int(nvml.nvmlDeviceGetPcieThroughput(self._handle, direction))
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NoPermission):
            self._source = None
            return None
        except nvml.NVMLError:
            return None
        return None if value == WRAP - 1 else value * 1000.0


def _value(nvml: Any, field: Any) -> int | None:
    """A field's value by the type the driver gives it; `None` where it was refused or is a sentinel."""
    if field.nvmlReturn != nvml.NVML_SUCCESS:
        return None
    names = {
        nvml.NVML_VALUE_TYPE_UNSIGNED_INT: "uiVal",
        nvml.NVML_VALUE_TYPE_UNSIGNED_LONG: "ulVal",
        nvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG: "ullVal",
        nvml.NVML_VALUE_TYPE_SIGNED_LONG_LONG: "sllVal",
    }
    name = names.get(field.valueType)
    value = None if name is None else int(getattr(field.value, name))
    return None if value is None or value < 0 or value in (WRAP - 1, 2**64 - 1) else value
