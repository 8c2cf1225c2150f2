"""Byte counters that wrap: the rate is exact, or covers only the time in which it is known."""

from __future__ import annotations

import pytest

from console.gpu.pcie import WRAP, ByteCounter, link_bytes_per_s

GEN5_X8 = link_bytes_per_s(5, 8)


def test_links() -> None:
    assert pytest.approx(31.5e9, rel=0.01) == GEN5_X8
    assert link_bytes_per_s(3, 16) == pytest.approx(15.76e9, rel=0.01)
    # A card that does not say is taken for a fast one, so that its counter is looked at often enough.
    assert link_bytes_per_s(None, 8) == link_bytes_per_s(5, 16)


def follow(counter: ByteCounter, speed: float, start: float, looks: int, every: float, bits: int = 32) -> None:
    for look in range(looks):
        at = start + look * every
        counter.add(int(speed * at) % 2**bits, at)


def test_a_rate_needs_two_looks() -> None:
    counter = ByteCounter(GEN5_X8)
    assert counter.rate() is None
    counter.add(5, 1.0)
    assert counter.rate() is None
    counter.add(1005, 1.1)
    assert counter.rate() == pytest.approx(10_000)


@pytest.mark.parametrize("speed", [0.0, 1e6, 4e9, 30e9])
def test_wraps_are_counted(speed: float) -> None:
    counter = ByteCounter(GEN5_X8)
    follow(counter, speed, 100.0, 14, 0.08)
    assert counter.rate() == pytest.approx(speed, rel=1e-6)
    follow(counter, speed, 101.12, 14, 0.08)
    assert counter.rate() == pytest.approx(speed, rel=1e-6)


def test_a_gap_in_which_it_may_have_wrapped_unseen_is_left_out() -> None:
    counter = ByteCounter(GEN5_X8)
    counter.add(0, 10.0)
    counter.add(1_000_000, 10.1)
    counter.add(2_000_000, 20.0)
    counter.add(2_500_000, 20.1)
    assert counter.rate() == pytest.approx(5_000_000)


def test_a_wide_counter_may_be_looked_at_rarely_but_not_reset() -> None:
    counter = ByteCounter(GEN5_X8)
    counter.add(WRAP * 10, 10.0)
    counter.add(WRAP * 20, 20.0)
    assert counter.rate() == pytest.approx(WRAP)
    counter.add(7, 30.0)
    counter.add(107, 31.0)
    assert counter.rate() == pytest.approx(100)


def test_looks_too_close_together_repeat_the_last_rate() -> None:
    counter = ByteCounter(GEN5_X8)
    counter.add(0, 1.0)
    counter.add(1000, 1.1)
    first = counter.rate()
    counter.add(1001, 1.101)
    assert counter.rate() == first


def test_a_counter_that_was_set_back_is_no_burst() -> None:
    """A driver that starts again counts from 0: taken for a wrap it would be 4 GB within a moment."""
    counter = ByteCounter(link_bytes_per_s(5, 8))
    counter.add(50_000_000, 10.0)
    counter.add(51_000_000, 10.08)
    assert counter.rate() == pytest.approx(12.5e6)
    counter.add(0, 10.16)
    counter.add(1_000_000, 10.24)
    assert counter.rate() == pytest.approx(12.5e6)
    wide = ByteCounter(link_bytes_per_s(5, 8))
    for raw, at in ((2**40, 1.0), (2**40 + 10**6, 2.0), (2**63, 3.0), (2**63 + 10**6, 4.0)):
        wide.add(raw, at)
    assert wide.rate() == pytest.approx(1e6)
