"""The cards through NVIDIA's own library: started once, started again when it fails, never an exception."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from console.gpu.card import Card, CardGoneError
from console.gpu.sample import CardPair, GpuReport, GpuSample
from console.gpu.topology import driver_facts, pairs, platform_note

_RETRY_S = 5.0
_RETRY_MAX_S = 60.0

_NO_PACKAGE = "The cards cannot be read: nvidia-ml-py is missing; install it with `pip install nvidia-ml-py`."
_NO_CARD = "The NVIDIA driver sees no card: check that it sits in its slot (`lspci | grep -i nvidia`)."
_VANISHED = (
    "The driver does not list this card any more: `sudo dmesg | grep -i xid` may tell why; reboot to get it back."
)

# By NVML's error codes, which are part of its ABI.
_WHOLE: dict[int, str] = {
    4: "This user may not open the NVIDIA devices: check the permissions of /dev/nvidia* and of this container.",
    9: "The NVIDIA driver is not loaded: `sudo modprobe nvidia`, or reboot after an update.",
    12: "No NVIDIA driver on this machine (libnvidia-ml.so.1 is missing): install the driver to see cards.",
    18: "The NVIDIA driver was updated under the running kernel module: reboot; until then a running server goes on.",
}
_CARD: dict[int, str] = {
    15: "The card has fallen off the bus: `sudo dmesg | grep -i xid` tells why; check power and riser, then reboot.",
    16: "The card needs a reset: stop what runs on it, then `sudo nvidia-smi --gpu-reset`, or reboot.",
}
_LIBRARY_CODES = frozenset({1, 9, 18})
"""Errors that mean the library or driver as a whole, not one card."""


def _sentence(code: int, text: str, table: dict[int, str]) -> str:
    return table.get(code, f"NVML says `{text}`: compare with `nvidia-smi`; the console tries again by itself.")


@dataclass(slots=True)
class _Slot:
    """A card's place in the list; it stays when the card does not."""

    bus: tuple[int, int, int] | None
    name: str | None
    uuid: str | None
    card: Card | None
    problem: str | None = None

    @property
    def key(self) -> tuple[int, int, int] | str | None:
        """What tells this card from others."""
        return self.bus if self.bus is not None else self.uuid


_SENSELESS = "what the driver tells of this card makes no sense"


