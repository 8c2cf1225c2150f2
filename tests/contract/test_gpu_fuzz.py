"""Scenarios at random through the real `nvidia-ml-py`: every card keeps its row, and no number is invented."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.nvml.rig import Rig, build, two_cards

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None, reason="gcc is not installed: it builds the NVML of the tests"
)

# What a key of the scenario becomes on the report.
SHOWN: dict[str, tuple[str, float]] = {
    "memory.total": ("vram_total_bytes", 1),
    "memory.reserved": ("vram_reserved_bytes", 1),
    "util.gpu": ("util", 100),
    "util.memory": ("mem_util", 100),
    "temperature": ("temp_c", 1),
    "power": ("power_w", 1000),
    "clock.sm": ("sm_clock_mhz", 1),
    "clock.mem": ("mem_clock_mhz", 1),
    "gen": ("pcie_gen", 1),
    "gen.max": ("pcie_gen_max", 1),
    "width": ("pcie_width", 1),
    "replays": ("pcie_replays", 1),
    "numa": ("numa_node", 1),
}
ODD = st.sampled_from((0, 1, 50, 101, 2**31 - 1, 2**32 - 1, 2**64 - 1))
CHANGE = st.tuples(st.sampled_from((0, 1)), st.sampled_from(sorted(SHOWN)), ODD | st.none())
REFUSAL = st.tuples(
    st.sampled_from((0, 1)),
    st.sampled_from(
        (
            "nvmlDeviceGetName",
            "nvmlDeviceGetUUID",
            "nvmlDeviceGetMemoryInfo_v2",
            "nvmlDeviceGetUtilizationRates",
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetFieldValues",
            "nvmlDeviceGetPcieThroughput",
            "nvmlDeviceGetP2PStatus",
            "nvmlDeviceGetMigMode",
            "nvmlDeviceGetDisplayMode",
        )
    ),
    st.sampled_from((1, 2, 3, 4, 9, 10, 13, 15, 16, 18, 999)),
)


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("fuzz")
    rig = Rig(build(folder), folder / "scenario")
    yield rig
    rig.close()


def scenario_of(changes: list[tuple[int, str, int | None]], refusals: list[tuple[int, str, int]]) -> dict[str, object]:
    scenario = two_cards()
    for card, key, value in changes:
        if value is None:
            scenario.pop(f"{card}.{key}", None)
        else:
            scenario[f"{card}.{key}"] = value
    return scenario | {f"{card}.return.{function}": code for card, function, code in refusals}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(CHANGE, max_size=8), st.lists(REFUSAL, max_size=3))
def test_any_scenario(
    rig: Rig, changes: list[tuple[int, str, int | None]], refusals: list[tuple[int, str, int]]
) -> None:
    scenario = scenario_of(changes, refusals)
    rig.set(scenario)
    rig.renew()
    report = rig.read()
    assert len(report["cards"]) == 2
    assert report["problem"] is None
    for card in report["cards"]:
        if card["problem"]:
            continue
        # Bus 33 is listed first and sits higher.
        whose = 0 if card["uuid"] == "GPU-high" else 1 if card["uuid"] == "GPU-low" else None
        for key, (name, unit) in SHOWN.items():
            allowed = {scenario.get(f"{i}.{key}") for i in (0, 1) if whose in (None, i)}
            known = {None} | {value / unit for value in allowed if isinstance(value, int)}
            assert card[name] in known, (name, card[name], known)
        ratios = (card["util"], card["mem_util"])
        assert all(ratio is None or 0 <= ratio <= 1 for ratio in ratios)
        used, total, free = card["vram_used_bytes"], card["vram_total_bytes"], card["vram_free_bytes"]
        assert total is None or all(part is None or part <= total for part in (used, free))
        assert card["pcie_tx_bytes_per_s"] in (None, 1.2e9)
