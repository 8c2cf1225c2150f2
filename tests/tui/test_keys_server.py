"""The commands of the server, pressed, with their effect."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from console.errors import ConsoleError
from console.server.status import ServerStatus, State
from console.tui.messages import ReadingSeen, StatusSeen
from console.tui.screens.modal import Trouble
from tests.tui.fakes import (
    BROKEN,
    BUSY,
    FAILED,
    PRESETS,
    READY,
    STARTING,
    FakeServer,
    House,
    screen_text,
    settled,
    shows,
    until,
)

FIRST, SECOND, THIRD = (preset.name for preset in PRESETS)


async def test_enter_starts_the_selected_preset_and_follows_it() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("j", "enter")
        await until(pilot, lambda: house.server.calls == [f"start {SECOND}", "follow"] and app.situation.acting is None)
        await shows(pilot, "● ready")


async def test_enter_asks_where_the_list_is_behind_tab() -> None:
    house = House()
    async with house.app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("tab", "enter")
        await shows(pilot, f"Start {FIRST}?", "in the list behind tab", "y start it")
        assert house.server.calls == []
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == [f"start {FIRST}", "follow"])


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
        await shows(pilot, f"Switch to {SECOND}?", "will be stopped: 3 requests", "will be cut off", "y switch")
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


async def test_the_footer_of_a_broken_preset_offers_what_is_wrong_and_its_box_lets_every_key_through() -> None:
    async with House(FakeServer(READY), problems=(BROKEN,)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press("4")
        text = await shows(pilot, "enter what is wrong")
        assert "enter switch" not in text
        for key, said in (("d", "4 of 4 presets"), ("m", "select a preset that can start"), ("x", "Stop qwen")):
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Trouble))
            await pilot.press(key)
            text = await shows(pilot, said)
            assert not isinstance(app.screen, Trouble)
            assert "enter switch" not in text
            await pilot.press("escape")
            await until(pilot, lambda: app.screen is app.dashboard)


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
        await pilot.pause()
        assert "still at it" not in screen_text(app)
        assert house.server.calls == ["stop"]


@dataclass
class Lingering(FakeServer):
    """A start that is ready before whoever follows it has done with it."""

    def follow_start(self, timeout_s: float | None = None) -> Iterator[ServerStatus]:  # noqa: ARG002
        self.calls.append("follow")
        while self.now.state is not State.READY:
            yield self.now
            time.sleep(0.01)
        self.hold.wait(30)
        yield self.now


async def test_a_server_that_is_ready_is_not_being_started_any_more() -> None:
    server = Lingering(worked_last=PRESETS[1])
    async with House(server).app().run_test() as pilot:
        app = await settled(pilot)
        server.now = replace(STARTING, preset=FIRST)
        await pilot.press("enter")
        await until(pilot, lambda: app.situation.acting is not None)
        await pilot.press("r")
        await shows(pilot, "still at it: starting")
        server.now = READY
        await shows(pilot, "● ready", "r restart")
        assert app.situation.acting is None
        assert "still at it" not in screen_text(app)
        server.hold.set()


async def test_the_old_life_of_a_preset_that_is_started_again_is_not_its_new_one() -> None:
    server = FakeServer(READY, slow=True)
    async with House(server).app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("r", "y")
        await until(pilot, lambda: server.calls == ["stop"])
        app.dashboard.post_message(StatusSeen(READY))
        await shows(pilot, "asked the keeper")
        await pilot.pause()
        assert app.situation.acting == f"restarting {FIRST}"
        server.hold.set()
        await until(pilot, lambda: app.situation.acting is None)


async def test_requests_in_flight_can_be_waited_for_and_x_waits_no_longer() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: app.situation.requests == 3)
        await pilot.press("x")
        await shows(pilot, "d first wait until none runs")
        await pilot.press("d")
        await shows(pilot, "draining: 2 running, 1 waiting; x stops it now")
        assert house.server.calls == ["drain"]
        await pilot.press("x")
        await until(pilot, lambda: house.server.calls == ["drain", "stop"] and app.situation.acting is None)


async def test_after_a_failed_start_b_goes_back_to_what_was_ready_last() -> None:
    house = House(FakeServer(FAILED, worked_last=PRESETS[1]))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await shows(pilot, f"goes back to {SECOND}, which was ready before")
        await pilot.press("b")
        await shows(pilot, f"Go back to {SECOND}?", "No server runs now: nothing is stopped", "y start it")
        assert house.server.calls == []
        house.server.worked_last = None
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == [f"start {SECOND}", "follow"])
        await shows(pilot, "● ready")
        await pilot.press("b")
        await shows(pilot, "nothing to go back to: no other preset was ready before")


async def test_b_from_a_server_that_runs_is_a_switch_and_says_what_it_interrupts() -> None:
    house = House(FakeServer(READY, worked_last=PRESETS[2]))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: app.situation.requests == 3)
        await pilot.press("b")
        await shows(pilot, f"Go back to {THIRD}?", f"{FIRST} will be stopped: 3 requests", "y switch")
        assert house.server.calls == []
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {THIRD}", "follow"])


async def test_b_after_a_stop_starts_what_was_ready_before() -> None:
    house = House(FakeServer(worked_last=PRESETS[2]))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("b")
        await shows(pilot, f"Go back to {THIRD}?", "No server runs now: nothing is stopped", "y start it")
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == [f"start {THIRD}", "follow"])


async def test_a_switch_to_what_cannot_start_stops_nothing() -> None:
    house = House(FakeServer(READY), presets=(PRESETS[0], replace(PRESETS[1], command=("no-such-command",))))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("2", "enter", "y")
        await shows(pilot, "no-such-command")
        assert house.server.calls == []


async def test_x_with_nothing_running_says_so() -> None:
    async with House().app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("x")
        await shows(pilot, "nothing runs")


async def test_a_start_found_under_way_is_followed() -> None:
    house = House(FakeServer(ServerStatus(State.STARTING, pid=5, preset=FIRST)))
    async with house.app().run_test() as pilot:
        await until(pilot, lambda: house.server.calls == ["follow"])
        await shows(pilot, "● ready")
