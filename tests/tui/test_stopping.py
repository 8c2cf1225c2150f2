"""`x` asks and then stops whatever is on its way up, at any time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.view import read_run
from console.server.run_lock import hold_run_lock
from console.server.status import ServerStatus, State
from console.tui.messages import RunSeen
from tests.tui.fakes import PRESETS, READY, STARTING, FakeServer, House, screen_text, settled, shows, until
from tests.unit.lab_runs import whole_run

FIRST, SECOND, _ = (preset.name for preset in PRESETS)


@pytest.mark.parametrize(
    ("now", "keys", "coming"),
    [
        (ServerStatus(), ("enter",), FIRST),
        (READY, ("2", "enter", "y"), SECOND),
        (READY, ("r", "y"), FIRST),
    ],
    ids=["start", "switch", "restart"],
)
async def test_a_start_is_broken_off(now: ServerStatus, keys: tuple[str, ...], coming: str) -> None:
    house = House(FakeServer(now, slow_start=True))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press(*keys)
        await until(pilot, lambda: app.situation.raising == "server" and "follow" in house.server.calls)
        await pilot.press("x")
        await shows(pilot, f"Stop {coming}?", "Its start is broken off", "y stop it", "n/enter no")
        before = house.server.calls.count("stop")
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls.count("stop") == before + 1 and app.situation.acting is None)
        assert house.server.now.state is State.STOPPED
        await shows(pilot, "○ stopped")


async def test_a_start_that_was_found_is_broken_off() -> None:
    house = House(FakeServer(STARTING, slow_start=True))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: house.server.calls == ["follow"])
        await pilot.press("x", "y")
        await until(pilot, lambda: house.server.calls == ["follow", "stop"] and app.situation.acting is None)


async def test_the_first_boot_of_a_run_is_not_followed_and_x_means_the_run() -> None:
    house = House(FakeServer(STARTING, slow_start=True))
    services = house.services()
    services.paths.make()
    run = replace(read_run(whole_run("mtp").folder), state="running", verdict=None, step="boot 1")
    with hold_run_lock(services.paths, run.id):
        async with house.app().run_test() as pilot:
            app = await settled(pilot)
            await until(pilot, lambda: app.situation.acting is None)
            assert house.server.calls == []
            app.dashboard.post_message(RunSeen(run, live=True))
            await until(pilot, lambda: app.situation.run == run.id)
            await pilot.press("x")
            await shows(pilot, "Stop the A/B run?")


async def test_the_prefix_test_is_stopped_although_its_request_came_after_the_question() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.act("testing the prefix cache", lambda: str(house.server.hold.wait(10)), probing=True)
        await until(pilot, lambda: app.situation.probing)
        for requests, offered in ((0, False), (2, True), (1, False)):
            app.know(requests=requests)
            await pilot.press("x")
            text = await shows(pilot, f"Stop {FIRST}?", "y stop it")
            assert ("first wait until none runs" in text) is offered
            await pilot.press("n")
        app.know(requests=0)
        await pilot.press("x")
        await shows(pilot, "The prefix test is cut off.")
        app.know(requests=1)
        await pilot.press("y")
        await until(pilot, lambda: "stop" in house.server.calls)
        house.server.hold.set()


async def test_a_run_can_be_stopped_the_moment_it_was_begun() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.act("starting the mtp run", lambda: str(house.server.hold.wait(10)), raising="run")
        await pilot.press("x")
        await shows(pilot, "Stop the A/B run?")
        house.server.hold.set()


@pytest.mark.parametrize("key", ["n", "q", "enter", "escape"])
async def test_a_no_is_a_no(key: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("x")
        await shows(pilot, "y stop it")
        await pilot.press("z")
        await shows(pilot, "press y, or n for no")
        await pilot.press(key)
        await until(pilot, lambda: "y stop it" not in screen_text(pilot.app))
        assert house.server.calls == []
