"""A yes is about what was asked, whatever has come while the question stood."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.view import read_run
from console.server.run_lock import hold_run_lock
from console.tui.messages import ReadingSeen, RunSeen
from tests.tui.fakes import (
    BUSY,
    PRESETS,
    READY,
    FakeServer,
    House,
    settled,
    shows,
    until,
)
from tests.unit.lab_runs import make_run

FIRST, SECOND, _ = (preset.name for preset in PRESETS)


async def test_a_run_that_took_the_server_while_a_question_stood_is_not_stopped_by_its_answer() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("x")
        await shows(pilot, f"Stop {FIRST}?")
        # It has begun since the last look: only the server itself can know.
        house.server.paths.make()
        with hold_run_lock(house.server.paths, "20261130-120000-mtp"):
            await pilot.press("y")
            await shows(pilot, "the A/B run 20261130-120000-mtp is going on", "ab stop")
            assert house.server.calls == []


async def test_the_arms_of_a_run_come_and_go_under_the_question_about_it() -> None:
    house, run = House(FakeServer(READY)), read_run(make_run("mtp").folder)
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(run, live=True))
        await until(pilot, lambda: app.situation.run == run.id)
        await pilot.press("x")
        await shows(pilot, "Stop the A/B run?")
        house.server.now = replace(READY, preset=SECOND, pid=4712)
        app.dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: app.situation.status.preset == SECOND and app.situation.requests == 3)
        await pilot.press("y")
        await until(pilot, lambda: house.calls == ["stop run"])


async def test_requests_that_came_while_a_question_stood_are_asked_about_first() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("x")
        await shows(pilot, f"Stop {FIRST}?")
        app.dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: app.situation.requests == 3)
        await pilot.press("y")
        await shows(pilot, f"Stop {FIRST}?", "3 requests are in flight", "d first wait")
        assert house.server.calls == []
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop"])


@pytest.mark.parametrize(("key", "title"), [("x", "Stop"), ("r", "Restart")])
async def test_a_yes_is_about_the_server_that_was_asked_about(key: str, title: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press(key)
        await shows(pilot, f"{title} {FIRST}?")
        house.server.now = replace(READY, preset=SECOND, pid=4712)
        await until(pilot, lambda: app.situation.status.preset == SECOND)
        await pilot.press("y")
        await shows(pilot, f"{title} {SECOND}?")
        assert house.server.calls == []
        await pilot.press("n")
