"""The long table of figures against the truth; see tests/bench/truth_table.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.truth_table import measure
from tests.contract.vllm_names import DATA, in_folder, metrics
from tests.engine.install import Engine
from tests.unit.test_metrics_names import table

pytestmark = [pytest.mark.engine]


@pytest.mark.full
def test_every_figure_is_right(tmp_path: Path) -> None:
    off = [row for phases in measure(tmp_path).values() for row in phases.rows if not row.good]
    assert off == []


@pytest.mark.core
def test_the_recorded_names_are_those_of_the_installed_engine(real_engine: Engine) -> None:
    (packages,) = (real_engine.folder / "lib").glob("python3*/site-packages")
    version = real_engine.folder.name.rpartition("-")[2]
    assert (DATA / f"names-{version}.yaml").is_file()
    assert metrics(in_folder(packages)) == table(version)
