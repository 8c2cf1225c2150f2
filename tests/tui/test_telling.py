"""What is said goes away: by itself, by esc, and with the next key that does something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.view import read_run
from console.tui.messages import RunSeen
from tests.tui.fakes import PRESETS, READY, STARTING, FakeServer, House, screen_text, settled, shows, until
from tests.unit.lab_runs import whole_run

NEWS = "has ended: "
NOTHING = "nothing runs"


@pytest.mark.parametrize("key", ["escape", "j", "tab"])
async def test_news_of_a_run_go_with_esc_and_with_the_next_key_that_does_something(key: str) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(read_run(whole_run("mtp").folder), live=False, news=True))
        await shows(pilot, NEWS)
        await pilot.press(key)
        await until(pilot, lambda: NEWS not in screen_text(app))


async def test_news_of_a_run_go_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.tui.app.LONG_S", 0.5)
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(RunSeen(read_run(whole_run("mtp").folder), live=False, news=True))
        await shows(pilot, NEWS)
        await until(pilot, lambda: NEWS not in screen_text(app))


@pytest.mark.parametrize("key", ["escape", "j"])
async def test_why_a_key_did_nothing_goes_too(key: str) -> None:
    async with House().app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press("x")
        await shows(pilot, NOTHING)
        await pilot.press(key)
        await until(pilot, lambda: NOTHING not in screen_text(app))


async def test_a_start_that_asked_nothing_says_that_it_has_begun() -> None:
    server = FakeServer(slow_start=True)
    async with House(server).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press("enter")
        await shows(pilot, f"begun: starting {PRESETS[0].name}; x breaks it off")
        server.now = replace(STARTING, state=READY.state)
        await until(pilot, lambda: app.situation.acting is None and "begun" not in screen_text(app))
