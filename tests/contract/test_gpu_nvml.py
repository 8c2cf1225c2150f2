"""The cards through the real `nvidia-ml-py` on a library with NVML's ABI."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console_process import Console
from tests.contract.nvml.rig import CARD, Rig, build, two_cards, write

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is not installed: it builds the NVML of the tests"
)

NOT_SUPPORTED, TIMEOUT, LOST, UNKNOWN = 3, 10, 15, 999
PAIR = {"a": 0, "b": 1, "p2p": False, "p2p_status": "chipset not supported", "nvlink": False, "path": "PHB"}
Start = Callable[[dict[str, object]], Rig]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def start(library: Path, tmp_path: Path) -> Iterator[Start]:
    rigs: list[Rig] = []

    def begin(scenario: dict[str, object]) -> Rig:
        rig = Rig(library, tmp_path / "scenario")
        rigs.append(rig)
        rig.set(scenario)
        return rig

    yield begin
    for rig in rigs:
        rig.close()


def test_two_healthy_cards_read_as_they_are(start: Start) -> None:
    report = start(two_cards()).read("settled")
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
def test_each_field_is_refused_alone(start: Start, code: int) -> None:
    rig = start(two_cards())
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


def test_refused_for_good_is_not_asked_again_but_a_hiccup_is(start: Start) -> None:
    scenario = two_cards()
    rig = start(
        scenario | {"1.return.nvmlDeviceGetTemperature": NOT_SUPPORTED, "1.return.nvmlDeviceGetPowerUsage": TIMEOUT}
    )
    assert [rig.read()["cards"][0][field] for field in ("temp_c", "power_w")] == [None, None]
    rig.set(scenario)
    assert [rig.read()["cards"][0][field] for field in ("temp_c", "power_w")] == [None, 151.5]


def test_looking_does_not_wait_for_the_drivers_sampling(start: Start) -> None:
    closed = {"0.throughput.closed": 1, "1.throughput.closed": 1}
    rig = start(two_cards() | closed)
    for _ in range(3):
        # Answered while both samples are under way, and cannot end before the scenario changes.
        for card in rig.read()["cards"]:
            assert (card["temp_c"], card["pcie_source"], card["pcie_tx_bytes_per_s"]) == (61, "sample", None)
    rig.set(two_cards() | {"0.throughput.ms": 21, "1.throughput.ms": 21})
    rig.until(lambda report: all(card["pcie_rx_bytes_per_s"] == 3.4e9 for card in report["cards"]))


@pytest.mark.parametrize("bits", [32, 64])
def test_byte_counters_give_rates_although_they_wrap(start: Start, bits: int) -> None:
    # At 20 GB/s a 32-bit counter wraps five times a second.
    counters = {
        f"{i}.counters.{way}": speed for i in (0, 1) for way, speed in (("tx", 20_000_000_000), ("rx", 5_000_000))
    }
    rig = start(two_cards() | counters | {f"{i}.counters.bits": bits for i in (0, 1)})
    first = rig.read()["cards"]
    assert [(card["pcie_source"], card["pcie_tx_bytes_per_s"]) for card in first] == [("counters", None)] * 2

    def true(report: dict[str, Any]) -> bool:
        rates = [(card["pcie_tx_bytes_per_s"], card["pcie_rx_bytes_per_s"]) for card in report["cards"]]
        return all(tx == pytest.approx(2e10, rel=0.02) and rx == pytest.approx(5e6, rel=0.02) for tx, rx in rates)

    rig.until(true)
    # A recorder rests between two looks; what it measures then is right as well.
    rig.read("rest 0.4")
    rig.until(true)


def test_a_lost_card_is_a_row_and_comes_back(start: Start) -> None:
    rig = start(two_cards())
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


def test_a_card_that_is_no_longer_listed_keeps_its_row(start: Start) -> None:
    rig = start(two_cards())
    rig.read()
    # Only the card on the higher bus is left; the other one is gone from the list.
    rig.set({key: value for key, value in two_cards().items() if not key.startswith("1.")} | {"count": 1, "1.lost": 1})
    rig.read()
    rig.advance(61)
    low, high = rig.read()["cards"]
    assert (low["uuid"], high["uuid"], high["temp_c"]) == ("GPU-low", "GPU-high", 61)
    assert "does not list" in low["problem"]


def test_a_card_that_answers_unknown_to_everything_is_lost(start: Start) -> None:
    rig = start(two_cards())
    rig.read()
    names = {function for functions in REFUSALS for function in functions} | {
        "nvmlDeviceGetCurrentClocksThrottleReasons"
    }
    rig.set(two_cards() | {f"1.return.{name}": UNKNOWN for name in names})
    lost, well = rig.read()["cards"]
    assert "NVML says `Unknown Error`" in lost["problem"]
    assert well["problem"] is None


@pytest.mark.parametrize(
    ("code", "words"),
    [(18, "reboot"), (9, "modprobe"), (4, "permissions"), (999, "nvidia-smi"), (12, "install the driver")],
)
def test_a_library_that_does_not_start_is_a_sentence(start: Start, code: int, words: str) -> None:
    rig = start(two_cards() | {"return.nvmlInitWithFlags": code})
    report = rig.read()
    assert report["cards"] == []
    assert words in report["problem"]
    rig.set(two_cards())
    assert rig.read()["cards"] == []
    rig.advance(61)
    assert len(rig.read()["cards"]) == 2


@pytest.mark.parametrize("code", [1, 18])
def test_a_library_that_fails_later_is_started_again(start: Start, code: int) -> None:
    rig = start(two_cards())
    rig.read()
    rig.set(two_cards() | {"return.any": code})
    assert all(card["problem"] for card in rig.read()["cards"])
    rig.set(two_cards())
    rig.advance(61)
    assert [card["problem"] for card in rig.read()["cards"]] == [None, None]


def test_status_tells_the_scenario(library: Path, tmp_path: Path, own_folders: Path) -> None:
    write(tmp_path / "scenario", two_cards())
    env = {
        "XDG_STATE_HOME": str(own_folders / "state"),
        "LD_LIBRARY_PATH": str(library),
        "NVML_SCENARIO": str(tmp_path / "scenario"),
        "CUDA_VISIBLE_DEVICES": "GPU-low",
    }
    whole = Console(env).status()
    assert whole["gpus_problem"] is None
    assert whole["gpus_system"] == {
        "driver": "580.65.06",
        "cuda": "13.0",
        "pairs": [PAIR],
        "note": None,
    }
    assert [(card["uuid"], card["visible"]) for card in whole["gpus"]] == [("GPU-low", True), ("GPU-high", False)]
    for card in whole["gpus"]:
        assert (card["source"], card["pcie_source"], card["pcie_tx_bytes_per_s"]) == ("nvml", "sample", 1.2e9)
        assert (card["vram_used_bytes"], card["vram_free_bytes"]) == (15_000_000_000, 1_703_323_136)
        assert [process["pid"] for process in card["processes"]] == [77, 900, 4242]
    text = Console(env)("status").out
    assert "driver 580.65.06" in text
    assert "outside CUDA_VISIBLE_DEVICES" in text

    write(tmp_path / "scenario", two_cards() | {"1.lost": 1})
    well, lost = sorted(Console(env).status()["gpus"], key=lambda card: card["problem"] is not None)
    assert "fallen off the bus" in lost["problem"]
    assert (well["problem"], well["temp_c"]) == (None, 61)
    write(tmp_path / "scenario", two_cards() | {"return.nvmlInitWithFlags": 18})
    assert "reboot" in Console(env).status()["gpus_problem"]


def test_pairs_by_the_worse_of_both_ways_and_unknown_alone(start: Start) -> None:
    rig = start(two_cards() | {"p2p.0.1": 0, "p2p.1.0": 0, "nvlink.0.1": 0, "nvlink.1.0": 0, "path.0.1": 50})
    (pair,) = rig.read()["pairs"]
    assert (pair["p2p"], pair["p2p_status"], pair["nvlink"]) == (True, "ok", True)
    assert pair["path"] in ("SYS", "PHB")
    rig.set(two_cards() | {"p2p.0.1": 0, "p2p.1.0": 4})
    rig.renew()
    (pair,) = rig.read()["pairs"]
    assert (pair["p2p"], pair["p2p_status"]) == (False, "disabled by regkey")
    rig.set({key: value for key, value in two_cards().items() if not key.startswith(("p2p", "nvlink", "path", "cuda"))})
    rig.renew()
    report = rig.read()
    assert report["pairs"] == [{"a": 0, "b": 1, "p2p": None, "p2p_status": None, "nvlink": None, "path": None}]
    assert (report["driver"], report["cuda"]) == ("580.65.06", None)


def test_what_changes_by_hand_only_is_asked_less_often(start: Start) -> None:
    rig = start(two_cards())
    assert rig.read()["cards"][0]["display"] is False
    rig.set(two_cards() | {"1.desktop": 1, "1.temperature": 70, "1.persistence": 0})
    card = rig.read()["cards"][0]
    assert (card["display"], card["persistence"], card["temp_c"]) == (False, True, 70)
    rig.advance(11)
    card = rig.read()["cards"][0]
    assert (card["display"], card["persistence"]) == (True, False)


def test_mig_is_a_sentence_and_its_refusals_are_unknown(start: Start) -> None:
    refused = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses_v3")
    rig = start(two_cards() | {"1.mig": 1} | {f"1.return.{name}": NOT_SUPPORTED for name in refused})
    divided, whole = rig.read()["cards"]
    assert divided["note"].startswith("MIG is on")
    assert (divided["util"], divided["problem"], divided["temp_c"]) == (None, None, 61)
    assert whole["note"] is None


def test_wsl_is_a_sentence_and_its_sentinels_are_unknown(start: Start) -> None:
    rig = start(
        two_cards() | {f"{i}.compute": f"4242:{2**64 - 1}" for i in (0, 1)} | {"0.graphics": "", "1.graphics": ""}
    )
    rig.read("kernel 5.15.167.4-microsoft-standard-WSL2")
    report = rig.read()
    assert "WSL" in report["note"]
    assert [card["processes"] for card in report["cards"]] == [[{"pid": 4242, "vram_bytes": None, "ours": True}]] * 2


def test_no_card_is_a_sentence(start: Start) -> None:
    report = start({"count": 0}).read()
    assert report["cards"] == []
    assert "sees no card" in report["problem"]


def test_sentinels_are_not_numbers(start: Start) -> None:
    wide, narrow = 2**64 - 1, 2**32 - 1
    fields = (
        "temperature",
        "power",
        "limit",
        "limit.set",
        "clock.sm",
        "clock.mem",
        "numa",
        "gen",
        "gen.max",
        "width",
        "width.max",
        "replays",
    )
    rates = ("util.gpu", "util.memory", "throughput.tx", "throughput.rx")
    scenario = two_cards() | {f"1.{field}": narrow for field in (*fields, *rates)}
    scenario |= {f"1.memory.{field}": wide for field in ("total", "used", "reserved", "free")}
    scenario |= {f"1.{switch}": narrow for switch in ("persistence", "display", "desktop")}
    scenario |= {"1.compute": f"4242:{wide} {narrow}:5", "1.graphics": "", "1.reasons": wide}
    card = start(scenario).read()["cards"][0]
    assert card["processes"] == [{"pid": 4242, "vram_bytes": None, "ours": True}]
    known = {name: value for name, value in card.items() if isinstance(value, int | float) and name != "index"}
    assert known == {}
    assert card["throttle"] is None


def test_without_the_library_there_is_a_sentence(tmp_path: Path) -> None:
    # An empty file stands before any driver this machine may have, and no loader takes it.
    (tmp_path / "libnvidia-ml.so.1").touch()
    rig = Rig(tmp_path, tmp_path / "scenario")
    report = rig.read()
    rig.close()
    assert report["cards"] == []
    assert "install the driver" in report["problem"]
