"""The ground floor: units, series, paths, addresses."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from console import units
from console.endpoint import is_loopback, normal_url
from console.errors import BusyError, ConsoleError, Exit, NothingError, UsageError
from console.paths import Paths
from console.series import Series


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (units.seconds(None), "n/a"),
        (units.seconds(0.0), "0.00 ms"),
        (units.seconds(0.0084), "8.40 ms"),
        (units.seconds(0.042), "42.0 ms"),
        (units.seconds(0.184), "184 ms"),
        (units.seconds(1.32), "1.32 s"),
        (units.seconds(124.6), "124.6 s"),
        (units.bounds(0.0, 0.01), "<10.0 ms"),
        (units.bounds(0.3, 0.5), "300-500 ms"),
        (units.bounds(0.01, 0.025), "10.0-25.0 ms"),
        (units.bounds(0.49, 2.2), "0.49-2.20 s"),
        (units.bounds(0.004, 2.2), "0.004-2.20 s"),
        (units.bounds(4.0, 12.5), "4.00-12.5 s"),
        (units.bounds(640.0, None), ">640.0 s"),
        (units.gib(16 * 1024**3), "16.00 GiB"),
        (units.rate(7.4e9), "7.4 GB/s"),
        (units.rate(0), "0 B/s"),
        (units.percent(0.0), "0.0 %"),
        (units.percent(None), "n/a"),
        (units.count(883_011), "883K"),
        (units.count(1600), "1,600"),
        (units.duration(8.4), "8 s"),
        (units.duration(125), "2m05s"),
        (units.took(5.84), "5.8 s"),
        (units.took(125), "2m05s"),
        (units.took(None), "n/a"),
        (units.duration(90061), "1d01h"),
        (units.change(0.48), "-52.0 %"),
        (units.change(0.9996), "0.0 %"),
        (units.change(0.9994), "-0.1 %"),
        (units.per_second(33.5), "33.5 tok/s"),
        (units.per_second(952.5), "952 tok/s"),
    ],
)
def test_numbers_print_one_way(shown: str, text: str) -> None:
    assert shown == text


def test_a_moment_is_told_on_the_clock_of_this_machine_with_its_day_once_that_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    now = 1_764_450_000.0  # 23:00 there
    assert units.local_moment("2025-11-29T20:59:58.250+00:00", now) == "22:59:58"
    assert units.local_moment("2025-11-28T21:30:00.000+00:00", now) == "2025-11-28 23:30"
    for odd in (None, "", "yesterday", "2025-13-41T00:00:00+00:00"):
        assert units.local_moment(odd, now) == "n/a"


def test_a_series_is_bounded_and_keeps_gaps() -> None:
    series = Series(capacity=3)
    assert series.last is None
    for at, value in enumerate([1.0, 5.0, None, 2.0]):
        series.add(at, value)
    assert len(series) == 3
    assert series.values(3) == [5.0, None, 2.0]
    assert series.peak() == 5.0
    assert series.peak(1) == 2.0


def test_a_series_is_thinned_for_a_day_and_gaps_stay_gaps() -> None:
    series = Series()
    for second in range(60, 180):
        series.add(float(second), None if second < 120 else float(second % 10))
    series.add(360.0, 1.0)  # nobody looked for three minutes
    assert series.minutes == [
        (60.0, None, None, None),
        (120.0, 4.5, 0.0, 9.0),
        (180.0, None, None, None),
        (240.0, None, None, None),
        (300.0, None, None, None),
    ]
    for second in range(400, 100_000):
        series.add(float(second), 1.0)
    assert (len(series), len(series.minutes)) == (3600, 1440)
    series.add(9e9, 1.0)
    assert len(series.minutes) == 1440


def test_paths_follow_xdg_and_a_demo_has_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Paths.from_env().state == tmp_path / "qwen-console"
    assert Paths.from_env(demo=True).state == tmp_path / "qwen-console-demo"
    monkeypatch.setenv("XDG_STATE_HOME", "relative/is/ignored")
    assert Paths.from_env().state == Path.home() / ".local/state/qwen-console"


def test_state_folders_are_private(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "s", tmp_path / "c", tmp_path / "k")
    paths.make()
    assert paths.state.stat().st_mode & 0o777 == 0o700
    assert paths.runs.is_dir()


def test_presets_are_searched_in_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("QWEN_CONSOLE_PRESETS", str(tmp_path / "mine"))
    paths = Paths(tmp_path, tmp_path / "config", tmp_path)
    dirs = paths.preset_dirs(tmp_path / "given")
    assert dirs[:3] == [tmp_path / "given", tmp_path / "mine", tmp_path / "config" / "presets"]
    assert dirs[-1].name == "presets"
    assert paths.own_presets == tmp_path / "mine"


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://box:8000/", "http://box:8000"),
        ("http://box:8000/v1", "http://box:8000"),
        ("https://box/metrics", "https://box"),
        ("http://[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses_are_taken_as_people_write_them(given: str, url: str) -> None:
    assert normal_url(given) == url


@pytest.mark.parametrize("given", ["", "http://", "ftp://box", "http://box:port", "not a url", "http://a b:1"])
def test_what_is_no_address_is_said(given: str) -> None:
    with pytest.raises(UsageError):
        normal_url(given)


def test_loopback_is_known_without_asking_anybody() -> None:
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("192.0.2.1")
    assert not is_loopback("example.org")


def test_errors_carry_their_exit_code() -> None:
    assert ConsoleError("w").exit_code is Exit.FAILED
    assert UsageError("w").exit_code is Exit.USAGE
    assert BusyError("w").exit_code is Exit.BUSY
    assert NothingError("w").exit_code is Exit.NOTHING
    assert str(ConsoleError("what", "why", "fix")) == "what\n  why: why\n  fix: fix"
