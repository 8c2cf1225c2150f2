"""The file of the history: bounded, and whatever happens to it costs a minute and no more."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from console.server import minutes
from console.server.history import read_history
from console.server.minutes import Boot, CardMinute, Minute, Store
from console.tui.history_lines import history_lines

BOOT = Boot("abc", "preset", "0.32.0", "model", False, 1000)


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


def test_minutes_of_a_clock_that_stood_ahead_are_told_and_left_out(tmp_path: Path) -> None:
    store = filled(tmp_path / "h.db", 3)
    for at in (2_000_000_000_000, 2_000_000_000_060):
        store.keep(BOOT, Minute(at, "abc", 60.0, requests=9), [CardMinute(at, "abc", 0, 5)])
    store.close()
    found = read_history(tmp_path / "h.db", 0)
    (boot,) = found.boots
    assert (boot.totals.requests, boot.last, len(boot.card_rows)) == (3, 120, 3)
    assert found.problem is None
    assert found.note == "2 minutes that were recorded while the clock stood ahead of now are left out"
    assert any(found.note in "".join(part for part, _ in row) for row in history_lines(found, 120))


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


@pytest.mark.parametrize(
    "damage",
    [
        lambda db: db.execute("ALTER TABLE minutes ADD COLUMN another"),
        lambda db: db.execute("DROP TABLE cards"),
        lambda db: db.execute("ALTER TABLE boots RENAME COLUMN preset TO name"),
    ],
)
def test_tables_of_another_make_are_moved_aside(tmp_path: Path, damage: Callable[[sqlite3.Connection], object]) -> None:
    path = tmp_path / "h.db"
    filled(path, 3).close()
    db = sqlite3.connect(path)
    damage(db)
    db.commit()
    db.close()
    read_history(path, 0)
    store = Store(path)
    kept = [store.keep(BOOT, Minute(60 * i, "abc", 60.0), [CardMinute(60 * i, "abc", 0)]) for i in range(3)]
    store.close()
    assert kept[1:] == [True, True]
    assert read_history(path, 0).problem is None


def test_a_header_that_forbids_writing_is_moved_aside(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    filled(path, 3).close()
    raw = bytearray(path.read_bytes())
    raw[18] = 9  # Written by a format of the future: SQLite takes it for read-only.
    path.write_bytes(raw)
    store = Store(path)
    assert [store.keep(BOOT, Minute(60 * i, "abc", 60.0), []) for i in range(3)][1:] == [True, True]
    store.close()


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
