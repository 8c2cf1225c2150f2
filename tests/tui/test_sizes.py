"""The dashboard on terminals of every size."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from console.notices import Look
from console.tui.messages import NoticesSeen, ReadingSeen
from console.tui.screens.modal import Question
from tests.tui.fakes import BUSY, PRESETS, READY, FakeServer, House, screen_text, shows, until
from tests.tui.test_screen import app_of, whole_width


@pytest.mark.parametrize("size", [(60, 15), (79, 21), (60, 40), (200, 60), (200, 50), (119, 50), (140, 24), (176, 20)])
async def test_odd_sizes_are_laid_out_whole(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app_of(pilot).dashboard.post_message(ReadingSeen(BUSY))
        text = await shows(pilot, "● ready", "qwen3.8-27b", "14.62/15.93", "92.4 %", "34.2 tok/s", "8.32 s", "q quit")
        whole_width(text, size)


@pytest.mark.parametrize("size", [(59, 15), (60, 14), (40, 10), (20, 5)])
async def test_a_terminal_that_is_too_small_says_so_and_comes_back(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        text = await shows(pilot, "is too small")
        assert "cache" not in text
        whole_width(text, size)
        await pilot.resize_terminal(80, 24)
        text = await shows(pilot, "● ready", "prefix cache")
        assert "too small" not in text
        await pilot.resize_terminal(*size)
        await shows(pilot, "is too small")


async def test_the_cards_take_the_drawing_of_the_new_width_and_back() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        narrow = (await shows(pilot, "● ready", "gen5 x8", "61 °C")).split("\n")[1:4]
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: "142/180 W" in screen_text(pilot.app))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: screen_text(pilot.app).split("\n")[1:4] == narrow)


async def test_the_cursor_is_never_moved_out_of_sight() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "● ready", "1 qwen3.8", "tab run")
        await pilot.press("tab")
        await until(pilot, lambda: "1 qwen3.8" not in screen_text(pilot.app))
        await shows(pilot, "tab presets")
        await pilot.press("down")
        await shows(pilot, "▸2 qwen3.8", "tab run")


async def test_a_list_that_goes_on_says_so() -> None:
    presets = tuple(replace(PRESETS[0], name=f"preset-{i}") for i in range(15))
    async with House(presets=presets).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "preset-0", "↓8")
        await pilot.press(*["down"] * 7)
        await shows(pilot, "preset-7", "↑4 ↓4")


@pytest.mark.parametrize("size", [(60, 15), (80, 24)])
async def test_a_question_keeps_its_answers_in_view_and_scrolls_what_it_says(size: tuple[int, int]) -> None:
    text = [f"sentence {i} of what it comes to, which is longer than one row of the box" for i in range(1, 12)]
    answers = [("y", "start the run"), ("3", "rounds, enough to adopt"), ("4", "or something else of many words")]
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready")
        pilot.app.push_screen(Question("Compare?", text, answers))
        shown = await shows(
            pilot, "Compare?", "sentence 1 ", "y start the run", "3 rounds, enough to adopt", "n/enter no"
        )
        whole_width(shown, size)
        await pilot.press(*["down"] * 40)
        await shows(pilot, "sentence 11 ", "4 or something else of many words", "n/enter no")
        await pilot.press("g")
        await shows(pilot, "press 3 or 4 or y, or n for no", "n/enter no")


@pytest.mark.parametrize(
    ("size", "log", "graphs"),
    [((120, 40), "tab log", "tab graphs"), ((120, 60), "", ""), ((200, 60), "", ""), ((176, 45), "", "")],
)
async def test_tab_is_offered_where_it_does_something_and_no_graph_stands_there_twice(
    size: tuple[int, int], log: str, graphs: str
) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = app_of(pilot)
        app.dashboard.post_message(ReadingSeen(BUSY))
        app.dashboard.post_message(NoticesSeen(Look(at=time.monotonic(), reading=BUSY), (), ()))
        shown = await shows(pilot, "● ready", "34.2 tok/s", " now, ", *([log] if log else []))
        assert shown.count(" now, ") == 1, "one set of graphs"
        assert ("tab " in shown) is bool(log)
        await pilot.press("tab")
        if graphs:
            await shows(pilot, graphs)
        else:
            await pilot.pause()
            after = screen_text(app)
            assert [after.count(word) for word in (" now, ", "─ log ─")] == [1, 1]
