"""Minutes: what a recorder makes of its looks, what the file holds, and what a torn one costs."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from console.gpu.sample import GpuReport, GpuSample
from console.metrics.vllm import Counters
from console.server import minutes
from console.server.history import read_history
from console.server.minutes import Boot, CardMinute, Minute, Store
from console.server.recorder import Recorder
from tests.unit.metrics_pages import counters, page, with_value

BOOT = Boot("abc", "preset", "0.32.0", "model", False, 1000)
START = 60_000.0


def mtp(which: int, at: float) -> Counters:
    return counters(page("mtp", which), at)


def card(used: int, tx: float | None) -> GpuReport:
    found = GpuSample(0, vram_used_bytes=used, pcie_tx_bytes_per_s=tx, power_w=100.0, temp_c=60)
    return GpuReport(0.0, (found, GpuSample(1, problem="lost")))


def test_a_minute_is_the_difference_of_two_pages(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.base(mtp(0, 0.0))
    recorder.see(mtp(0, 15.0), card(10, 5.0), START)
    recorder.see(mtp(1, 30.0), card(30, 7.0), START + 15)
    recorder.see(mtp(1, 60.0), card(20, None), START + 61)
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert boot.boot == BOOT
    assert (boot.first, boot.last, boot.totals.minutes) == (60_000, 60_000, 1)
    (row,) = boot.rows
    assert (row.seconds, row.requests, row.ttft_n, row.generation_tokens) == (30.0, 12, 12, 576)
    assert row.drafts is not None
    assert row.draft_tokens == 2 * row.drafts
    assert boot.totals.acceptance_rate == pytest.approx(0.88, abs=0.01)
    assert boot.totals.prefix_hit_rate is None, "prefix caching is off, which is not 0 %"
    (one,) = boot.cards
    assert (one.card, one.vram_peak_bytes, one.pcie_tx_bytes_per_s, one.temp_max_c) == (0, 30, 6.0, 60)


def test_what_nobody_answered_for_is_no_row(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    for minute in range(3):
        recorder.see(None, card(10, 5.0), START + 60 * minute)
    store.close()
    assert read_history(tmp_path / "h.db", 0).boots == ()


def test_a_server_that_began_anew_is_counted_from_its_start(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    recorder.see(mtp(1, 0.0), None, START)
    recorder.see(replace(mtp(0, 30.0), process_started=9e9), None, START + 30)
    recorder.see(replace(mtp(1, 60.0), process_started=9e9), None, START + 60)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert sum(row.requests or 0 for row in boot.rows) == 12


def filled(path: Path, count: int) -> Store:
    store = Store(path)
    for i in range(count):
        assert store.keep(BOOT, Minute(60 * i, "abc", 60.0, requests=1), [CardMinute(60 * i, "abc", 0, 5)])
    return store


def test_the_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minutes, "KEPT_MINUTES", 10)
    store = filled(tmp_path / "h.db", 25)
    store.keep(Boot("old", None, None, None, False, 1), Minute(1, "old", 60.0), [])
    store.forget()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert [row.at for row in boot.rows] == [60 * i for i in range(15, 25)]
    assert len(boot.card_rows) == 10


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    filled(tmp_path / "h.db", 10).close()
    (boot,) = read_history(tmp_path / "h.db", 300).boots
    assert (boot.totals.minutes, boot.totals.requests) == (5, 5)
    assert read_history(tmp_path / "h.db", 1e9).boots == ()


@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\x00" + b"\xff" * 5000])
def test_a_torn_file_is_moved_aside_and_blocks_nothing(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "h.db"
    path.write_bytes(damage)
    assert "cannot be read" in (read_history(path, 0).problem or "")
    filled(path, 2).close()
    assert (tmp_path / "h.db.torn").read_bytes() == damage
    (boot,) = read_history(path, 0).boots
    assert boot.totals.requests == 2


def test_a_file_torn_in_its_middle(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    filled(path, 2000).close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\x5a" * (len(whole) - 8192) + whole[-4096:])
    read_history(path, 0)
    store = Store(path)
    assert not all(store.keep(BOOT, Minute(60 * i, "abc", 60.0), []) for i in range(1000, 1400))
    assert store.keep(BOOT, Minute(7, "abc", 60.0), [])
    store.close()
    assert read_history(path, 0).boots[0].totals.minutes >= 1


def test_another_schema_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version=99")
    db.close()
    filled(path, 1).close()
    assert (tmp_path / "h.db.torn").exists()


def test_a_disk_that_takes_nothing_costs_a_minute_and_no_more(tmp_path: Path) -> None:
    store = Store(tmp_path / "none" / "h.db")
    (tmp_path / "none").write_text("a file where the folder should be")
    assert not store.keep(BOOT, Minute(0, "abc", 60.0), [])
    (tmp_path / "none").unlink()
    assert store.keep(BOOT, Minute(0, "abc", 60.0), [])
    store.close()


def test_hits_that_only_other_series_tell(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    row = Minute(0, "abc", 60.0, prefix_queries=100, prefix_hits=0, cached_tokens=80, computed_tokens=20)
    store.keep(BOOT, row, [])
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert boot.totals.prefix_hit_rate == pytest.approx(0.8)


def test_nothing_recorded_is_a_sentence(tmp_path: Path) -> None:
    assert "up" in (read_history(tmp_path / "h.db", 0).problem or "")


def test_a_counter_that_is_absent_stays_unknown(tmp_path: Path) -> None:
    store = Store(tmp_path / "h.db")
    recorder = Recorder(BOOT, store)
    name = "vllm:generation_tokens_total"
    old = counters(with_value(page("prefix", 0), name, "NaN"), 0.0)
    recorder.base(old)
    recorder.see(counters(with_value(page("prefix", 1), name, "NaN"), 9.0), None, START)
    recorder.close()
    store.close()
    (boot,) = read_history(tmp_path / "h.db", 0).boots
    assert (boot.totals.generation_tokens, boot.totals.generation_tokens_per_s) == (None, None)
    assert boot.totals.prefix_hit_rate == pytest.approx(0.793704, abs=1e-6)
