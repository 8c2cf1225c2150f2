"""Every command of the table, pressed, with its effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from console.errors import BusyError, ConsoleError
from console.lab.plan import make_plan
from console.lab.view import read_run
from console.server.status import ServerStatus, State
from console.tui.app import ConsoleApp
from console.tui.commands import COMMANDS, by_name, footer, help_rows
from console.tui.intents import Intents
from console.tui.messages import ReadingSeen, RunSeen
from console.tui.screens.modal import Question, Trouble
from console.tui.screens.pager import Pager
from console.tui.situation import Situation
from tests.tui.fakes import BROKEN, BUSY, FAILED, PRESETS, READY, FakeServer, House, screen_text, shows, until
from tests.unit.lab_runs import whole_run

FIRST, SECOND, THIRD = (preset.name for preset in PRESETS)


def app_of(pilot: Pilot[Any]) -> ConsoleApp:
    assert isinstance(pilot.app, ConsoleApp)
    return pilot.app


async def settled(pilot: Pilot[Any]) -> ConsoleApp:
    """The presets are there and the server has been looked at."""
    app = app_of(pilot)
    await until(pilot, lambda: app.situation.known and app.situation.selected is not None)
    return app


# --- the table itself


def test_every_command_is_carried_out_by_somebody() -> None:
    for command in COMMANDS:
        assert callable(getattr(Intents, f"do_{command.name}")), command


def test_no_key_means_two_things() -> None:
    keys = [key for command in COMMANDS for key in command.keys]
    assert len(keys) == len(set(keys))


def test_the_help_has_every_command() -> None:
    rows = [text for _, group in help_rows() for _, text in group]
    assert rows == [command.help for command in COMMANDS if command.shown]
    assert {c.name for c in COMMANDS} == {c.name for c in COMMANDS if c.shown}


def test_the_footer_offers_only_commands_of_the_table() -> None:
    offered = {key for key, *_ in footer(Situation())}
    assert offered <= {word for command in COMMANDS for word in command.shown.split()}


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_help_fits_and_lists_all(size: tuple[int, int]) -> None:
    async with House().app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("?")
        text = await shows(pilot, "Server", "Console")
        for command in COMMANDS:
            if command.shown:
                assert command.help in text
        await pilot.press("escape")
        await shows(pilot, "prefix cache")


@pytest.mark.parametrize("state", list(State))
async def test_the_footer_keeps_what_one_cannot_do_without(state: State) -> None:
    async with House(FakeServer(ServerStatus(state))).app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        last = screen_text(pilot.app).split("\n")[-1]
        for word in ("enter ", "x stop", "? help", "q quit"):
            assert word in last


# --- the server


async def test_enter_starts_the_selected_preset_and_follows_it() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("j", "enter")
        await until(pilot, lambda: house.server.calls == [f"start {SECOND}", "follow"] and app.situation.acting is None)
        await shows(pilot, "● ready")


async def test_s_starts_too() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("s")
        await until(pilot, lambda: house.server.calls == [f"start {FIRST}", "follow"])


async def test_a_start_that_is_refused_says_what_why_and_fix() -> None:
    house = House(FakeServer(start_error=ConsoleError("there is no command vllm", "not on PATH", "pip install vllm")))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, Trouble))
        await shows(pilot, "there is no command vllm", "not on PATH", "pip install vllm")
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Trouble))


async def test_a_start_that_fails_shows_the_diagnosis() -> None:
    async with House(FakeServer(after_start=FAILED)).app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await shows(pilot, "✖ failed · kv-too-small", "set max-model-len to 61,440")


async def test_switching_asks_and_says_what_it_interrupts() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: app.situation.requests == 3)
        await pilot.press("2", "enter")
        await shows(pilot, f"Switch to {SECOND}?", "3 requests are in flight", "will be cut off", "y switch")
        await pilot.press("escape")
        await pilot.pause()
        assert house.server.calls == []
        await pilot.press("enter", "y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {SECOND}", "follow"])


async def test_starting_what_runs_already_is_refused_in_a_line() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("enter")
        await shows(pilot, "is ready already; r restarts it")
        assert house.server.calls == []


async def test_a_broken_preset_explains_itself() -> None:
    async with House(problems=(BROKEN,)).app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("4", "enter")
        await shows(pilot, "no flag --max-modle-len", "did you mean `max-model-len`?")


async def test_x_stops_after_asking_and_shows_progress() -> None:
    house = House(FakeServer(READY, slow=True))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("x")
        await shows(pilot, f"Stop {FIRST}?", "y stop it")
        await pilot.press("y")
        await shows(pilot, "asked the keeper; 3 processes are left")
        await pilot.press("enter")
        await shows(pilot, "still at it: stopping")
        house.server.hold.set()
        await shows(pilot, "○ stopped")
        await until(pilot, lambda: app.situation.acting is None)
        assert house.server.calls == ["stop"]


async def test_x_with_nothing_running_says_so() -> None:
    async with House().app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("x")
        await shows(pilot, "nothing runs")


async def test_r_restarts_after_asking() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        await shows(pilot, f"Restart {FIRST}?")
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {FIRST}", "follow"])


async def test_r_after_a_failure_starts_at_once() -> None:
    house = House(FakeServer(FAILED))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        await until(pilot, lambda: house.server.calls == [f"start {FIRST}", "follow"])


async def test_a_start_found_under_way_is_followed() -> None:
    house = House(FakeServer(ServerStatus(State.STARTING, pid=5, preset=FIRST)))
    async with house.app().run_test() as pilot:
        await until(pilot, lambda: house.server.calls == ["follow"])
        await shows(pilot, "● ready")


# --- runs


@pytest.mark.parametrize(
    ("key", "kind", "question"), [("m", "mtp", "MTP"), ("c", "chunk", "chunk"), ("a", "aa", "noise")]
)
async def test_a_run_is_planned_asked_for_and_started(key: str, kind: str, question: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press(key)
        await shows(pilot, "Compare", question, "is stopped meanwhile", "y start the run")
        await pilot.press("y")
        await until(pilot, lambda: house.calls == [f"run {kind} {FIRST}"])


async def test_the_question_tells_the_plan() -> None:
    preset = replace(
        PRESETS[0],
        args={"max-model-len": 8192},
        lab={"mtp": {"speculative-config": {"method": "mtp", "num_speculative_tokens": 2}}},
    )
    plan = make_plan("mtp", preset, rounds=2, size="small", seed=1)
    house = House(plan_run=lambda *_: plan)
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("m")
        await shows(pilot, "arms off · on", "speculative-config", "4 starts of the server", "about")


async def test_a_plan_that_cannot_be_made_says_why() -> None:
    def refuse(*_: object) -> Any:
        raise ConsoleError("this preset has no MTP to vary", "", "add `lab: {mtp: …}`")

    async with House(plan_run=refuse).app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("m")
        await shows(pilot, "this preset has no MTP to vary")


async def test_a_run_that_is_refused_says_why() -> None:
    house = House(run_error=BusyError("requests are in flight", "2 run", "wait"))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("m")
        await shows(pilot, "y start the run")
        await pilot.press("y")
        await shows(pilot, "requests are in flight", "2 run")


async def test_x_while_a_run_lives_asks_for_the_run_and_nothing_else_starts() -> None:
    house = House(FakeServer(READY))
    run = replace(read_run(whole_run("mtp").folder), state="running", verdict=None, step="here")
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=True))
        await until(pilot, lambda: app.situation.run == run.id)
        await pilot.press("m")
        await shows(pilot, "one A/B run at a time")
        await pilot.press("x")
        await shows(pilot, "Stop the A/B run?")
        await pilot.press("y")
        await until(pilot, lambda: house.calls == ["stop run"])
        assert house.server.calls == []


async def test_o_adopts_the_winner() -> None:
    run = read_run(whole_run("mtp").folder)
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: app.situation.winner is not None)
        await pilot.press("o")
        await until(pilot, lambda: house.calls == [f"adopt {run.id} on"])
        await shows(pilot, f"wrote {Path('new.yaml')}")


async def test_o_without_a_winner_says_so() -> None:
    async with House().app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("o")
        await shows(pilot, "no finished run advises")


async def test_v_shows_the_run_in_full() -> None:
    run = read_run(whole_run("mtp").folder)
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: app.dashboard.lower.run is not None)
        await pilot.press("v")
        await shows(pilot, "reasons", "agent.prefill_tok/s")
        await pilot.press("end")
        await shows(pilot, f"qwen-console ab show {run.id}")
        await pilot.press("v")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Pager))


# --- view and console


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


def test_commands_are_found_by_name() -> None:
    assert by_name("quit").keys == ("q", "ctrl+q")
