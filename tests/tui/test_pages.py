"""The pages over the whole screen: what they show, how one gets from one to the other and back."""

from __future__ import annotations

import re
import sqlite3
import time
from pathlib import Path

import pytest

from console.lab.view import read_run
from console.server.history import LEFT_OUT, History
from console.server.minutes import Boot, CardMinute, Minute, Store, history_path
from console.server.status import ServerStatus, State
from console.tui.card_lines import WholeCards, card_lines
from console.tui.chain_lines import around, chain_lines, server_lines
from console.tui.help_lines import help_lines
from console.tui.history_lines import history_lines
from console.tui.interval_lines import interval_lines
from console.tui.screens.page import Page
from console.tui.screens.pager import Pager
from console.tui.sparks import spark
from tests.tui.fakes import (
    BROKEN,
    GIB,
    READY,
    WHOLE,
    FakeServer,
    House,
    screen_text,
    settled,
    shows,
    sizes,
    texts,
    until,
)
from tests.unit.lab_runs import make_run, whole_run


@sizes
async def test_e_shows_the_chain_link_by_link(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("e")
        text = await shows(pilot, "execution chain", "not known", "prefix caching", "on vLLM 0.32.0")
        assert {len(row) for row in text.split("\n")} == {size[0]}
        await pilot.press("e")
        await shows(pilot, "hit rate")


async def test_e_says_where_the_server_answers() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        assert "127.0.0.1:8000" not in await shows(pilot, "● ready")
        await pilot.press("e")
        await shows(pilot, "address  http://127.0.0.1:8000 · qwen3.8-27b · vLLM 0.32.0")


@pytest.mark.parametrize(
    ("state", "log", "said"),
    [
        (
            State.STOPPED,
            "/x/20261129T120000.000Z-one.log",
            r"No server runs: .* of the last start \(one\), at 2026-11-\d\d \d\d:\d\d",
        ),
        (State.FAILED, "/x/odd.log", r"No server runs: all of this is of the last start \(one\)\.$"),
        (State.STOPPED, None, r"No server has run yet"),
        (State.READY, "/x/odd.log", r"address  http://x$"),
    ],
)
def test_the_chain_of_no_server_says_that_it_is_of_the_last_start(state: State, log: str | None, said: str) -> None:
    rows = texts(server_lines(ServerStatus(state, preset="one", url="http://x", log=log), 100))
    assert re.match(said, rows[0])


async def test_l_before_any_server_says_so() -> None:
    async with House().app().run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press("l")
        await shows(pilot, "─ log ─", "no server has run yet", "esc back")


async def test_every_sign_is_in_the_help() -> None:
    rows = "\n".join(texts(help_lines({}, 80, 20)))
    for text in ("○ stopped", "▸ under way", "▲ better", "▼ worse", "= same", "? open", "just short of that word"):
        assert text in rows, text


@pytest.mark.parametrize("width", [58, 78, 118])
def test_no_line_is_wider_than_its_page(width: int) -> None:
    from tests.tui.fakes import FakeServer as Fake

    chain = Fake(READY).chain(None)
    for lines in (card_lines(WholeCards(WHOLE, {4711: "x"}), width), chain_lines(chain, width)):
        assert max(map(len, texts(lines))) <= width


@pytest.fixture
def recorded() -> Path:
    """An hour of a server on record."""
    path = history_path(House().services().paths.state)
    path.parent.mkdir(parents=True)
    store, now = Store(path), int(time.time() // 60 * 60)
    boot = Boot("l1", "one-preset", "0.32.0", "m", True, now - 3600)
    for i in range(60):
        minute = Minute(
            now - 3600 + i * 60,
            "l1",
            60.0,
            requests=2,
            ttft_n=2,
            ttft_s=0.5 + i / 60,
            cached_tokens=900,
            computed_tokens=100,
            prefix_queries=1000,
            prefix_hits=900,
            generation_tokens=600 + i,
        )
        store.keep(boot, minute, [CardMinute(minute.at, "l1", 0, 14 * GIB, 1e9, 1e8, 120.0, 61)])
    store.close()
    return path


@sizes
async def test_h_shows_what_was_recorded(size: tuple[int, int], recorded: Path) -> None:
    assert sqlite3.connect(recorded).execute("SELECT count(*) FROM minutes").fetchone() == (60,)
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("h")
        text = await shows(
            pilot, "one-preset SIMULATED", "requests ended 120", "90.0 %", "VRAM peak 14.00 GiB", "▃▄", "▇█"
        )
        assert LEFT_OUT in text
        assert {len(row) for row in text.split("\n")} == {size[0]}


async def test_h_without_a_record_says_how_one_comes() -> None:
    async with House().app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("h")
        await shows(pilot, "nothing is recorded yet")


def test_a_torn_record_is_a_sentence() -> None:
    assert texts(history_lines(History(problem="it cannot be read"), 78)) == ["it cannot be read", LEFT_OUT]
    assert texts(history_lines(History(), 78)) == ["nothing was recorded in this time", LEFT_OUT]


PAGES = {"l": "log", "e": "chain", "g": "cards", "n": "notices", "?": "help", "v": "details"}


async def test_from_any_page_one_key_leads_to_any_other_and_esc_back() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await settled(pilot)

        def front() -> str:
            return app.screen.page if isinstance(app.screen, Pager) else ""

        for key, page in PAGES.items():
            await pilot.press(key)
            await until(pilot, lambda page=page: front() == page)  # type: ignore[misc]
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        await until(pilot, lambda: front() == "")


async def test_p_tests_the_prefix_cache_and_tells_the_verdict() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("p")
        await shows(pilot, "the prefix cache works: 4800 of 5200 tokens")
        assert house.calls == ["probe"]


async def test_p_without_a_server_says_so() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("p")
        await shows(pilot, "no server is ready")
        assert house.calls == []


def test_sparks_keep_gaps_and_show_what_is_small() -> None:
    assert spark([0.0, 1.0, None, 8.0], 8) == "▁▁ █"
    assert spark([1.0, 3.0, 5.0, 7.0], 2) == "▃█"
    assert spark([], 8) == ""
    assert spark([0.0, 0.0], 8) == "▁▁"


@sizes
async def test_d_shows_the_preset_in_full(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("2", "d")
        text = await shows(
            pilot, "the same with MTP", "max-num-seqs: 2 → 4", "▲     speculative-config: the first repeat"
        )
        assert "env.VLLM_API_KEY: (secret) → (secret)" in text
        assert "api-key: " in text
        assert "hunter" not in text
        assert "max-model-len" not in text
        assert {len(row) for row in text.split("\n")} == {size[0]}
        await pilot.press("end")
        await shows(pilot, "version 0.32.0", "vllm serve m")


async def test_d_on_a_broken_preset_says_what_is_wrong_with_it() -> None:
    async with House(problems=(BROKEN,)).app().run_test() as pilot:
        await settled(pilot)
        await pilot.press("4", "d")
        await shows(pilot, "no flag --max-modle-len", "did you mean `max-model-len`?")


def test_the_intervals_of_a_run_are_drawn_on_one_axis() -> None:
    run = read_run(whole_run("mtp").folder)
    rows = texts(interval_lines(run, 78))
    assert max(map(len, rows)) <= 78
    axis = rows[0].index("0 ", 32 + rows[0][32:].index("%"))
    (faster,) = (row for row in rows[1:-1] if row.startswith("TPOT "))
    assert faster.index("●") < axis
    assert "│" in faster[axis - 1 : axis + 2]
    assert interval_lines(run, 40) == []


def test_before_the_first_round_nothing_is_drawn() -> None:
    assert interval_lines(read_run(make_run("mtp", rounds=2).folder), 78) == []


def test_a_proof_is_cut_around_what_it_proves() -> None:
    proof = "non-default args: {'model': 'unsloth/Qwen3.8-27B-NVFP4', 'max_model_len': 102400, 'kv': 'fp8', 'seed': 1}"
    assert "'fp8'" in around(proof, "fp8", 40)
    assert len(around(proof, "fp8", 40)) == 40
    assert around(proof, "not in it", 20) == f"{proof[:19]}…"
    assert around("short", "x", 20) == "short"


async def test_the_footer_of_a_page_offers_only_what_would_be_done() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        await shows(pilot, "● ready")
        for key, never in (("v", ("o adopt", "x stop run", "< >")), ("d", ("enter start", "enter switch"))):
            await pilot.press(key)
            text = await shows(pilot, "esc back")
            assert not [word for word in never if word in text.split("\n")[-1]], key
        await shows(pilot, "1 of 3 presets")
        await pilot.press(">")
        await shows(pilot, "2 of 3 presets", "enter switch")
        for key in ("e", "g", "h", "n"):
            await pilot.press(key)
            assert "! error" not in (await shows(pilot, "esc back"))
        await pilot.press("l")
        await shows(pilot, "─ log", "! error")


async def test_a_page_never_loses_that_it_is_simulated() -> None:
    house = House(FakeServer(READY), demo=True)
    async with house.app().run_test(size=(60, 15)) as pilot:
        await settled(pilot)
        for key in ("d", "l", "v", "e", "g", "h", "n", "t", "?"):
            await pilot.press(key)
            await until(pilot, lambda: "SIMULATED" in screen_text(pilot.app).split("\n")[0])
            assert isinstance(pilot.app.screen, Page)


def test_the_proof_of_a_value_without_a_word_is_found_by_the_links_name() -> None:
    proof = "non-default args: {'model_tag': 'm', 'port': 1, 'served_model_name': ['x'], 'tensor_parallel_size': 2}"
    assert "'tensor_parallel_size': 2" in around(proof, "TP 2, PP 1\nparallel", 44)
    assert around(proof, "TP 2, PP 1", 20).startswith("non-default")
