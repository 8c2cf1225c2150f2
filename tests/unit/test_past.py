"""What was recorded before a console came, as samples for its graphs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from console.notices import Look, Rings
from console.notices.past import past_of
from console.series import Series
from console.server.history import read_history
from console.server.minutes import Boot, CardMinute, Minute, Store, history_path

BOOT = Boot("abc", "preset", "0.32.0", "model", False, 0)


def kept(state: Path, *minutes: Minute) -> Path:
    state.mkdir(parents=True, exist_ok=True)
    store = Store(history_path(state))
    for one in minutes:
        assert store.keep(BOOT, one, [CardMinute(one.at, "abc", 0, 7_000, 5.0, 6.0)])
    store.close()
    return history_path(state)


def test_older_samples_go_in_front_as_far_as_there_is_room() -> None:
    series = Series(capacity=5)
    for at in (100.0, 101.0):
        series.add(at, at)
    series.put_before([(96.0, 1.0), (97.0, 2.0), (98.0, 3.0), (99.0, 4.0), (100.0, 5.0), (150.0, 6.0)])
    assert list(series) == [(97.0, 2.0), (98.0, 3.0), (99.0, 4.0), (100.0, 100.0), (101.0, 101.0)]
    series.put_before([(90.0, 0.0)])
    assert len(series) == 5
    assert series.last == 101.0
    empty = Series()
    empty.put_before([(1.0, 2.0)])
    assert list(empty) == [(1.0, 2.0)]


def test_a_minute_stands_for_its_parts_within_the_hour(tmp_path: Path) -> None:
    path = kept(
        tmp_path,
        Minute(600, "abc", 60.0, ttft_n=2, ttft_s=1.0, cached_tokens=30, computed_tokens=10, generation_tokens=120),
        Minute(660, "abc", 60.0, requests=0, ttft_n=0, ttft_s=0.0, generation_tokens=0),
    )
    found = past_of(read_history(path, 0).boots, since=630.0, until=700.0, to_monotonic=-500.0)
    assert found["ttft_s"] == [(at, 0.5) for at in (130.0, 135.0, 140.0, 145.0, 150.0, 155.0)]
    assert found["prefix_hit_rate"] == [(at, 0.75) for at, _ in found["ttft_s"]]
    assert [value for _, value in found["generation_tokens_per_s"]] == [2.0] * 6 + [0.0] * 8
    assert found["generation_tokens_per_s"][-1][0] == 195.0
    assert found["card 0 vram_used_bytes"][0] == (130.0, 7000.0)
    assert "acceptance_rate" not in found


@pytest.mark.parametrize("torn", [False, True])
def test_it_is_told_in_a_process_of_its_own(tmp_path: Path, torn: bool) -> None:
    path = kept(tmp_path, Minute(int(time.time()) // 60 * 60 - 120, "abc", 60.0, ttft_n=2, ttft_s=1.0))
    if torn:
        path.write_bytes(b"torn")
    words = [sys.executable, "-P", "-m", "console.notices.past", str(tmp_path)]
    found = json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout)
    if torn:
        assert found == {}
        return
    assert [value for _, value in found["ttft_s"]] == [0.5] * 12
    rings = Rings()
    rings.see(Look(at=time.monotonic()), {"ttft_s": [tuple(one) for one in found["ttft_s"]]})
    assert len(rings["ttft_s"]) == 12 + 1
    assert 55 < time.monotonic() - found["ttft_s"][-1][0] < 200
