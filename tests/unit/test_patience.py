"""A driver that hangs holds up nobody."""

from __future__ import annotations

import threading

import pytest

from console.gpu.patience import PatientReader
from console.gpu.sample import GpuReport, GpuSample
from console.lab import cards
from console.lab.cards import CardLog


class Driver:
    """Answers, unless it hangs."""

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.looks, self.closed = 0, 0

    def read(self) -> GpuReport:
        self.looks += 1
        self.goes_on.wait(30)
        return GpuReport(0.0, (GpuSample(0, vram_used_bytes=self.looks),))

    def close(self) -> None:
        self.closed += 1


def test_a_look_that_hangs_is_waited_for_once_and_forgiven_when_it_ends() -> None:
    driver = Driver()
    reader = PatientReader(lambda: driver, 0.2)
    assert reader.read() is not None
    driver.goes_on.clear()
    assert reader.read() is None
    assert reader.read() is None
    assert driver.looks == 2, "no second thread waits in the same call"
    reader.close()
    assert driver.closed == 0, "who closes it would hang, too"
    driver.goes_on.set()


def test_what_a_driver_says_is_raised_where_it_was_asked() -> None:
    def broken() -> Driver:
        raise OSError("no driver")

    with pytest.raises(OSError, match="no driver"):
        PatientReader(broken, 5.0).read()


def test_the_cards_of_a_boot_say_that_the_driver_was_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "_PATIENCE_S", 0.2)
    driver = Driver()
    log = CardLog(lambda: driver)
    log.look()
    assert (log.vram_peak_bytes, log.silent) == ([1], False)
    driver.goes_on.clear()
    log.look()
    log.close()
    assert (log.vram_peak_bytes, log.silent) == ([1], True)
    driver.goes_on.set()
    again = CardLog(Driver)
    again.look()
    again.close()
    assert again.silent is False
