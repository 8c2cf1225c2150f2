"""The fault table's own machinery, on the stand-in engine: a row that breaks off is told, and the others go on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.bench.document import ROOT
from tests.console_process import home_of_the_command
from tests.engine.fault_bench import NOTHING, Bench, Row
from tests.engine.fault_rows import ROWS
from tests.engine.fault_table import main, markdown, problems, run
from tests.engine.install import Engine


def stand_in(folder: Path) -> Engine:
    """An engine whose `vllm serve` is the stand-in."""
    command = folder / "bin" / "vllm"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} -P -m console.sim "$@"\n')
    command.chmod(0o755)
    found = Engine(folder)
    found.model.mkdir()
    return found


def breaks_off(bench: Bench) -> str:
    """Leaves a server behind, and says nothing."""
    bench.running()
    raise AssertionError(f"in {bench.folder} something was not as it should be")


def row(name: str) -> Row:
    (found,) = (one for one in ROWS if one.id == name)
    return found


def test_a_row_that_breaks_off_is_told_and_the_others_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path, stand_in(tmp_path / "engine"), each=True)
    bench.console.env["QWEN_CONSOLE_SIM_START_S"] = "0.3"
    done = run([Row("broken", "none", "it breaks off", breaks_off), row("keeper-killed"), row("pid-reused")], bench)
    broken, *others = [outcome for _, outcome in done]
    assert broken.failure == "AssertionError: in … something was not as it should be"
    assert not broken.ok
    assert [(outcome.ok, outcome.left, outcome.next_up[:8]) for outcome in others] == [(True, NOTHING, "ready in")] * 2
    assert problems(done) == [f"broken did not come to its end: {broken.failure}"]
    table = markdown(done).splitlines()
    assert table[-3].startswith("| it breaks off | **FAILS** AssertionError")
    assert "**FAILS**" not in table[-2] + table[-1]
    assert bench.console.processes() == []


def test_a_table_tells_of_the_checkout_that_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert home_of_the_command() == ROOT
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.bench.document.ROOT", Path("/elsewhere"))
        assert main(["pid-reused"]) == 2
    assert "the table would name the commit of /elsewhere" in capsys.readouterr().err


def test_rows_have_names_of_their_own_and_a_wrong_one_is_said() -> None:
    assert len({one.id for one in ROWS}) == len(ROWS)
    assert main(["no-such-row"]) == 2
    assert main(["--list"]) == 0
