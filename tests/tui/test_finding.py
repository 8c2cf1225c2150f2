"""Finding text on a page: while it is typed, the next one, only these, and the next error."""

from __future__ import annotations

from typing import Any

import pytest
from textual.pilot import Pilot

from console.tui.app import ConsoleApp
from console.tui.log_lines import pretty, rows
from console.tui.messages import LogSeen
from console.tui.screens.pager import Pager
from console.tui.search import found_in, marked, next_line, text_of
from console.tui.widgets.lines import line
from tests.tui.fakes import FAILED, READY, FakeServer, House, screen_text, settled, shows, until

LOG = (
    *(f"INFO 11-29 12:00:00 [a.py:1] line {i}" for i in range(60)),
    "(EngineCore pid=8) ERROR 11-29 12:00:01 [core.py:2] Out of Memory",
    *(f"INFO 11-29 12:00:00 [a.py:1] line {i}" for i in range(61, 120)),
)


async def log_page(pilot: Pilot[Any]) -> ConsoleApp:
    app = await settled(pilot)
    app.workers.cancel_all()
    app.dashboard.post_message(LogSeen("/x.log", LOG))
    await until(pilot, lambda: app.dashboard.lower.log_text == LOG)
    await pilot.press("l")
    await shows(pilot, "line 119", "/ find")
    return app


async def test_what_is_looked_for_comes_into_view_while_it_is_typed() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("/", *"memory")
        await shows(pilot, "Out of Memory", "1 with 'memory'")
        await pilot.press("enter")
        await shows(pilot, "n N next, previous")
        await pilot.press("escape")
        await shows(pilot, "/ find", "Out of Memory")
        await pilot.press("escape")
        await shows(pilot, "hit rate")


async def test_n_goes_on_and_ampersand_leaves_only_these() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("/", *"line 1", "enter")
        await shows(pilot, "31 with 'line 1'")
        await pilot.press("&")
        await shows(pilot, "line 118", "line 101")
        await pilot.press("home")
        text = await shows(pilot, "line 1 ", "line 19")
        assert "line 20" not in text
        await pilot.press("n", "&")
        await shows(pilot, "of 120")


async def test_exclamation_mark_leads_to_the_next_error() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("!")
        await shows(pilot, "▸12:00:01 E Out of Memory", "error 1 of 1")
        await pilot.press("up")
        text = await shows(pilot, "E Out of Memory")
        assert "error 1" not in text
        assert "▸12" not in text


async def test_errors_at_the_end_of_a_log_are_gone_through_one_by_one_and_around() -> None:
    stamp = "(Worker_TP0 pid=9) ERROR 11-29 12:00:02 [m.py:3]"
    tail = (
        f"{stamp} Traceback:",
        f"{stamp}   File x",
        f"{stamp} torch.OutOfMemoryError: no room",
        f"{stamp} RuntimeError: so",
    )
    async with House(FakeServer(FAILED)).app().run_test() as pilot:
        app = await log_page(pilot)
        app.dashboard.post_message(LogSeen("/x.log", (*LOG, *tail)))
        for nth, said in ((2, "Traceback:"), (3, "torch.OutOfMemoryError"), (4, "RuntimeError"), (1, "Out of Memory")):
            await pilot.press("!")
            await shows(pilot, f"error {nth} of 4", f"E {said}")
        app.dashboard.post_message(LogSeen("/x.log", (*LOG[20:], *tail)))
        await shows(pilot, "error 1 of 4", "▸12:00:01 E Out of Memory")
        app.dashboard.post_message(LogSeen("/x.log", LOG[:20]))
        text = await shows(pilot, "line 19")
        assert "error 1" not in text


async def test_help_lies_over_the_page_and_leaves_what_was_looked_for() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("/", *"line 1", "enter", "&", "home", "?")
        await shows(pilot, "keys")
        await pilot.press("escape")
        await shows(pilot, "31 with 'line 1'", "line 10")
        await pilot.press("?", "l")
        await shows(pilot, "31 with 'line 1'")
        await pilot.press("?", "n")
        await shows(pilot, "nothing stands out")
        await pilot.press("escape")
        await shows(pilot, "hit rate")


async def test_what_was_said_goes_with_the_next_key() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("&")
        await shows(pilot, "nothing is looked for: / finds text")
        await pilot.press("up")
        await shows(pilot, "/ find", "esc back")


async def test_without_a_search_n_is_what_it_is_on_every_page() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        await log_page(pilot)
        await pilot.press("n")
        await shows(pilot, "nothing stands out")


async def test_letters_that_are_typed_do_nothing_else() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await log_page(pilot)
        await pilot.press("/", *"qhxe")
        await pilot.pause()
        assert "no line has 'qhxe'" in screen_text(app)
        assert app.return_value is None


