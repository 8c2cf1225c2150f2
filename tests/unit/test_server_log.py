"""The log's readers: tail, follow, both ends, what must not be shown."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.paths import Paths
from console.server.log import HEAD_BYTES, KEPT, TAIL_BYTES, ends, follow, is_background, new_log, redact, tail


def test_the_tail_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert tail(log, 5) == []
    log.write_text("a\nb\nc\n")
    assert tail(log, 2) == ["b", "c"]
    assert tail(log, 0) == []
    log.write_bytes(b"\xff\xfe broken\nlast, unfinished")
    assert tail(log, 1) == ["last, unfinished"]


def test_following_yields_whole_lines_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert follow(log, 0) == ([], 0)
    log.write_text("one\ntw")
    lines, offset = follow(log, 0)
    assert (lines, offset) == (["one"], 4)
    with log.open("a") as file:
        file.write("o\nthree\n")
    assert follow(log, offset) == (["two", "three"], 14)


def test_a_character_cut_in_two_waits_for_its_rest(tmp_path: Path) -> None:
    log = tmp_path / "log"
    raw = "█ 50%\n".encode()
    log.write_bytes(raw[:2])
    assert follow(log, 0) == ([], 0)
    log.write_bytes(raw)
    assert follow(log, 0)[0] == ["█ 50%"]


def test_a_cut_log_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\nthree\n")
    _, offset = follow(log, 0)
    log.write_text("new\n")
    assert follow(log, offset) == (["new"], 4)


def test_the_states_of_a_progress_bar_are_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("shards: 0%\rshards: 50%\rshards: 100%")
    assert follow(log, 0)[0] == ["shards: 0%", "shards: 50%"]


def test_only_line_ends_end_a_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("a\u2028b\x0cc\r\nd\n")
    assert follow(log, 0)[0] == ["a b c", "d"]


def test_a_line_without_end_does_not_stop_the_reader(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"x" * 300_000)
    lines, offset = follow(log, 0)
    assert (len(lines), offset) == (1, 300_000)


def test_a_huge_log_is_read_at_its_ends(tmp_path: Path) -> None:
    log = tmp_path / "log"
    size = HEAD_BYTES + TAIL_BYTES
    log.write_bytes(b"first\n" + b"m" * 50 + b"\n" + b"filler line\n" * (size // 10) + b"last\n")
    lines = ends(log)
    assert (lines[0], lines[-1]) == ("first", "last")
    assert sum(map(len, lines)) < size
    assert set(lines[2:-1]) == {"filler line"}
    assert ends(tmp_path / "none") == []
    log.write_text("short\n")
    assert ends(log) == ["short"]


def test_the_oldest_logs_go() -> None:
    paths = Paths.from_env()
    paths.make()
    for number in range(KEPT + 5):
        (paths.logs / f"20290101T0000{number:02d}.000Z-p.log").touch()
    fresh = new_log(paths, "a/b c")
    fresh.touch()
    left = sorted(file.name for file in paths.logs.iterdir())
    assert len(left) == KEPT
    assert fresh.parent == paths.logs
    assert fresh.name.endswith("-a_b_c.log")
    assert f"20290101T0000{KEPT + 4:02d}.000Z-p.log" in left


@pytest.mark.parametrize(
    ("line", "secrets", "shown"),
    [
        ("key=sk-abcd end", ["sk-abcd"], "key=••• end"),
        ("sk-abcdef sk-abcd", ["sk-abcd", "sk-abcdef"], "••• •••"),
        ("abc", ["a", ""], "abc"),
        ("plain", [], "plain"),
    ],
)
def test_secrets_are_not_shown(line: str, secrets: list[str], shown: str) -> None:
    assert redact(line, secrets) == shown


@pytest.mark.parametrize(
    ("line", "alone", "in_a_run"),
    [
        ('INFO:     127.0.0.1:41 - "GET /metrics HTTP/1.1" 200 OK', True, True),
        ('INFO:     127.0.0.1:41 - "POST /tokenize?from=qwen-console HTTP/1.1" 200 OK', True, True),
        ('INFO:     127.0.0.1:41 - "POST /tokenize?from=qwen-console HTTP/1.1" 404 Not Found', False, False),
        ('(APIServer pid=7) INFO:     127.0.0.1:41 - "POST /tokenize HTTP/1.1" 200 OK', False, True),
        ('INFO:     127.0.0.1:41 - "POST /v1/chat/completions HTTP/1.1" 200 OK', False, True),
        ('INFO:     127.0.0.1:41 - "POST /v1/chat/completions HTTP/1.1" 401 Unauthorized', False, False),
        ('INFO:     127.0.0.1:41 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error', False, False),
        ("INFO 11-29 20:28:42 [loggers.py:1] Engine 000: Avg prompt throughput: 1.0 tokens/s", False, False),
    ],
)
def test_what_a_run_asks_its_own_arm_is_no_news(line: str, alone: bool, in_a_run: bool) -> None:
    assert is_background(line, of_run=False) is alone
    assert is_background(line, of_run=True) is in_a_run


@pytest.mark.parametrize("name", ["ж" * 120, "x" * 250, "短い名前" * 30])
def test_a_preset_with_a_long_name_has_a_log(name: str, tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path, tmp_path)
    paths.make()
    log = new_log(paths, name)
    log.touch()
    assert len(os.fsencode(log.name)) < 255
    assert name[:20] in log.name
