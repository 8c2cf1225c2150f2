"""Rules over the cards: each rises at its threshold and ends at a lower one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.gpu.sample import GpuProcess, GpuReport
from console.server.status import ServerStatus
from tests.unit.notice_days import CARD, MIB, Day, cards


@pytest.fixture
def day() -> Day:
    return Day()


def test_a_thin_margin_and_whose_fault_a_desktop_is(day: Day) -> None:
    assert day(1, cards=cards(vram_free_bytes=150 * MIB, display=True)) == {"vram-margin:0"}
    assert "150 MiB" in day.last[0].what
    assert "desktop" in day.last[0].why
    assert day(1, cards=cards(vram_free_bytes=300 * MIB)) == {"vram-margin:0"}
    assert day(1, cards=cards(vram_free_bytes=400 * MIB)) == set()
    assert day(1, cards=cards(vram_free_bytes=100 * MIB), status=ServerStatus()) == set()
    assert day(1, cards=cards(vram_free_bytes=100 * MIB, visible=False)) == set()


def test_somebody_elses_process(day: Day) -> None:
    ours = GpuProcess(10, 14_000 * MIB, True)
    other = GpuProcess(2**22 + 1, 900 * MIB)
    assert day(1, cards=cards(processes=(ours, other))) == {"foreign-process:0"}
    assert "900 MiB" in day.last[0].what
    assert day(1, cards=cards(processes=(ours, replace(other, vram_bytes=20 * MIB)))) == set()
    assert day(1, cards=cards(processes=None)) == set()
    border = [cards(processes=(ours, replace(other, vram_bytes=size * MIB))) for size in (101, 99, 101, 99, 70)]
    assert [bool(day(1, cards=one)) for one in border] == [True, True, True, True, False]
    day(1, cards=cards(processes=(ours, other), display=True))
    assert "desktop" in day.last[0].fix
    # Before our own processes are known everything would look foreign.
    assert day(1, cards=cards(processes=(replace(ours, ours=False),))) == set()


def test_heat_counts_after_a_moment_and_the_power_cap_never(day: Day) -> None:
    assert day(60, cards=cards(throttle=("power cap",))) == set()
    assert day(3, cards=cards(throttle=("hw thermal",))) == set()
    assert day(4, cards=cards(throttle=("hw thermal",))) == {"throttled:0"}
    # A card at its limit is held down every other moment: that is one finding, not many.
    for _ in range(5):
        assert day(2, cards=cards()) == {"throttled:0"}
        assert "hw thermal" in day.last[0].what
        assert day(1, cards=cards(throttle=("hw thermal",))) == {"throttled:0"}
    assert day(7, cards=cards()) == set()
    assert len(day.events) == 1


def test_a_link_is_narrow_under_load_only(day: Day) -> None:
    assert day(60, cards=cards(pcie_gen=1, util=0.02)) == set()
    assert day(12, cards=cards(pcie_gen=5, pcie_width=4)) == {"link-narrow:0"}
    assert "x4" in day.last[0].what
    assert day(1, cards=cards(pcie_width=4, util=0.01)) == set()
    # Eight lanes are all that this card has, whatever the driver tells.
    ti = {"name": "NVIDIA GeForce RTX 5060 Ti", "pcie_width_max": 16}
    assert day(60, cards=cards(**ti)) == set()
    assert day(12, cards=cards(**ti, pcie_width=4)) == {"link-narrow:0"}
    assert "it can do gen 5 x8" in day.last[0].what
    assert day(40, cards=cards(name="NVIDIA GeForce RTX 5090", pcie_width_max=16)) == {"link-narrow:0"}


def test_replays_that_rise(day: Day) -> None:
    assert day(30, cards=cards(pcie_replays=500)) == set()
    assert day(5, cards=cards(pcie_replays=515)) == {"pcie-replays:0"}
    assert "15 PCIe packets" in day.last[0].what
    assert day(70, cards=cards(pcie_replays=515)) == set()


def test_a_lost_card_and_a_lost_driver(day: Day) -> None:
    day(1, cards=cards())
    assert day(1, cards=GpuReport(0.0, (replace(CARD, problem="off the bus"),))) == {"card-lost:0"}
    assert day(1, cards=GpuReport(0.0, problem="no driver")) == {"cards-unreadable"}
    # Said once, however many cards it costs, and as long as it is true.
    rows = GpuReport(
        0.0, (replace(CARD, problem="no driver"), replace(CARD, index=1, problem="no driver")), "no driver"
    )
    assert day(500, cards=rows) == {"cards-unreadable"}
    assert [notice.id for notice in day.events] == ["card-lost:0", "cards-unreadable"]
