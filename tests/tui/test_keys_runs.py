"""Every command of A/B runs, pressed, with its effect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.errors import BusyError, ConsoleError
from console.lab.view import RunView, read_run
from console.tui import run_lines
from console.tui.messages import RunSeen
from console.tui.screens.pager import Pager
from tests.tui.fakes import PRESETS, READY, FakeServer, House, plan_of, screen_text, settled, shows, until
from tests.unit.lab_runs import whole_run

FIRST, SECOND, THIRD = (preset.name for preset in PRESETS)


@pytest.mark.parametrize(
    ("key", "kind", "question"), [("m", "mtp", "MTP"), ("c", "chunk", "chunk"), ("a", "aa", "noise")]
)
async def test_a_run_is_planned_asked_for_and_started(key: str, kind: str, question: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press(key)
        await shows(pilot, "Compare", question, "will be stopped", "y start the run")
        await pilot.press("y")
        await until(pilot, lambda: house.calls == [f"run {kind} {FIRST}"])


async def test_the_question_tells_the_plan_and_what_is_started_is_what_was_shown() -> None:
    plan = plan_of("mtp", PRESETS[0])
    house = House(plan_run=lambda *_: plan)
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("m")
        await shows(
            pilot,
            "arms off (the preset's own) · on.",
            "off → on: speculative-config",
            "4 starts of the server",
            "about",
        )
        await pilot.press("y")
        await until(pilot, lambda: house.plans != [])
        assert house.plans[0] is plan


async def test_a_run_too_short_to_adopt_from_can_be_made_longer_before_it_starts() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("m")
        await shows(pilot, "2 rounds, 4 starts of the server", "3 rounds, enough to adopt")
        await pilot.press("3")
        await shows(pilot, "3 rounds, 6 starts of the server", "y start the run")
        assert "enough to adopt" not in screen_text(pilot.app)
        await pilot.press("y")
        await until(pilot, lambda: house.plans != [])
        assert house.plans[0].rounds == 3


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


async def test_o_asks_adopts_the_winner_and_not_twice() -> None:
    run = read_run(whole_run("mtp").folder)
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: app.situation.run_ended)
        await pilot.press("o")
        await shows(pilot, "Adopt on?", "new: ", "with max-num-seqs 4", "new.yaml", "y write it")
        assert house.calls == []
        await pilot.press("y")
        await until(pilot, lambda: house.calls == [f"adopt {run.id} on"] and app.situation.acting is None)
        await shows(pilot, f"wrote {Path('new.yaml')}")
        await pilot.press("o")
        await shows(pilot, "new is there already, with the same settings")
        assert house.calls == [f"adopt {run.id} on"]


async def test_what_o_wrote_is_selected_and_enter_would_start_it() -> None:
    run = read_run(whole_run("mtp").folder)
    house = House(FakeServer(READY))
    async with house.app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: app.situation.run_ended)
        await pilot.press("o")
        await shows(pilot, "y write it")
        house.presets = (*PRESETS, replace(PRESETS[0], name="new"))
        await pilot.press("y")
        await until(pilot, lambda: app.situation.selected == "new")
        await shows(pilot, "wrote new.yaml; new is selected, enter starts it", "▸4 new")


async def test_o_without_a_winner_says_so() -> None:
    async with House().app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("o")
        await shows(pilot, "no run has ended yet: none advises anything")
        pilot.app.know(run="20260101-000000-aa")  # type: ignore[attr-defined]
        await pilot.press("o")
        await shows(pilot, "the run under way advises nothing yet; v shows those before it")


def unadvised(kind: str = "mtp", **changes: Any) -> RunView:
    run = read_run(whole_run(kind).folder)
    assert run.verdict is not None
    verdict = replace(run.verdict, overall="keep", sentence="off holds: on is a trade", arm=None)
    return replace(run, verdict=verdict, **changes)


async def test_o_where_no_arm_is_advised_names_the_command_that_adopts_one_all_the_same() -> None:
    run = unadvised()
    command = f"`qwen-console ab adopt {run.id} on`"
    async with House().app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        app.sources.runs.listed = lambda: (run,)  # type: ignore[method-assign]
        await until(pilot, lambda: app.situation.run_ended)
        await pilot.press("o")
        await shows(pilot, "this run advises to adopt nothing", "why   keep: off holds: on is a trade", command)
        await pilot.press("v")
        await shows(pilot, "▸ 01-01 00:00")
        await pilot.press("o")
        await shows(pilot, "this run advises to adopt nothing", "why   keep: off holds: on is a trade", command)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, Pager))


def test_where_several_arms_could_be_adopted_they_are_named_and_equal_ones_are_none() -> None:
    several = run_lines.no_advice(unadvised(arms=("off", "on", "deep"), own_arm="off"))
    assert several.fix.endswith("ARM` writes an arm all the same; ARM is one of on, deep")
    assert run_lines.no_advice(unadvised("aa")).fix == ""


def test_an_arm_that_the_preset_runs_already_is_not_adopted_and_that_is_said() -> None:
    run = unadvised(own_arm="on", preset="mine")
    assert run.verdict is not None
    run = replace(run, verdict=replace(run.verdict, overall="adopt", arm="on"))
    assert run_lines.winner(run) is None
    assert run_lines.no_advice(run).what == "on is what mine itself runs"


async def test_v_shows_the_run_in_full() -> None:
    run = read_run(whole_run("mtp").folder)
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        app.sources.runs.listed = lambda: (run, replace(run, id="20250101-080000-mtp"))  # type: ignore[method-assign]
        await until(pilot, lambda: app.dashboard.lower.run is not None)
        await pilot.press("v")
        await shows(pilot, "▸ ", "01-01 08:00", "adopt", "prefill rate")
        await pilot.press("<")
        await shows(pilot, "▸ 01-01 08:00")
        await pilot.press(">")
        await pilot.press("end")
        await shows(pilot, "to know", f"qwen-console ab show {run.id}")
        await pilot.press("v")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Pager))
