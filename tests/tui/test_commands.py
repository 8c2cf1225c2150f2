"""The table of commands: help, footer and methods agree with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.server.status import ServerStatus, State
from console.tui.commands import COMMANDS, by_name, footer, help_rows, shown_keys
from console.tui.guards import can_start, can_stop
from console.tui.help_lines import PAGE_KEYS, help_lines
from console.tui.intents import Intents
from console.tui.search import text_of
from console.tui.situation import Situation
from tests.tui.fakes import READY, FakeServer, House, screen_text, settled, shows, until


def test_every_command_is_carried_out_by_somebody() -> None:
    for command in COMMANDS:
        assert callable(getattr(Intents, f"do_{command.name}")), command


def test_no_key_means_two_things() -> None:
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))


def test_the_help_has_every_command() -> None:
    rows = [command for _, group in help_rows({}) for _, command in group]
    assert sorted(c.name for c in rows) == sorted(c.name for c in COMMANDS if c.shown)
    assert {c.name for c in COMMANDS} == {c.name for c in COMMANDS if c.shown}


def test_the_footer_offers_only_commands_of_the_table() -> None:
    offered = {key for key, *_ in footer(Situation(hidden="run"), {})}
    assert offered <= {word for command in COMMANDS for word in command.shown.split()}


def test_the_help_lists_every_command_within_a_small_terminal() -> None:
    lines = [text_of(line) for line in help_lines({}, 78, 22)]
    glance = lines[:22]
    for command in COMMANDS:
        if command.shown:
            assert any(command.help in line for line in lines)
            assert any(
                f"{command.shown} " in line and (command.argument or command.title in line) for line in glance
            ), command
    assert any(f"{PAGE_KEYS[0][1]}" in line for line in lines)
    assert max(len(line.rstrip()) for line in lines) <= 78


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_the_help_opens_scrolls_to_its_end_and_closes(size: tuple[int, int]) -> None:
    async with House().app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("?")
        await shows(pilot, "Server" if size[0] == 120 else "start or switch", "suspend")
        await pilot.press("end")
        await shows(pilot, PAGE_KEYS[0][1], "◐ starting")
        await pilot.press("escape")
        await shows(pilot, "prefix cache")


@pytest.mark.parametrize("state", list(State))
async def test_the_footer_keeps_what_one_cannot_do_without(state: State) -> None:
    async with House(FakeServer(ServerStatus(state))).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: app.situation.acting is None)
        last = screen_text(app).split("\n")[-1]
        now = app.situation
        needed = {"enter ": can_start(now) is None, "x stop": can_stop(now) is None, "? help": True, "q quit": True}
        assert {word: word in last for word in needed} == needed


def test_the_footer_offers_nothing_that_would_be_refused() -> None:
    """During a run, over a server of somebody else, on the preset that runs already."""
    run = Situation(READY, known=True, selected="x", run="r1")
    assert [word for _, word, _, _ in footer(run, {})] == ["stop run", "log", "help", "quit"]
    foreign = Situation(replace(READY, state=State.FOREIGN), known=True, selected="x")
    assert [word for _, word, _, _ in footer(foreign, {})] == ["log", "help", "quit"]
    same = Situation(READY, known=True, selected=READY.preset)
    assert [word for _, word, _, _ in footer(same, {})][:2] == ["stop", "restart"]


def test_the_palette_and_the_footer_show_the_keys_that_the_user_has_set() -> None:
    keys = {"log": ("L", "f5")}
    assert shown_keys(by_name("log"), keys) == "L f5"
    assert "L" in {key for key, *_ in footer(Situation(), keys)}
    assert shown_keys(by_name("cards"), keys) == "g"


def test_commands_are_found_by_name() -> None:
    assert by_name("quit").keys == ("q", "ctrl+q")
