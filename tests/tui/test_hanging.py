"""A look that hangs holds up nothing but itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from console.gpu.sample import GpuReport
from console.presets import Preset
from console.tui import card_lines, silences
from console.tui.app import ConsoleApp
from console.tui.preset_page import Inspection
from console.tui.services import Say
from console.tui.widgets.cards import Cards
from tests.tui.fakes import PRESETS, READY, FakeGpus, FakeServer, House, screen_text, settled, shows, until


@contextmanager
def hanging(house: House, name: str) -> Iterator[None]:
    """A house that hangs over one preset."""
    inspect, let_go = house.inspect, threading.Event()

    def hang(preset: Preset) -> Inspection:
        if preset.name == name:
            let_go.wait(30)
        return inspect(preset)

    house.inspect = hang  # type: ignore[method-assign]
    try:
        yield
    finally:
        let_go.set()


async def test_a_preset_whose_command_hangs_does_not_hold_up_the_others() -> None:
    house = House()
    with hanging(house, PRESETS[0].name):
        async with house.app().run_test(size=(120, 40)) as pilot:
            await settled(pilot)
            await pilot.press("d")
            await shows(pilot, "looking …")
            await pilot.press(">")
            await shows(pilot, "2 of 3 presets", "known to go wrong")


async def test_a_prefix_test_that_is_not_answered_does_not_keep_x_from_the_server() -> None:
    house, let_go = House(FakeServer(READY)), threading.Event()

    def probe(say: Say) -> str:
        say("a prompt of 3 blocks")
        let_go.wait(60)
        return "the prefix cache works"

    app = ConsoleApp(replace(house.services(), probe_prefix=probe))
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await settled(pilot)
            await pilot.press("p")
            await shows(pilot, "a prompt of 3 blocks")
            await pilot.press("p")
            await shows(pilot, "still at it")
            await pilot.press("x")
            await shows(pilot, f"Stop {PRESETS[0].name}?")
            await pilot.press("y")
            await until(pilot, lambda: house.server.calls == ["stop"] and app.situation.acting is None)
            let_go.set()
            await until(pilot, lambda: not any(job.is_running for job in app.workers if job.group == "action"))
            await pilot.pause()
            assert "the prefix cache works" not in screen_text(app)
    finally:
        let_go.set()


class HangingGpus(FakeGpus):
    """Cards whose driver answers once and never again, whoever asks: as NVML does with a card that dies."""

    def __init__(self, house: House, *, answers: int = 1) -> None:
        super().__init__(house)
        self.answers = answers
        self.let_go = threading.Event()

    def read(self) -> GpuReport:
        if self.answers == 0:
            self.let_go.wait(60)
        self.answers -= 1
        return super().read()

    def close(self) -> None:
        self.let_go.wait(60)


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_driver_that_never_answers_again_holds_up_nothing(
    answers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silences, "OLD_S", 0.5)
    house = House(FakeServer(READY))
    gpus = HangingGpus(house, answers=answers)
    app = ConsoleApp(replace(house.services(), open_gpus=lambda: gpus))
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await shows(pilot, "the graphics driver does not answer", "figures")
            cards = app.dashboard.query_one(Cards)
            assert all(row.old for row in cards.rows)
            await pilot.press("down")
            await until(pilot, lambda: app.situation.selected == PRESETS[1].name)
            if answers:
                monkeypatch.setattr(card_lines, "OLD_S", 0.5)
                await pilot.press("g")
                await shows(pilot, "The graphics driver does not answer: all of this is", "dmesg")
                await pilot.press("g")
        # The way out did not wait for it; the threads that hang keep no process.
        assert not gpus.let_go.is_set()
        hanging = [one for one in threading.enumerate() if one.name in ("console-look", "cards-close")]
        assert hanging
        assert all(one.daemon for one in hanging)
    finally:
        gpus.let_go.set()
