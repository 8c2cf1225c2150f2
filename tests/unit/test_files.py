"""Files that may be anything: what is no plain file is refused at once, and no JSON breaks its reader."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.address import is_host
from console.files import describe, open_file, parse_json, read_json, read_text
from console.units import one_line, printable


def test_a_pipe_a_device_a_folder_and_a_socket_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name, kind in {
        "pipe": "a named pipe",
        "device": "a device",
        "folder": "a folder",
        "socket": "a socket",
    }.items():
        with pytest.raises(OSError, match=kind) as caught:
            open_file(tmp_path / name)
        assert describe(caught.value) == f"it is {kind}, not a file"


def test_a_link_to_a_file_is_one(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert read_text(tmp_path / "link") == "x"


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x" * 101)
    with pytest.raises(OSError, match="larger than the 100 bytes"):
        read_text(tmp_path / "file", 100)
    assert len(read_text(tmp_path / "file", 101)) == 101


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[" * 900 + "]" * 900, '{"a":' * 70 + "1" + "}" * 70, "1" + "0" * 400, "1" * 5000, "", "\0", "{]"],
)
def test_json_that_would_break_its_reader_is_a_value_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse_json(text)
    assert describe(caught.value)
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_json(tmp_path / "file")


def test_text_that_is_not_utf8_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ValueError, match="utf-8") as caught:
        read_json(tmp_path / "file")
    assert describe(caught.value) == "it is not UTF-8 text: invalid start byte at byte 7"


def test_sane_json_is_as_ever() -> None:
    deep = json.loads("[" * 60 + "]" * 60)
    wide = [[number] for number in range(500)]
    for value in (deep, wide, {"a": [1, -1, 2**63, 1.5, None, True, "x"]}):
        assert parse_json(json.dumps(value)) == value


@given(st.text())
def test_nothing_printable_moves_a_terminal(text: str) -> None:
    shown = printable(text)
    assert not any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in shown if sign not in "\n\t")
    assert not any(0x202A <= ord(sign) <= 0x202E or 0xD800 <= ord(sign) < 0xE000 for sign in shown)
    assert "\n" not in one_line(text)


def test_what_is_printable_stays() -> None:
    assert printable("größer\t➜ 例 👩\u200d🔬\n") == "größer\t➜ 例 👩\u200d🔬\n"
    assert printable("a\x1b]0;X\x07\x9b31m\u202eb\udcff\r") == r"a\x1b]0;X\x07\x9b31m\u202eb\udcff\r"


@pytest.mark.parametrize(
    "word", ["127.0.0.1", "::1", "fe80::1%eth0", "localhost", "my-host.example.org", "0.0.0.0", "::"]
)
def test_hosts(word: str) -> None:
    assert is_host(word)


@pytest.mark.parametrize(
    "word", ["", " ", "a b", "[::1", "::zz", "a\x1b", "a/b", "-a", "a..b", "x" * 64, "a@b", "fe80::1%"]
)
def test_no_hosts(word: str) -> None:
    assert not is_host(word)
