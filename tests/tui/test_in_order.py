"""What is typed before there is anything to type about, and faster than it can be done, counts in its order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from textual.events import Key

from console.presets import Catalog, Preset
from console.server.status import ServerStatus
from console.tui import in_order
from console.tui.app import ConsoleApp
from console.tui.screens.modal import Question
from tests.tui.fakes import PRESETS, READY, FakeServer, House, plan_of, screen_text, settled, shows, until
from tests.tui.terminal import terminal

ROOT = str(Path(__file__).parents[2])
SECOND, THIRD = PRESETS[1].name, PRESETS[2].name
EAGER = """
import os, pty, sys, termios
from tests.tui.fakes import READY, FakeServer, House
from console.tui.run import run
print("here", flush=True)
while not os.read(0, 1) == b"!":
    pass
sys.exit(run(House(FakeServer(READY)).services()))
"""


@dataclass
class Late(FakeServer):
    """A server whose state is told late."""

    told: threading.Event = field(default_factory=threading.Event)

    def status(self, *, probe: bool = True) -> ServerStatus:
        self.told.wait(30)
        return super().status(probe=probe)


@pytest.fixture
def late() -> Iterator[Late]:
    server = Late(READY)
    yield server
    server.told.set()


async def test_what_is_typed_before_anything_is_known_waits_and_is_then_done_in_order(late: Late) -> None:
    house = House(late)
    app = house.app()
    async with app.run_test() as pilot:
        await pilot.press("2", "m", "3", "y")
        await shows(pilot, "waiting for the server's state, then: 2 m 3 y")
        assert house.plans == []
        late.told.set()
        await until(pilot, lambda: house.plans != [])
        assert (house.plans[0].base.name, house.plans[0].rounds) == (SECOND, 3)
        assert "copied" not in screen_text(app)


async def test_presets_are_waited_for_too() -> None:
    read = threading.Event()

    def catalog() -> Catalog:
        read.wait(30)
        return Catalog({preset.name: preset for preset in PRESETS})

    app = ConsoleApp(replace(House(FakeServer(READY)).services(), catalog=catalog))
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.situation.known)
        await pilot.press("3", "enter")
        await shows(pilot, "waiting for the presets, then: 3 enter")
        read.set()
        await shows(pilot, f"Switch to {THIRD}?")


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_the_way_out_waits_for_nothing(key: str, late: Late) -> None:
    house = House(late)
    app = house.app()
    async with app.run_test() as pilot:
        await pilot.press("m", key)
        await until(pilot, lambda: app.return_value == 0)
    assert house.plans == []


async def test_what_does_not_come_is_not_waited_for_twice_and_nothing_of_the_sequence_is_done(
    late: Late, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_order, "PATIENCE_S", 0.2)
    app = House(late).app()
    async with app.run_test() as pilot:
        for key in "3x":
            app.post_message(Key(key, key))
        text = await shows(pilot, "not done, the server's state did not come: 3 x")
        assert "▸3" not in text
        await pilot.press("?")
        await shows(pilot, "─ keys ")


async def test_the_question_that_a_key_leads_to_takes_what_was_typed_meanwhile() -> None:
    planned = threading.Event()

    def plan(kind: str, preset: Preset, rounds: int | None) -> object:
        planned.wait(30)
        return plan_of(kind, preset, rounds)

    house = House(FakeServer(READY), plan_run=plan)  # type: ignore[arg-type]
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: app.situation.listed)
        await pilot.press("m", "y")
        await shows(pilot, "waiting for the question, then: y")
        assert not isinstance(app.screen, Question)
        planned.set()
        await until(pilot, lambda: house.plans != [])
        assert app.clipboard == ""


def test_keys_typed_at_the_blank_screen_are_not_lost(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)
    env = {"XDG_STATE_HOME": str(own_folders / "state")}
    with terminal("-P", "-c", EAGER, env=env) as console:
        console.shows("here")
        console.type(b"!\n2m")
        console.shows("Compare MTP on and off?", f"{SECOND}: arms")


def test_a_search_and_a_command_in_one_packet_are_typed_where_they_belong(
    own_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", ROOT)
    with terminal(env={"XDG_STATE_HOME": str(own_folders / "state")}) as console:
        console.shows("● ready", "▸1 qwen3.8")
        console.type(b"?/stop")
        console.shows("─ keys ", "with 'stop'")
        console.type(b"\r\x1b\x1b:noise fl")
        console.shows("noise fl", "A/A run: equal arms")
        console.type(b"\r")
        console.shows("Compare the same setting twice")
