"""Cards for the tests that look at them: a library with NVML's ABI, and processes that look through it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.nvml.rig import Rig, Start, build


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def start_nvml(nvml_library: Path, tmp_path: Path) -> Iterator[Start]:
    rigs: list[Rig] = []

    def begin(scenario: dict[str, object]) -> Rig:
        rig = Rig(nvml_library, tmp_path / "scenario")
        rigs.append(rig)
        rig.set(scenario)
        return rig

    yield begin
    for rig in rigs:
        rig.close()
