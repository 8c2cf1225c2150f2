"""Notices on the screen: the worst first, what to do beside it, and a word about new ones where they cannot be seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from console.gpu.sample import GpuReport, GpuSample
from console.notices import Look, Notice, Severity
from console.tui import notice_lines
from console.tui.messages import NoticesSeen
from console.tui.screens.pager import Pager
from tests.tui.fakes import CARDS, FAILED, READY, SIZES, FakeServer, House, screen_text, settled, shows, until

THIN = Notice("vram-margin:0", Severity.WARN, "card 0 has only 150 MiB left", "15.8 of 16 are in use", "less", 0.0, 1)
LOST = Notice("card-lost:1", Severity.BAD, "card 1 cannot be read", "GPU is lost", "its row stays", 0.0, 1)
QUEUE = Notice("queue", Severity.INFO, "requests wait", "2 for 40 s", "wait", 0.0, 3)


def seen(*notices: Notice, begun: tuple[Notice, ...] = ()) -> NoticesSeen:
    return NoticesSeen(Look(at=1.0), notices, begun)


async def still(pilot: Pilot[Any]) -> Any:
    """A dashboard whose pollers rest."""
    app = await settled(pilot)
    app.workers.cancel_all()
    return app


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
async def test_the_worst_stands_above_the_keys(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await still(pilot)
        app.dashboard.post_message(seen(LOST, THIN, QUEUE))
        text = await shows(pilot, "✖ card 1 cannot be read")
        assert ("n: 2 more" in text) == (size[0] == 80)
        assert ("its row stays" in text) == (size[0] == 120)
        assert {len(row) for row in text.split("\n")} == {size[0]}
        app.dashboard.post_message(seen())
        await until(pilot, lambda: "card 1 cannot" not in screen_text(pilot.app))


async def test_n_tells_all_of_them_with_why_and_what_to_do() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await still(pilot)
        app.dashboard.post_message(seen(LOST, THIN, QUEUE))
        await shows(pilot, "n: 2 more")
        await pilot.press("n")
        await shows(pilot, "15.8 of 16 are in use", "fix   its row stays", "requests wait (the 3. time)")


async def test_without_any_the_page_says_so() -> None:
    async with House().app().run_test() as pilot:
        await still(pilot)
        await pilot.press("n")
        await shows(pilot, "nothing stands out")


async def test_a_new_one_is_announced_only_where_the_dashboard_is_hidden() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await still(pilot)
        app.dashboard.post_message(seen(THIN, begun=(THIN,)))
        await shows(pilot, "▲ card 0")
        assert not app._notifications
        await pilot.press("?")
        await until(pilot, lambda: isinstance(app.screen, Pager))
        app.dashboard.post_message(seen(THIN, QUEUE, begun=(QUEUE,)))
        app.dashboard.post_message(seen(LOST, THIN, QUEUE, begun=(LOST,)))
        await until(pilot, lambda: len(app._notifications) == 1)
        assert next(iter(app._notifications)).title == LOST.what


async def test_what_the_sources_see_is_held_against_the_rules() -> None:
    lost = GpuSample(index=1, problem="The driver has lost this card.")
    house = House(FakeServer(READY), cards=GpuReport(0.0, (CARDS.cards[0], lost)))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await shows(pilot, "✖ card 1 cannot be read")
        await until(pilot, lambda: app.rings["card 0 util"].last == CARDS.cards[0].util)


@pytest.mark.parametrize("width", [40, 80])
def test_a_long_notice_is_cut_before_its_hint(width: int) -> None:
    long = replace(LOST, what="card 1 " * 20)
    (line,) = notice_lines.standing((long, THIN), width, tall=False)
    text = "".join(part for part, _ in line)
    assert len(text) == width
    assert text.endswith("…  n: 1 more ")


async def test_after_a_failure_n_names_it_and_b_says_why_there_is_no_way_back() -> None:
    async with House(FakeServer(FAILED)).app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("b")
        await shows(pilot, "no other preset was ready before")
        await pilot.press("n")
        text = await shows(
            pilot, "✖     qwen3.8-27b-nvfp4-100k failed", "why   The KV cache is too small", "fix   set max-model"
        )
        assert "nothing stands out" not in text
