"""The driver as a whole, and what cards have in common, through the real `nvidia-ml-py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.console_process import Console
from tests.contract.nvml.rig import Rig, Start, two_cards, write

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is not installed: it builds the NVML of the tests"
)

NOT_SUPPORTED = 3
PAIR = {"a": 0, "b": 1, "p2p": False, "p2p_status": "chipset not supported", "nvlink": False, "path": "PHB"}


@pytest.mark.parametrize(
    ("code", "words"),
    [(18, "reboot"), (9, "modprobe"), (4, "permissions"), (999, "nvidia-smi"), (12, "install the driver")],
)
def test_a_library_that_does_not_start_is_a_sentence(start_nvml: Start, code: int, words: str) -> None:
    rig = start_nvml(two_cards() | {"return.nvmlInitWithFlags": code})
    report = rig.read()
    assert report["cards"] == []
    assert words in report["problem"]
    rig.set(two_cards())
    assert rig.read()["cards"] == []
    rig.advance(61)
    assert len(rig.read()["cards"]) == 2


@pytest.mark.parametrize("code", [1, 18])
def test_a_library_that_fails_later_is_started_again(start_nvml: Start, code: int) -> None:
    rig = start_nvml(two_cards())
    rig.read()
    rig.set(two_cards() | {"return.any": code})
    assert all(card["problem"] for card in rig.read()["cards"])
    rig.set(two_cards())
    rig.advance(61)
    assert [card["problem"] for card in rig.read()["cards"]] == [None, None]


def test_status_tells_the_scenario(nvml_library: Path, tmp_path: Path, own_folders: Path) -> None:
    write(tmp_path / "scenario", two_cards())
    env = {
        "XDG_STATE_HOME": str(own_folders / "state"),
        "LD_LIBRARY_PATH": str(nvml_library),
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


def test_a_driver_that_hangs_does_not_hang_the_console(nvml_library: Path, tmp_path: Path, own_folders: Path) -> None:
    write(tmp_path / "scenario", two_cards() | {"1.hangs": 1})
    env = {
        "XDG_STATE_HOME": str(own_folders / "state"),
        "LD_LIBRARY_PATH": str(nvml_library),
        "NVML_SCENARIO": str(tmp_path / "scenario"),
    }
    whole = Console(env)("status", "--json", timeout=60).json
    assert whole["gpus"] == []
    assert "has not answered" in whole["gpus_problem"]
    assert whole["server"]["state"] == "stopped"


def test_pairs_by_the_worse_of_both_ways_and_unknown_alone(start_nvml: Start) -> None:
    rig = start_nvml(two_cards() | {"p2p.0.1": 0, "p2p.1.0": 0, "nvlink.0.1": 0, "nvlink.1.0": 0, "path.0.1": 50})
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


def test_what_changes_by_hand_only_is_asked_less_often(start_nvml: Start) -> None:
    rig = start_nvml(two_cards())
    assert rig.read()["cards"][0]["display"] is False
    rig.set(two_cards() | {"1.desktop": 1, "1.temperature": 70, "1.persistence": 0})
    card = rig.read()["cards"][0]
    assert (card["display"], card["persistence"], card["temp_c"]) == (False, True, 70)
    rig.advance(11)
    card = rig.read()["cards"][0]
    assert (card["display"], card["persistence"]) == (True, False)


def test_mig_is_a_sentence_and_its_refusals_are_unknown(start_nvml: Start) -> None:
    refused = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetComputeRunningProcesses_v3")
    rig = start_nvml(two_cards() | {"1.mig": 1} | {f"1.return.{name}": NOT_SUPPORTED for name in refused})
    divided, whole = rig.read()["cards"]
    assert divided["note"].startswith("MIG is on")
    assert (divided["util"], divided["problem"], divided["temp_c"]) == (None, None, 61)
    assert whole["note"] is None


def test_wsl_is_a_sentence_and_its_sentinels_are_unknown(start_nvml: Start) -> None:
    rig = start_nvml(
        two_cards() | {f"{i}.compute": f"4242:{2**64 - 1}" for i in (0, 1)} | {"0.graphics": "", "1.graphics": ""}
    )
    rig.read("kernel 5.15.167.4-microsoft-standard-WSL2")
    report = rig.read()
    assert "WSL" in report["note"]
    assert [card["processes"] for card in report["cards"]] == [[{"pid": 4242, "vram_bytes": None, "ours": True}]] * 2


def test_no_card_is_a_sentence(start_nvml: Start) -> None:
    report = start_nvml({"count": 0}).read()
    assert report["cards"] == []
    assert "sees no card" in report["problem"]


def test_sentinels_are_not_numbers(start_nvml: Start) -> None:
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
    card = start_nvml(scenario).read()["cards"][0]
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