@pytest.mark.parametrize(("needle", "there"), [("memory", True), ("Memory", True), ("MEMORY", False), ("mem x", False)])
def test_capitals_count_only_where_one_is_given(needle: str, there: bool) -> None:
    assert found_in((("Out of ", ""), ("Memory", "bad")), needle) is there


def test_what_is_found_stands_out_over_the_seams_of_spans() -> None:
    found = marked((("Out of ", "dim"), ("Memory now", "bad")), "f mem")
    assert found == (("Out o", "dim"), ("f ", "chosen"), ("Mem", "chosen"), ("ory now", "bad"))
    assert text_of(found) == "Out of Memory now"


def test_the_next_one_is_looked_for_around_the_end() -> None:
    lines = [line(str(i)) for i in range(4)]
    wanted = [False, True, False, True]
    assert next_line(lines, wanted, 1, 1) == 3
    assert next_line(lines, wanted, 3, 1) == 1
    assert next_line(lines, wanted, 1, -1) == 3
    assert next_line(lines, [False] * 4, 1, 1) is None
    assert next_line([], [], 0, 1) is None


def test_a_long_line_takes_several_rows_and_a_dump_ends() -> None:
    text = "INFO 11-29 12:00:00 [a.py:1] " + "x" * 100
    found = rows(pretty(text), 60)
    assert [text_of(row) for row in found] == ["12:00:00 " + "x" * 51, " " * 9 + "x" * 49]
    assert text_of(rows(pretty("y" * 5000), 60)[-1]) == "… 5,000 characters in all: z cuts lines, then → shows the rest"
    assert len(rows(pretty("y" * 5000), 60)) == 6


async def test_an_exclamation_mark_where_nothing_is_bad_says_so() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("l", "!")
        await shows(pilot, "no line here tells of an error")


async def test_without_a_hit_the_page_stays_and_every_key_says_why_it_does_nothing() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await log_page(pilot)
        await pilot.press("/")
        await shows(pilot, "capitals count where you type one")
        # The first letters are there, far from here; the whole word is not.
        await pilot.press(*"out")
        await shows(pilot, "Out of Memory")
        await pilot.press(*"side", "enter")
        await shows(pilot, "no line has 'outside' · end", "line 119")
        for key in ("n", "&"):
            await pilot.press(key)
            await shows(pilot, "▸ no line has 'outside'")
            app.screen.note("")  # type: ignore[attr-defined]
            await until(pilot, lambda: "▸ no line" not in screen_text(app))
        assert "line 119" in screen_text(app)


async def test_ampersand_without_a_search_says_how_one_begins() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await log_page(pilot)
        await pilot.press("&")
        await shows(pilot, "nothing is looked for: / finds text")


async def test_the_rest_of_a_long_line_is_seen_by_the_keys_that_stand_beside_it() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        app.workers.cancel_all()
        app.dashboard.post_message(LogSeen("/x.log", ("x" * 4000 + "the end",)))
        await pilot.press("l")
        await shows(pilot, "… 4,007 characters in all: z cuts lines, then → shows the rest", "z cut lines")
        await pilot.press("z", *["right"] * 200)
        await shows(pilot, "the end", "z wrap lines")


async def test_what_stands_over_the_end_of_a_row_is_found_and_counted_once_a_line() -> None:
    long = "INFO 11-29 12:00:02 [a.py:1] " + "x" * 66 + " is free of all that " + "x is free " * 9
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await log_page(pilot)
        app.dashboard.post_message(LogSeen("/x.log", (*LOG, long)))
        await pilot.press("/", *"is free", "enter")
        await shows(pilot, "1 with 'is free'", "▸12:00:02 xxx")
        marked_rows = [row for row in app.screen._panel._body if any(tone == "chosen" for _, tone in row)]  # type: ignore[attr-defined]
        assert [tone for _, tone in marked_rows[0]][-1] == "chosen", "over the seam of two rows"
        assert sum(tone == "chosen" for row in marked_rows for _, tone in row) >= 11
        await pilot.press("&")
        text = await shows(pilot, "1 with 'is free'", "12:00:02 xxx")
        assert "line 119" not in text
        assert text.count("x is free") >= 8
        await pilot.press("z")
        await shows(pilot, "1 with 'is free'")
        await pilot.press("&", "escape", "end", "!")
        await shows(pilot, "E Out of Memory", "error 1 of 1")


async def test_what_stands_over_the_end_of_a_sentences_row_is_not_said_to_be_missing() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press("?")
        await shows(pilot, "keys")
        page = app.screen
        assert isinstance(page, Pager)
        page._content = lambda _width: ("keys", [line("what is said"), line("  goes on here")])
        await pilot.press("/", *"said goes")
        await shows(pilot, "'said goes' stands over the end of a row")
        await pilot.press("x")
        await shows(pilot, "no line has 'said goesx'")
