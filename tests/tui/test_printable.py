"""Other people's words on the screen: they are shown, and do nothing to the terminal."""

from __future__ import annotations

import unicodedata
from dataclasses import replace

import pytest

from console.tui.messages import LogSeen
from console.tui.widgets.drawing import Place, on_a_row
from tests.tui.fakes import PRESETS, READY, FakeServer, House, screen_text, settled, shows

EVIL = "\x1b]0;PWNED\x07\x1b[2J\x9b31m\u202eevil"


def test_a_row_holds_no_control_character() -> None:
    assert on_a_row("a\x1b[2Jb\x07 \x9b\u202e") == "a\\x1b[2Jb\\x07 \\x9b\\u202e"
    assert on_a_row("tab\there\nand there") == "tab here and there"
    assert on_a_row("Füße 漢字 👍 \xa0") == "Füße 漢字 👍 \xa0"


@pytest.mark.parametrize("width", [1, 2, 5, 8])
def test_a_wide_text_fills_its_place_and_no_more(width: int) -> None:
    place = Place(0, 0, width, left=True, ruled=False)
    shown = place.fit("漢字かな")
    wide = sum(2 if unicodedata.east_asian_width(sign) == "W" else 1 for sign in shown)
    assert wide == width


async def test_no_page_lets_an_escape_sequence_through() -> None:
    presets = tuple(replace(preset, description=EVIL, served_name=EVIL, model=EVIL) for preset in PRESETS)
    house = House(FakeServer(replace(READY, model=EVIL, note=EVIL)), presets=presets)
    async with house.app().run_test(size=(120, 40)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(LogSeen(f"/x{EVIL}.log", (EVIL, f"ERROR {EVIL}")))
        await shows(pilot, "\\x1b]0;PWNED")
        for key in ("d", "l", "n", "e", "v", "h", "t", "g"):
            await pilot.press(key)
            await pilot.pause(0.2)
            text = screen_text(app)
            assert not [sign for sign in text if sign in EVIL and unicodedata.category(sign) in {"Cc", "Cf"}], key
            await pilot.press("escape")
