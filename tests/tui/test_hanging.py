"""A look that hangs holds up nothing but itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from console.presets import Preset
from console.tui.preset_page import Inspection
from tests.tui.fakes import PRESETS, House, settled, shows


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
