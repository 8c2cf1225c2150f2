"""`r`: the same preset again, as it was started or as its file says by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.server.status import ServerStatus
from tests.tui.fakes import BROKEN, FAILED, PRESETS, READY, FakeServer, House, settled, shows, until

FIRST = PRESETS[0].name


async def test_r_restarts_after_asking() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        await shows(pilot, f"Restart {FIRST}?")
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {FIRST}", "follow"])


@pytest.mark.parametrize("now", [READY, FAILED])
@pytest.mark.parametrize(("key", "seqs"), [("y", 7), ("f", None)])
async def test_r_says_what_the_file_changes_and_asks_which_of_both(
    now: ServerStatus, key: str, seqs: int | None
) -> None:
    house = House(FakeServer(now, ran=replace(PRESETS[0], args={"max-num-seqs": 7})))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        stops = "in flight are cut off" if now is READY else "No server runs now: nothing is stopped."
        await shows(
            pilot, f"Restart {FIRST}?", stops, "max-num-seqs: 7 → not set", "y as it was started", "f as its file"
        )
        await pilot.press(key)
        started = [f"start {FIRST}", "follow"]
        await until(pilot, lambda: house.server.calls == (["stop", *started] if now is READY else started))
        assert house.server.ran is not None
        assert house.server.ran.args.get("max-num-seqs") == seqs


async def test_r_starts_what_was_asked_about_whatever_becomes_of_the_file() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        await shows(pilot, f"Restart {FIRST}?")
        house.presets = (replace(PRESETS[0], args={"max-num-seqs": 9}), *PRESETS[1:])
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {FIRST}", "follow"])
        assert house.server.ran == PRESETS[0]
        house.presets, house.server.ran = PRESETS[1:], None
        await pilot.press("r")
        await shows(pilot, "cannot be started again", "no preset of that name is left")


async def test_r_after_a_failure_starts_at_once() -> None:
    house = House(FakeServer(FAILED))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("r")
        await until(pilot, lambda: house.server.calls == [f"start {FIRST}", "follow"])


@pytest.mark.parametrize(
    ("keys", "starts"), [(("r",), FIRST), (("2", "enter"), PRESETS[1].name), (("b",), PRESETS[2].name)]
)
async def test_requests_in_flight_can_be_waited_for_before_another_start(keys: tuple[str, ...], starts: str) -> None:
    house = House(FakeServer(READY, worked_last=PRESETS[2]))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: app.situation.back is not None)
        app.know(requests=0)
        await pilot.press(*keys)
        assert "first wait" not in await shows(pilot, "n/enter no")
        await pilot.press("n")
        app.know(requests=2)
        await pilot.press(*keys[-1:])
        await shows(pilot, "d first wait until none runs", "n/enter no")
        await pilot.press("d")
        await shows(pilot, "draining: 2 running, 1 waiting; x goes on at once")
        assert house.server.calls == ["drain"]
        await pilot.press("x")
        await until(pilot, lambda: house.server.calls == ["drain", "stop", f"start {starts}", "follow"])
        await until(pilot, lambda: app.situation.acting is None)


@pytest.mark.parametrize("broken", [False, True])
async def test_r_says_that_the_file_is_gone_or_broken_and_starts_what_was_started(broken: bool) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        house.presets = PRESETS[1:]
        house.problems = (replace(BROKEN, name=FIRST),) if broken else ()
        await pilot.press("r")
        why = "cannot be used now: typo.yaml:4" if broken else "Its file is gone."
        await shows(pilot, f"Restart {FIRST}?", why, "y as it was started")
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", f"start {FIRST}", "follow"])
        assert house.server.ran == PRESETS[0]
