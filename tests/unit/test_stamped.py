"""Which run or log is the newest, whatever the clock has shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from console.lab.control import find_run
from console.paths import Paths
from console.server.log import KEPT, new_log
from console.stamped import oldest_first
from console.tui.runs import Runs


def stamp(days: float, tail: str = "-aa") -> str:
    return (datetime.now(UTC) + timedelta(days=days)).strftime("%Y%m%d-%H%M%S") + tail


def test_what_was_made_while_the_clock_stood_ahead_is_the_oldest() -> None:
    names = [stamp(10), stamp(-1), stamp(-2), stamp(11), "20200101T000000.000Z-p.log", "note"]
    assert oldest_first(names) == [names[0], names[3], names[4], names[2], names[1], "note"]
    assert oldest_first([stamp(0), stamp(-0.1)])[-1] == stamp(0)


def test_the_newest_run_is_the_one_made_last() -> None:
    paths = Paths.from_env()
    paths.make()
    old, new = stamp(10), stamp(-0.5, "-mtp")
    for name in (old, new):
        paths.run(name).mkdir()
        (paths.run(name) / "plan.json").write_text("{}")
    assert find_run(paths).name == new
    assert [run.id for run in Runs(paths).listed()] == [new, old]


def test_logs_of_a_clock_that_stood_ahead_go_first(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path, tmp_path)
    paths.make()
    last = new_log(paths, "last")
    last.touch()
    for minute in range(KEPT):
        (paths.logs / f"29991231T00{minute:02}00.000Z-p.log").touch()
    new_log(paths, "next")
    assert last.exists()
    assert len(list(paths.logs.iterdir())) == KEPT - 1
