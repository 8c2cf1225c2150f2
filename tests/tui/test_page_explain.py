"""Every figure explains itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from console.gpu.sample import GpuReport
from console.tui.app import ConsoleApp
from console.tui.explanations import explanation
from console.tui.messages import ReadingSeen
from console.tui.screens.explain import Explain, explicable
from tests.tui.fakes import (
    BUSY,
    FAILED,
    READY,
    FakeServer,
    House,
    screen_text,
    settled,
    shows,
    sizes,
    until,
)


async def _explaining(pilot: Pilot[Any]) -> ConsoleApp:
    """A busy server's figures on the screen, and `i` pressed; nothing is read any more."""
    app = await settled(pilot)
    app.dashboard.post_message(ReadingSeen(BUSY))
    await shows(pilot, "92.4 %")
    app.workers.cancel_all()
    await pilot.press("i")
    return app


@pytest.mark.parametrize(("key", "sign"), [("t", "t"), ("?", "?"), ("pagedown", "pagedown"), ("2", "2")])
async def test_a_key_that_does_nothing_under_i_says_so_beside_those_that_do(key: str, sign: str) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await _explaining(pilot)
        await shows(pilot, "prefix hit rate  92.4 %", "←↓↑→ tab another figure   esc back")
        await pilot.press(key)
        await shows(pilot, "prefix hit rate", f"{sign} does nothing here   ←↓↑→ tab another figure   esc back")
        await pilot.press("tab")
        await until(pilot, lambda: "does nothing" not in screen_text(pilot.app))
        await shows(pilot, "←↓↑→ tab another figure   esc back")
        await pilot.press(key, "escape")
        await shows(pilot, "q quit")
        assert "does nothing" not in screen_text(pilot.app)


@sizes
async def test_the_explanation_and_the_figures_above_it_are_of_one_look(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await _explaining(pilot)
        await shows(pilot, "the last 30 s, n = 5")
        later = replace(BUSY, window_s=24.0, prefix_cache=replace(BUSY.prefix_cache, hit_rate=0.123))
        app.dashboard.post_message(ReadingSeen(later))
        await shows(pilot, "the last 24 s, n = 5", "prefix hit rate  12.3 %", "hit rate")


def test_the_queue_says_when_a_request_is_counted() -> None:
    found = explanation("q_m", card=False)
    assert found is not None
    assert "counts once it has ended, so those that wait or run now are not in it yet" in found.what


@sizes
async def test_i_explains_the_figure_under_the_pointer(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await _explaining(pilot)
        await shows(pilot, "prefix hit rate", "off is not 0 %", "cached / (cached + computed)", "the last 30 s, n = 5")
        await pilot.press("right")
        await shows(pilot, "prefix hit rate, lifetime", "since the server became ready")
        await pilot.press("right")
        await shows(pilot, "TTFT, mean", "412 ms", "time_to_first_token_seconds: exact", "n = 5")
        await pilot.press("up")
        await shows(pilot, "NVML")
        await pilot.press("tab", "shift+tab", "left", "down")
        assert sum(field.pointed for field, _ in explicable(app.dashboard)) == 1
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Explain))
        assert not app.dashboard.query(".-pointed")
        assert {len(row) for row in screen_text(app).split("\n")} == {size[0]}


@sizes
async def test_every_figure_on_the_dashboard_explains_itself(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await settled(pilot)
        form = app.dashboard._reading
        explained = {field.name for field, _ in explicable(app.dashboard)}
        assert {field.name for field in form.shown} - explained == {"win"}
        for row in app.dashboard._cards.rows:
            assert {field.name for field in row.shown} - explained == {"i"}


async def test_where_no_figure_stands_i_says_so() -> None:
    house = House(FakeServer(FAILED), cards=GpuReport(0.0, problem="no driver"))
    async with house.app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "✖ failed")
        await pilot.press("i")
        await shows(pilot, "no figure stands here now")
