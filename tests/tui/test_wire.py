"""What is sent leads to the same screen as what was to be sent, and is less."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.tui.wire import Wire
from tests.tui.glass import ORPHAN, Glass

SIZE = (20, 4)


def piece(x: int, y: int, style: str, text: str) -> str:
    styled = f"\x1b[{style}m{text}\x1b[0m" if style else text
    return f"\x1b[{y + 1};{x + 1}H{styled}"


pieces = st.builds(
    piece,
    st.integers(0, 11),
    st.integers(0, SIZE[1] - 1),
    st.sampled_from(["", "1", "31", "2;36"]),
    st.text("ab ─█字", max_size=4),
)
updates = st.lists(st.lists(pieces, max_size=5).map("".join), max_size=8)
WHOLE = "".join(piece(0, y, "", " " * SIZE[0]) for y in range(SIZE[1]))


@settings(max_examples=300)
@given(updates)
def test_the_screen_is_the_same(found: list[str]) -> None:
    plain, thrifty, wire = Glass(*SIZE), Glass(*SIZE), Wire()
    for update in [WHOLE, *found]:
        plain.show(update)
        thrifty.show(wire.take(update, SIZE))
        for ours, theirs in zip(thrifty.cells, plain.cells, strict=True):
            assert [a for a, b in zip(ours, theirs, strict=True) if b != ORPHAN] == [b for b in theirs if b != ORPHAN]


def test_the_same_again_is_nothing() -> None:
    wire = Wire()
    update = piece(2, 1, "31", "12.5 MB/s")
    assert wire.take(update, SIZE)
    assert wire.take(update, SIZE) == ""


def test_one_digit_is_one_cell() -> None:
    wire = Wire()
    wire.take(piece(2, 1, "31", "12.5 MB/s"), SIZE)
    assert wire.take(piece(2, 1, "31", "12.6 MB/s"), SIZE) == "\x1b[2;6H\x1b[31m6\x1b[m"


def test_pieces_of_one_style_are_one_piece() -> None:
    wire = Wire()
    found = wire.take("\x1b[1;1H\x1b[31mab\x1b[0m\x1b[31mcd\x1b[0m", SIZE)
    assert found == "\x1b[1;1H\x1b[31mabcd\x1b[m"


@pytest.mark.parametrize("unknown", ["\x1b[2J", "\x1b[?1049h", "\t", "a text that stands nowhere"])
def test_what_is_not_understood_goes_through_and_the_memory_with_it(unknown: str) -> None:
    wire = Wire()
    update = piece(0, 0, "", "abc")
    wire.take(update, SIZE)
    assert wire.take(unknown, SIZE) == unknown
    assert wire.take(update, SIZE) == update


@pytest.mark.parametrize("harmless", ["\x07", "\x1b[?25l", "\x1b]52;c;YWJj\x07", "\x1b[?1004h"])
def test_what_changes_no_cell_goes_through_and_nothing_is_forgotten(harmless: str) -> None:
    wire = Wire()
    update = piece(0, 0, "", "abc")
    wire.take(update, SIZE)
    assert wire.take(harmless, SIZE) == harmless
    assert wire.take(update, SIZE) == ""


def test_another_size_is_another_screen() -> None:
    wire = Wire()
    update = piece(0, 0, "", "abc")
    wire.take(update, SIZE)
    assert wire.take(update, (21, 4)) == update