class NvmlSource:
    """Looks at the cards through `nvidia-ml-py`.

    Args:
        ours: the pids of our server's processes, asked at each look.
        clock: monotonic seconds.
        release: the kernel's name; this machine's without one.
        rest_s: as `PcieMeter` takes it.
    """

    def __init__(
        self,
        ours: Callable[[], frozenset[int]],
        clock: Callable[[], float] = time.monotonic,
        release: str | None = None,
        rest_s: float = 0.0,
    ) -> None:
        self._ours = ours
        self._clock = clock
        self._rest_s = rest_s
        self._lock = threading.Lock()
        self._nvml: Any = None
        self._slots: list[_Slot] = []
        self._problem: str | None = None
        self._retry_at = 0.0
        self._retry_s = _RETRY_S
        self._driver: tuple[str | None, str | None] = (None, None)
        self._pairs: tuple[CardPair, ...] = ()
        self._note = platform_note(release)

    def read(self) -> GpuReport:
        """Look once. PCIe rates need two looks; the first has none."""
        with self._lock:
            now = self._clock()
            if self._nvml is None or (now >= self._retry_at and self._ailing()):
                self._start(now)
            if self._nvml is None:
                rows = tuple(self._row(i, slot, self._problem) for i, slot in enumerate(self._slots))
                return self._report(now, rows)
            ours = self._ours()
            cards = tuple(self._look(i, slot, ours, now) for i, slot in enumerate(self._slots))
            if not self._ailing():
                self._retry_s = _RETRY_S
            return self._report(now, cards)

    def _report(self, now: float, cards: tuple[GpuSample, ...]) -> GpuReport:
        driver, cuda = self._driver
        return GpuReport(now, cards, self._problem, driver, cuda, self._pairs, self._note)

    def close(self) -> None:
        """End the meters and let go of the driver."""
        with self._lock:
            self._shut()

    def _ailing(self) -> bool:
        return self._problem is not None or any(slot.problem is not None for slot in self._slots)

    def _start(self, now: float) -> None:
        """Start the library, or start it again, and list the cards; with back-off where that fails."""
        if now < self._retry_at:
            return
        self._back_off(now)
        if self._nvml is not None and any(slot.problem is None for slot in self._slots):
            # One card is gone: the others must not lose a beat, so the library stays up.
            with suppress(self._nvml.NVMLError):
                self._list(self._nvml)
            return
        self._shut()
        try:
            import pynvml
        except ImportError:
            self._problem = _NO_PACKAGE
            return
        try:
            pynvml.nvmlInit()
            self._nvml = pynvml
            self._driver = driver_facts(pynvml)
            self._list(pynvml)
            self._problem = None if self._slots else _NO_CARD
        except pynvml.NVMLError as error:
            self._shut()
            self._problem = _sentence(error.value, str(error), _WHOLE)

    def _back_off(self, now: float) -> None:
        self._retry_at = now + self._retry_s
        self._retry_s = min(2 * self._retry_s, _RETRY_MAX_S)

    def _shut(self) -> None:
        for slot in self._slots:
            if slot.card is not None:
                slot.card.close()
                slot.card = None
        if self._nvml is not None:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()
            self._nvml = None

    def _list(self, nvml: Any) -> None:
        """All cards by bus; the ones seen before keep their rows, the ones that still answer are kept as they are."""
        known, found = self._slots, [self._open(nvml, i) for i in range(nvml.nvmlDeviceGetCount())]
        well = {slot.key: slot for slot in known if slot.key and slot.card is not None and slot.problem is None}
        found = [well.get(slot.key, slot) if slot.key else slot for slot in found]
        seen = {slot.key for slot in found}
        missing = [slot for slot in known if slot.key and slot.key not in seen]
        for slot in found:
            if slot.card is None and missing:
                lost = missing.pop(0)
                slot.bus, slot.name, slot.uuid = lost.bus, lost.name, lost.uuid
        found += [_Slot(slot.bus, slot.name, slot.uuid, None, _VANISHED) for slot in missing]
        for slot in known:
            if slot.card is not None and not any(slot.card is kept.card for kept in found):
                slot.card.close()
        buses = [slot.bus for slot in found if slot.bus is not None]
        # NVML's own order is by bus as well; it stands where a card does not tell its bus.
        self._slots = sorted(found, key=lambda slot: slot.bus or (0, 0, 0)) if len(buses) == len(found) else found
        self._pairs = pairs(nvml, [slot.card.handle if slot.card else None for slot in self._slots])

    def _open(self, nvml: Any, index: int) -> _Slot:
        try:
            card = Card(nvml, nvml.nvmlDeviceGetHandleByIndex(index), self._clock, self._rest_s)
        except (nvml.NVMLError, CardGoneError) as error:
            code = error.code if isinstance(error, CardGoneError) else error.value
            return _Slot(None, None, None, None, _sentence(code, str(error), _CARD))
        return _Slot(card.bus, card.name, card.uuid, card)

    def _look(self, index: int, slot: _Slot, ours: frozenset[int], now: float) -> GpuSample:
        if slot.card is None:
            return self._row(index, slot, slot.problem)
        try:
            found = slot.card.sample(index, ours)
        except CardGoneError as error:
            if slot.problem is None:
                self._retry_at = now + self._retry_s
            slot.problem = _sentence(error.code, str(error), _WHOLE if error.code in _LIBRARY_CODES else _CARD)
            return self._row(index, slot, slot.problem)
        except Exception as error:  # noqa: BLE001 - a driver may tell anything: that costs this card's row and no other
            return self._row(index, slot, f"{_SENSELESS} ({type(error).__name__}: {error})")
        slot.problem = None
        return found

    @staticmethod
    def _row(index: int, slot: _Slot, problem: str | None) -> GpuSample:
        return GpuSample(index=index, name=slot.name, uuid=slot.uuid, problem=problem)
