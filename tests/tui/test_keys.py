"""The commands of view and console, pressed, with their effect."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.command import CommandList
from textual.widgets import OptionList

from console.tui.messages import StatusSeen
from console.tui.palette import Palette
from console.tui.screens.modal import Question
from tests.tui.fakes import (
    PRESETS,
    READY,
    FakeServer,
    House,
    screen_text,
    settled,
    shows,
    until,
)

FIRST, SECOND, THIRD = (preset.name for preset in PRESETS)


async def test_the_selection_moves_and_stops_at_the_ends() -> None:
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        for key, name in (
            ("j", SECOND),
            ("down", THIRD),
            ("j", THIRD),
            ("k", SECOND),
            ("up", FIRST),
            ("k", FIRST),
            ("3", THIRD),
            ("9", THIRD),
        ):
            await pilot.press(key)
            assert app.situation.selected == name, key
        assert "▸3" in screen_text(app)


async def test_l_opens_the_log_that_scrolls_and_follows() -> None:
    from console.tui.messages import LogSeen

    lines = tuple(f"line {i}" for i in range(200))
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(LogSeen("/x.log", lines))
        await until(pilot, lambda: app.dashboard.lower.log_text == lines)
        await pilot.press("l")
        await shows(pilot, "log /x.log", "line 199", " end ")
        await pilot.press("home")
        await shows(pilot, "line 0 ", "22 of 200")
        await pilot.press("pagedown", "up")
        await shows(pilot, "line 20 ")
        await pilot.press("end")
        app.dashboard.post_message(LogSeen("/x.log", (*lines, "a new one")))
        await shows(pilot, "a new one")
        await pilot.press("escape")
        await shows(pilot, "prefix cache")


async def test_tab_turns_the_lower_half() -> None:
    async with House().app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await shows(pilot, "─ presets", "─ log")
        await pilot.press("tab")
        await shows(pilot, "no run yet")
        await pilot.press("tab")
        await shows(pilot, "─ presets")


async def test_the_palette_finds_commands() -> None:
    async with House().app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press(":")
        await shows(pilot, "noise floor")
        await pilot.press(*"quit")
        await shows(pilot, "leave the console; server and A/B run go on")
        await pilot.press("escape")
        await shows(pilot, "hit rate")
        assert app.return_value is None


async def test_a_page_of_commands_that_have_no_place_yet_is_no_error() -> None:
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press(":")
        await until(
            pilot, lambda: isinstance(app.screen, Palette) and app.screen.query_one(CommandList).option_count > 0
        )
        found = app.screen.query_one(CommandList)
        found.highlighted = 0
        found.styles.width = found.styles.max_width = 0
        await until(pilot, lambda: not found.scrollable_content_region)
        found._clear_caches()
        await pilot.press("pageup", "pagedown")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Palette))


async def test_a_choice_that_comes_twice_or_after_the_palette_was_left_takes_no_other_screen_away() -> None:
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("?", ":", *"history")
        await until(
            pilot, lambda: isinstance(app.screen, Palette) and app.screen.query_one(CommandList).option_count == 1
        )
        palette = app.screen
        found = palette.query_one(CommandList)
        chosen = OptionList.OptionSelected(found, found.get_option_at_index(0), 0)
        for _ in range(3):
            palette.post_message(chosen)
        await shows(pilot, "history of the last 7 days")
        palette.post_message(chosen)
        await pilot.pause()
        await pilot.press("escape")
        await shows(pilot, "hit rate")
        await pilot.press(":", "down", "enter", "escape", "enter", "escape", ":", "enter", "enter", "enter")
        await pilot.pause()
        assert app.is_running


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_q_leaves_and_touches_nothing(key: str) -> None:
    house = House(FakeServer(READY))
    app = house.app()
    async with app.run_test() as pilot:
        await settled(pilot)
        await pilot.press(key)
    assert app.return_value == 0
    assert house.server.calls == []


async def test_ctrl_c_asks() -> None:
    house = House(FakeServer(READY))
    app = house.app()
    async with app.run_test() as pilot:
        await settled(pilot)
        await pilot.press("ctrl+c")
        await shows(pilot, "Leave the console? The server stays up.", "q quit", "x stop the server")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Question))
        await pilot.press("ctrl+c", "x")
        await shows(pilot, f"Stop {FIRST}?")
        await pilot.press("escape")
        await pilot.press("ctrl+c", "ctrl+c")
    assert app.return_value == 0
    assert house.server.calls == []


async def test_the_selection_begins_on_the_preset_that_runs_and_goes_along_with_it() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        # The presets may be read before the server is looked at.
        house.server.now = replace(READY, preset=SECOND)
        app.dashboard.post_message(StatusSeen(house.server.now))
        await until(pilot, lambda: app.situation.selected == SECOND)
        house.server.now = replace(READY, preset=THIRD)
        await until(pilot, lambda: app.situation.selected == THIRD)
        await pilot.press("k")
        house.server.now = replace(READY, preset=FIRST)
        await until(pilot, lambda: app.situation.status.preset == FIRST)
        assert app.situation.selected == SECOND


async def test_an_outcome_does_not_stand_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.tui.jobs.LONG_S", 0.5)
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await pilot.press("p")
        await shows(pilot, "the prefix cache works: 4800 of 5200 tokens")
        await until(pilot, lambda: "the prefix cache works" not in screen_text(pilot.app))
