"""When a crashed server is started again, and when not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.paths import Paths
from console.server.process import Identity
from console.server.revival import (
    A_DAY,
    DELAYS_S,
    SERVICE_S,
    Decision,
    Revival,
    decide,
    read_revival,
    recent,
    revival_path,
    write_revival,
)
from console.server.status import Diagnosis, Phase

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def crash(restarts: int, *, was_ready: bool = True, served_s: float = 5.0, times: int = 0) -> Decision:
    past = [(NOW - timedelta(hours=1)).isoformat()] * times
    return decide(restarts, was_ready=was_ready, served_s=served_s, times=past, now=NOW)


def test_each_crash_in_a_row_waits_longer_and_the_fourth_is_the_last() -> None:
    assert [crash(n).delay_s for n in range(3)] == list(DELAYS_S)
    assert sorted(DELAYS_S) == list(DELAYS_S)
    assert crash(3).delay_s is None
    assert "3 times in a row" in crash(3).why


def test_a_start_that_never_was_ready_is_not_repeated_but_a_restart_is() -> None:
    assert crash(0, was_ready=False).delay_s is None
    assert crash(1, was_ready=False).delay_s == DELAYS_S[1]


def test_long_service_begins_a_new_row() -> None:
    assert crash(3, served_s=SERVICE_S).attempt == 1
    assert crash(3, served_s=SERVICE_S, was_ready=False).delay_s is None


def test_there_is_a_limit_for_a_day_too() -> None:
    assert crash(0, served_s=SERVICE_S, times=A_DAY - 1).delay_s is not None
    given_up = crash(0, served_s=SERVICE_S, times=A_DAY)
    assert given_up.delay_s is None
    assert "within a day" in given_up.why


def test_old_and_unreadable_times_are_forgotten() -> None:
    kept = (NOW - timedelta(hours=23)).isoformat()
    assert recent([kept, (NOW - timedelta(hours=25)).isoformat(), "yesterday"], NOW) == (kept,)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path, tmp_path, tmp_path)


def test_it_is_kept_and_read_back(paths: Paths) -> None:
    diagnosis = Diagnosis("oom", "w", "y", "f", ("line",), Phase.READY)
    revival = Revival("a", Identity(1, 2, "b"), "p", 1, 7.5, "oom, start 1", diagnosis, ("t",))
    write_revival(paths, revival)
    assert read_revival(paths) == revival
    assert not revival.pending, "whoever promised it does not live"


@pytest.mark.parametrize("torn", ["", "{", "[]", '{"schema": 1}', '{"schema": 1, "by": [1]}'])
def test_a_torn_file_promises_nothing(paths: Paths, torn: str) -> None:
    revival_path(paths).write_text(torn)
    assert read_revival(paths) is None
