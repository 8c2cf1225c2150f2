"""Keys that a slow line puts into one packet are the keys that were pressed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.events import Key

from console.tui.keystrokes import Keystrokes
from tests.tui.fakes import PRESETS
from tests.tui.terminal import Terminal, terminal

ROOT = str(Path(__file__).parents[2])
SECOND = PRESETS[1].name


def keys(*packets: str) -> list[str]:
    """What these packets come to."""
    parser = Keystrokes()
    return [event.key for packet in packets for event in parser.feed(packet) if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("packets", "wanted"),
    [
        (("\x1b2",), ["escape", "2"]),
        (("\x1b", "2"), ["escape", "2"]),
        (("\x1bd",), ["escape", "d"]),
        (("\x1bb",), ["escape", "b"]),
        (("\x1bN",), ["escape", "N"]),
        (("\x1b?",), ["escape", "question_mark"]),
        (("\x1b\r",), ["escape", "enter"]),
        (("\x1b\x03",), ["escape", "ctrl+c"]),
        (("i\x1b2dq",), ["i", "escape", "2", "d", "q"]),
        (("\x1bü",), ["escape", "ü"]),
        (("\x1b\x1b[A",), ["escape", "up"]),
        (("\x1b2\x1b[B",), ["escape", "2", "down"]),
    ],
)
def test_esc_and_the_next_key_in_one_packet_are_two_keys(packets: tuple[str, ...], wanted: list[str]) -> None:
    assert keys(*packets) == wanted


@pytest.mark.parametrize(
    ("sent", "key"),
    [("\x1b[A", "up"), ("\x1bOA", "up"), ("\x1b[1;3A", "alt+up"), ("\x1b[5~", "pageup"), ("\x1bOP", "f1")],
)
def test_what_a_terminal_sends_for_one_key_stays_one_key(sent: str, key: str) -> None:
    assert keys(sent) == [key]
    assert keys(*sent) == [key]


@pytest.fixture
def console(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Terminal]:
    """The console on a terminal, with a server that is ready."""
    monkeypatch.setenv("PYTHONPATH", ROOT)
    with terminal(env={"XDG_STATE_HOME": str(own_folders / "state")}) as shown:
        shown.shows("● ready", "▸1 qwen3.8")
        yield shown


def test_esc_leaves_the_explanation_and_the_key_behind_it_counts(console: Terminal) -> None:
    console.type(b"i")
    console.shows("another figure")
    console.type(b"\x1b2")
    console.shows("▸2 qwen3.8")
    assert "another figure" not in console.glass.text


def test_esc_leaves_a_page_and_the_key_behind_it_opens_the_next(console: Terminal) -> None:
    console.type(b"e")
    console.shows("─ execution chain ")
    console.type(b"\x1bd")
    console.shows("1 of 3 presets")


def test_esc_is_a_no_and_the_key_behind_it_asks_the_next_question(console: Terminal) -> None:
    console.type(b"r")
    console.shows(f"Restart {PRESETS[0].name}?")
    console.type(b"\x1bx")
    console.shows(f"Stop {PRESETS[0].name}?")
    console.type(b"\x1b2")
    console.shows("▸2 qwen3.8")
    assert "Stop" not in console.glass.text


def test_bytes_that_are_no_text_are_keys_that_do_nothing(console: Terminal) -> None:
    console.type(b"\xe9\xff\xfe\x80")
    console.type(b"?")
    console.shows("draw anew")
    console.type(b"\xc3")
    console.type(b"\x1b")
    console.shows("x stop")


def test_esc_on_the_dashboard_takes_nothing_from_the_key_behind_it(console: Terminal) -> None:
    console.type(b"\x1b2")
    console.shows("▸2 qwen3.8")
    console.type(b"\x1b\r")
    console.shows(f"Switch to {SECOND}?")


def test_esc_ends_a_search_and_the_key_behind_it_is_not_typed_into_it(console: Terminal) -> None:
    console.type(b"?")
    console.shows("─ keys ")
    console.type(b"/")
    console.shows("find; capitals count")
    console.type(b"stop")
    console.shows("stop the server")
    console.type(b"\x1be")
    console.shows("─ execution chain ")


def test_esc_leaves_the_commands_and_the_key_behind_it_counts(console: Terminal) -> None:
    console.type(b":")
    console.shows("Search for commands")
    console.type(b"\x1b2")
    console.shows("▸2 qwen3.8")
    assert "Search for commands" not in console.glass.text
