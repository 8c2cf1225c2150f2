"""The cards through the real `nvidia-ml-py` on a library with NVML's ABI."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from console.gpu.nvml import NvmlSource, _Slot
from console.gpu.sample import GpuSample
from tests.contract.nvml.rig import CARD, Start, two_cards

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is not installed: it builds the NVML of the tests"
)

NOT_SUPPORTED, TIMEOUT, LOST, UNKNOWN = 3, 10, 15, 999
PAIR = {"a": 0, "b": 1, "p2p": False, "p2p_status": "chipset not supported", "nvlink": False, "path": "PHB"}


def test_two_healthy_cards_read_as_they_are(start_nvml: Start) -> None:
    report = start_nvml(two_cards()).read("settled")
    assert report["problem"] is None
    assert [card["uuid"] for card in report["cards"]] == ["GPU-low", "GPU-high"]
    for index, card in enumerate(report["cards"]):
        assert card | {"uuid": ""} == {
            "index": index,
            "name": CARD["name"],
            "uuid": "",
            "source": "nvml",
            "vram_used_bytes": 15_000_000_000,
            "vram_total_bytes": 17_103_323_136,
            "vram_reserved_bytes": 400_000_000,
            "pcie_tx_bytes_per_s": 1_200_000_000.0,
            "pcie_rx_bytes_per_s": 3_400_000_000.0,
            "pcie_gen": 4,
            "pcie_gen_max": 5,
            "pcie_width": 8,
            "pcie_width_max": 8,
            "pcie_replays": 3,
            "pcie_source": "sample",
            "util": 0.87,
            "mem_util": 0.41,
            "temp_c": 61,
            "power_w": 151.5,
            "power_limit_w": 180.0,
            "sm_clock_mhz": 2602,
            "throttle": ["power cap"],
            "processes": [
                {"pid": 77, "vram_bytes": 500_000_000, "ours": False},
                {"pid": 900, "vram_bytes": 200_000_000, "ours": False},
                {"pid": 4242, "vram_bytes": 14_000_000_000, "ours": True},
            ],
            "problem": None,
            "vram_free_bytes": 1_703_323_136,
            "mem_clock_mhz": 14_001,
            "persistence": True,
            "display": False,
            "visible": None,
            "numa_node": 1,
            "note": None,
        }
    assert (report["driver"], report["cuda"], report["note"]) == ("580.65.06", "13.0", None)
    assert report["pairs"] == [PAIR]


REFUSALS = {
    ("nvmlDeviceGetName",): {"name": None},
    ("nvmlDeviceGetUUID",): {"uuid": None},
    ("nvmlDeviceGetPciInfo_v3",): {},
    ("nvmlDeviceGetMemoryInfo_v2",): {"vram_reserved_bytes": None, "vram_used_bytes": 15_400_000_000},
    ("nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"): {
        "vram_reserved_bytes": None,
        "vram_used_bytes": None,
        "vram_total_bytes": None,
        "vram_free_bytes": None,
    },
    ("nvmlDeviceGetUtilizationRates",): {"util": None, "mem_util": None},
    ("nvmlDeviceGetTemperature",): {"temp_c": None},
    ("nvmlDeviceGetPowerUsage",): {"power_w": None},
    ("nvmlDeviceGetEnforcedPowerLimit",): {"power_limit_w": 175.0},
    ("nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit"): {"power_limit_w": None},
    ("nvmlDeviceGetClockInfo",): {"sm_clock_mhz": None, "mem_clock_mhz": None},
    ("nvmlDeviceGetPersistenceMode",): {"persistence": None},
    ("nvmlDeviceGetDisplayMode",): {},
    ("nvmlDeviceGetDisplayMode", "nvmlDeviceGetDisplayActive"): {"display": None},
    ("nvmlDeviceGetNumaNodeId",): {"numa_node": None},
    ("nvmlDeviceGetMigMode",): {},
    ("nvmlDeviceGetCurrPcieLinkGeneration",): {"pcie_gen": None},
    ("nvmlDeviceGetMaxPcieLinkGeneration",): {"pcie_gen_max": None},
    ("nvmlDeviceGetCurrPcieLinkWidth",): {"pcie_width": None},
    ("nvmlDeviceGetMaxPcieLinkWidth",): {"pcie_width_max": None},
    ("nvmlDeviceGetPcieReplayCounter",): {"pcie_replays": None},
    ("nvmlDeviceGetCurrentClocksEventReasons",): {},
    ("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3"): {},
    (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetGraphicsRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
        "nvmlDeviceGetGraphicsRunningProcesses_v2",
    ): {"processes": None},
    ("nvmlDeviceGetPcieThroughput",): {
        "pcie_source": None,
        "pcie_tx_bytes_per_s": None,
        "pcie_rx_bytes_per_s": None,
    },
    ("nvmlDeviceGetFieldValues",): {},
}


@pytest.mark.parametrize("code", [NOT_SUPPORTED, TIMEOUT, UNKNOWN])
def test_each_field_is_refused_alone(start_nvml: Start, code: int) -> None:
    rig = start_nvml(two_cards())
    whole = rig.read("settled")["cards"]
    for functions, missing in REFUSALS.items():
        if code != NOT_SUPPORTED and "nvmlDeviceGetPcieThroughput" in functions:
            continue
        # Here the first listed card is also the first by bus, so that order holds where a bus is refused.
        rig.set(two_cards() | {f"1.return.{function}": code for function in functions} | {"0.bus": 1})
        rig.renew()
        cards = rig.read("settled")["cards"]
        assert cards[0] == whole[1] | {"index": 0}, functions
        assert cards[1] == whole[0] | {"index": 1} | missing, functions


def test_refused_for_good_is_not_asked_again_but_a_hiccup_is(start_nvml: Start) -> None:
    scenario = two_cards()
    rig = start_nvml(
        scenario | {"1.return.nvmlDeviceGetTemperature": NOT_SUPPORTED, "1.return.nvmlDeviceGetPowerUsage": TIMEOUT}
    )
    assert [rig.read()["cards"][0][field] for field in ("temp_c", "power_w")] == [None, None]
    rig.set(scenario)
    assert [rig.read()["cards"][0][field] for field in ("temp_c", "power_w")] == [None, 151.5]


def test_looking_does_not_wait_for_the_drivers_sampling(start_nvml: Start) -> None:
    closed = {"0.throughput.closed": 1, "1.throughput.closed": 1}
    rig = start_nvml(two_cards() | closed)
    for _ in range(3):
        # Answered while both samples are under way, and cannot end before the scenario changes.
        for card in rig.read()["cards"]:
            assert (card["temp_c"], card["pcie_source"], card["pcie_tx_bytes_per_s"]) == (61, "sample", None)
    rig.set(two_cards() | {"0.throughput.ms": 21, "1.throughput.ms": 21})
    rig.until(lambda report: all(card["pcie_rx_bytes_per_s"] == 3.4e9 for card in report["cards"]))


@pytest.mark.parametrize("bits", [32, 64])
def test_byte_counters_give_rates_although_they_wrap(start_nvml: Start, bits: int) -> None:
    # At 20 GB/s a 32-bit counter wraps five times a second.
    counters = {
        f"{i}.counters.{way}": speed for i in (0, 1) for way, speed in (("tx", 20_000_000_000), ("rx", 5_000_000))
    }
    rig = start_nvml(two_cards() | counters | {f"{i}.counters.bits": bits for i in (0, 1)})
    first = rig.read()["cards"]
    assert [card["pcie_source"] for card in first] == ["counters"] * 2
    # Nothing yet, or on a busy machine, where the meter was quicker, already the truth.
    assert all(card["pcie_tx_bytes_per_s"] in (None, pytest.approx(2e10, rel=0.1)) for card in first)

    def true(report: dict[str, Any]) -> bool:
        rates = [(card["pcie_tx_bytes_per_s"], card["pcie_rx_bytes_per_s"]) for card in report["cards"]]
        return all(tx == pytest.approx(2e10, rel=0.02) and rx == pytest.approx(5e6, rel=0.02) for tx, rx in rates)

    rig.until(true)
    # A recorder rests between two looks; what it measures then is right as well.
    rig.read("rest 0.4")
    rig.until(true)


def test_a_lost_card_is_a_row_and_comes_back(start_nvml: Start) -> None:
    rig = start_nvml(two_cards())
    rig.read("settled")
    rig.set(two_cards() | {"1.lost": 1})
    lost, well = rig.read()["cards"]
    assert (lost["uuid"], lost["temp_c"], lost["processes"]) == ("GPU-low", None, None)
    assert "fallen off the bus" in lost["problem"]
    assert (well["uuid"], well["temp_c"], well["problem"]) == ("GPU-high", 61, None)
    for _ in range(3):
        rig.advance(61)
        cards = rig.read()["cards"]
        assert [card["uuid"] for card in cards] == ["GPU-low", "GPU-high"]
        assert cards[0]["problem"] is not None
        assert cards[1]["problem"] is None
    rig.set(two_cards())
    rig.advance(61)
    assert [(card["index"], card["temp_c"], card["problem"]) for card in rig.read()["cards"]] == [
        (0, 61, None),
        (1, 61, None),
    ]


def test_a_card_that_is_no_longer_listed_keeps_its_row(start_nvml: Start) -> None:
    rig = start_nvml(two_cards())
    rig.read()
    # Only the card on the higher bus is left; the other one is gone from the list.
    rig.set({key: value for key, value in two_cards().items() if not key.startswith("1.")} | {"count": 1, "1.lost": 1})
    rig.read()
    rig.advance(61)
    low, high = rig.read()["cards"]
    assert (low["uuid"], high["uuid"], high["temp_c"]) == ("GPU-low", "GPU-high", 61)
    assert "does not list" in low["problem"]


def test_a_card_that_answers_unknown_to_everything_is_lost(start_nvml: Start) -> None:
    rig = start_nvml(two_cards())
    rig.read()
    names = {function for functions in REFUSALS for function in functions} | {
        "nvmlDeviceGetCurrentClocksThrottleReasons"
    }
    rig.set(two_cards() | {f"1.return.{name}": UNKNOWN for name in names})
    lost, well = rig.read()["cards"]
    assert "NVML says `Unknown Error`" in lost["problem"]
    assert well["problem"] is None


def test_a_card_that_tells_a_link_of_no_lanes_is_a_card_all_the_same(start_nvml: Start) -> None:
    report = start_nvml(two_cards() | {"1.width.max": 0, "1.width": 0}).read("settled")
    assert report["problem"] is None
    assert [card["problem"] for card in report["cards"]] == [None, None]
    assert sorted(card["pcie_width_max"] for card in report["cards"]) == [0, 8]
    assert len({card["vram_used_bytes"] for card in report["cards"]}) == 1


def test_what_nobody_foresaw_of_one_card_costs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        def sample(self, index: int, _ours: frozenset[int]) -> GpuSample:
            if index:
                raise ZeroDivisionError("float division by zero")
            return GpuSample(index=index, temp_c=61)

    source = NvmlSource(frozenset)
    cards: Any = Odd()
    monkeypatch.setattr(source, "_nvml", object())
    monkeypatch.setattr(source, "_slots", [_Slot((0, i, 0), "card", f"GPU-{i}", cards) for i in range(2)])
    well, odd = source.read().cards
    assert (well.problem, well.temp_c) == (None, 61)
    assert "makes no sense (ZeroDivisionError: float division by zero)" in (odd.problem or "")
    assert odd.uuid == "GPU-1"
