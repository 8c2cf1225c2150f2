"""What starts took, and what that says of the next one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from console.paths import Paths
from console.presets import Preset
from console.server.fingerprint import fingerprint
from console.server.progress import Moment, estimate
from console.server.starts import (
    COLD,
    WARM,
    Start,
    durations,
    keep_start,
    offsets,
    past_starts,
    starts_file,
    usual,
)
from console.server.startup import read_startup
from console.server.status import Phase
from tests.unit.log_cases import read_log

NOW = datetime(2026, 11, 29, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    (tmp_path / "state").mkdir()
    return Paths(tmp_path / "state", tmp_path / "config", tmp_path / "cache")


def start(cache: str | None, *, compiling: float = 10.0, of: str = "a") -> Start:
    phases = {Phase.START: 20.0, Phase.LOAD: 60.0, Phase.COMPILE: compiling, Phase.WARM_UP: 10.0}
    return Start("2026-11-29T12:00:00+00:00", of, "0.32.0", cache, sum(phases.values()), phases)


def test_a_history_is_kept_and_read_back(paths: Paths) -> None:
    assert past_starts(paths, "p") == ()
    keep_start(paths, "p", start(WARM))
    keep_start(paths, "p", start(COLD, compiling=300.0))
    assert past_starts(paths, "p") == (start(WARM), start(COLD, compiling=300.0))
    assert starts_file(paths, "p").stat().st_mode & 0o077 == 0


def test_a_history_is_bounded_and_torn_lines_are_left_out(paths: Paths) -> None:
    for _ in range(70):
        keep_start(paths, "p", start(WARM))
    assert len(past_starts(paths, "p")) <= 61
    path = starts_file(paths, "p")
    path.write_text("{\n[]\n7\n" + path.read_text().splitlines()[0] + '\n{"schema": 99}\n')
    assert past_starts(paths, "p") == (start(WARM),)
    path.write_bytes(b"\xff\x00")
    assert past_starts(paths, "p") == ()


def test_cold_and_warm_are_kept_apart() -> None:
    past = [start(COLD, compiling=300.0), start(WARM), start(WARM, compiling=14.0)]
    warm, cold = usual(past, "a", WARM, known=True), usual(past, "a", COLD, known=True)
    assert warm is not None
    assert cold is not None
    assert (warm.phases[Phase.COMPILE], warm.count) == (12.0, 2)
    assert (cold.phases[Phase.COMPILE], cold.count) == (300.0, 1)
    # Before the log has told, a start is taken to find the cache as the last one left it.
    assert usual(past, "a", None, known=False) == warm
    first = usual(past[:1], "a", None, known=False)
    assert first is not None
    assert first.cache == COLD


def test_other_settings_count_only_where_there_is_nothing_better() -> None:
    past = [start(WARM, compiling=99.0, of="b"), start(WARM)]
    same, other = usual(past, "a", WARM, known=True), usual(past[:1], "a", WARM, known=True)
    assert same is not None
    assert other is not None
    assert (same.phases[Phase.COMPILE], other.phases[Phase.COMPILE]) == (10.0, 99.0)
    assert usual([], "a", WARM, known=True) is None


def test_progress_runs_to_the_end() -> None:
    past = usual([start(WARM)], "a", WARM, known=True)
    begun = {Phase.LOAD: 20.0, Phase.COMPILE: 80.0, Phase.WARM_UP: 90.0}
    seen = []
    for phase, at in ((Phase.START, 0.0), (Phase.LOAD, 25.0), (Phase.COMPILE, 82.0), (Phase.WARM_UP, 95.0)):
        found = estimate(Moment(phase, at, begun), past)
        assert found is not None
        seen.append((round(found.eta_s), round(found.progress, 2)))
    assert seen == [(100, 0.0), (75, 0.25), (18, 0.82), (5, 0.95)]


def test_a_phase_that_takes_longer_does_not_count_below_zero() -> None:
    past = usual([start(WARM)], "a", WARM, known=True)
    found = estimate(Moment(Phase.LOAD, 400.0, {Phase.LOAD: 20.0}), past)
    assert found is not None
    assert found.eta_s == 20.0
    assert found.progress < 1


def test_the_share_of_the_weights_says_more_than_the_clock() -> None:
    past = usual([start(WARM)], "a", WARM, known=True)
    slow = estimate(Moment(Phase.LOAD, 120.0, {Phase.LOAD: 20.0}, share=0.5), past)
    assert slow is not None
    assert slow.eta_s == pytest.approx(100.0 + 20.0)


def test_a_download_without_a_size_has_no_eta() -> None:
    past = usual([start(WARM)], "a", WARM, known=True)
    assert estimate(Moment(Phase.DOWNLOAD, 50.0, {}), past) is None
    found = estimate(Moment(Phase.DOWNLOAD, 50.0, {}, download_s=200.0), past)
    assert found is not None
    assert found.eta_s == 200.0 + 60.0 + 20.0


def test_nothing_known_is_no_figure() -> None:
    assert estimate(Moment(Phase.LOAD, 5.0, {}), None) is None


def test_phases_of_a_real_log_in_seconds() -> None:
    reader = read_startup(read_log("real/tp2-mtp-ok.log"))
    first = reader.entered[Phase.LOAD]
    local = datetime.strptime(f"2026-{first}", "%Y-%m-%d %H:%M:%S").astimezone()
    begun = offsets(reader.entered, local - timedelta(seconds=12), local + timedelta(seconds=40))
    took = durations(begun, 30.0)
    assert took[Phase.START] == pytest.approx(12.0)
    assert sum(took.values()) == pytest.approx(30.0)
    assert list(took) == [phase for phase in Phase if phase in took]


def test_stamps_of_another_clock_are_left_out() -> None:
    local = NOW.astimezone(timezone(timedelta(0)))
    stamp = local.astimezone().strftime("%m-%d %H:%M:%S")
    far = (local - timedelta(hours=3)).astimezone().strftime("%m-%d %H:%M:%S")
    entered = {Phase.LOAD: stamp, Phase.COMPILE: far, Phase.KV_CACHE: "02-31 99:00:00"}
    assert set(offsets(entered, NOW - timedelta(seconds=30), NOW)) == {Phase.LOAD}


def test_a_start_over_new_year_has_no_negative_phase() -> None:
    started = datetime(2026, 12, 31, 23, 59, 50).astimezone()
    entered = {Phase.LOAD: "12-31 23:59:58", Phase.COMPILE: "01-01 00:00:10"}
    begun = offsets(entered, started, started + timedelta(seconds=60))
    assert begun == {Phase.LOAD: 8.0, Phase.COMPILE: 20.0}


def test_the_fingerprint_is_of_what_runs() -> None:
    preset = Preset(
        name="a", model="m", args={"max-model-len": 8}, env={"K": "1", "KEY": "s"}, secrets=frozenset({"KEY"})
    )
    same = Preset(
        name="b", model="m", args={"max-model-len": 8}, env={"K": "1", "KEY": "t"}, secrets=frozenset({"KEY"})
    )
    assert fingerprint(preset) == fingerprint(same.with_port(1))
    assert fingerprint(preset) != fingerprint(same.with_env(K="2"))
