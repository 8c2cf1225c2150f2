"""The journal: whole lines or none."""

from __future__ import annotations

from pathlib import Path

from console.lab.journal import FILE, Journal, read_events, read_json, utc_text, write_json


def test_events_come_back_in_order(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.add("a", n=1)
        journal.add("b", text="grüße")
    found = read_events(tmp_path)
    assert [event["event"] for event in found] == ["a", "b"]
    assert found[1]["text"] == "grüße"
    assert found[0]["at"] > 1_700_000_000


def test_a_torn_last_line_is_dropped_and_does_not_swallow_the_next(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.add("a")
        journal.add("b")
    path = tmp_path / FILE
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert [event["event"] for event in read_events(tmp_path)] == ["a"]
    with Journal(tmp_path) as journal:
        journal.add("c")
    assert [event["event"] for event in read_events(tmp_path)] == ["a", "c"]


def test_every_cut_leaves_a_readable_journal(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.add("a", text="é")
        journal.add("b")
    path = tmp_path / FILE
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert [event["event"] for event in read_events(tmp_path)] in ([], ["a"], ["a", "b"])


def test_lines_that_are_no_events_are_dropped(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('[1]\nnull\n{"at": 1}\n\x00\x00\n{"event": "a", "at": 1}\n')
    assert [event["event"] for event in read_events(tmp_path)] == ["a"]
    assert read_events(tmp_path / "nowhere") == []


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    assert read_json(path) is None
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert read_json(path) == {"a": 2}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]
    path.write_text("{")
    assert read_json(path) is None


def test_times_are_utc() -> None:
    assert utc_text(0.0) == "1970-01-01T00:00:00Z"
    assert utc_text(None) is None
