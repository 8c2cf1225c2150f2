"""The fault table: nothing is left running, and the next start works."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.engine.fault_bench import Bench
from tests.engine.fault_rows import ROWS
from tests.engine.fault_table import impossible, problems, run
from tests.engine.install import Engine

pytestmark = [pytest.mark.engine, pytest.mark.usefixtures("own_folders")]
MOST_BOOTS = 7


@pytest.mark.core
@pytest.mark.timeout(1500)
def test_one_row_of_each_kind(real_engine: Engine, tmp_path: Path) -> None:
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert {row.kind for row in ROWS if row.core} == {row.kind for row in ROWS}
    bench = Bench(tmp_path, real_engine)
    done = run([row for row in ROWS if row.core], bench)
    assert problems(done) == []
    assert bench.boots <= MOST_BOOTS


@pytest.mark.full
@pytest.mark.sshd
@pytest.mark.timeout(7200)
def test_every_row(real_engine: Engine, tmp_path: Path) -> None:
    for name, why in impossible().items():
        pytest.skip(f"{name}: {why}")
    assert problems(run(ROWS, Bench(tmp_path, real_engine))) == []
