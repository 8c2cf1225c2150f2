"""An A/B run on the dashboard, at 80x24 and at 120x40."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.results import read_results
from console.lab.view import RunView, read_run, view_of
from console.tui import run_lines
from console.tui.messages import RunSeen, StatusSeen
from console.tui.search import text_of
from tests.tui.fakes import (
    PRESETS,
    READY,
    FakeServer,
    House,
    screen_text,
    shows,
    sizes,
    until,
)
from tests.tui.test_screen import app_of, whole_width
from tests.unit.lab_runs import Speed, make_run, whole_run


def running() -> RunView:
    made = make_run("mtp", rounds=2)
    made.boot(made.plan.boots()[0], Speed())
    with made.journal() as journal:
        journal.add("boot-start", n=2, arm="on", round=1, port=1)
        journal.add("step", n=2, text="decode 2/3")
    return replace(
        read_run(made.folder),
        state="running",
        verdict=None,
        step="round 1/2 · on · decode 2/3",
        eta_s=90.0,
        elapsed_s=61.0,
    )


@sizes
async def test_a_run_comes_into_view_with_step_progress_and_eta(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready")
        run = running()
        app_of(pilot).dashboard.post_message(RunSeen(run, live=True))
        text = await shows(
            pilot, "A/B MTP · small", "round 1/2 · on · decode 2/3", "about 1m30s left", "1 min so far", "✓ on  ▸ off"
        )
        assert f"{run.progress * 100:3.0f} %" in text
        assert "stop run" in text
        whole_width(text, size)


async def test_a_run_whose_folder_is_seen_before_its_process_comes_into_view_once() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "● ready")
        run = running()
        dashboard = app_of(pilot).dashboard
        dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: dashboard.lower.run is not None)
        await shows(pilot, "─ presets")
        dashboard.post_message(RunSeen(run, live=True))
        await shows(pilot, "round 1/2 · on · decode 2/3")
        await pilot.press("tab")
        again = replace(run, step="round 1/2 · on · decode 3/3")
        dashboard.post_message(RunSeen(again, live=True))
        await until(pilot, lambda: dashboard.lower.run is again)
        await shows(pilot, "─ presets")


@sizes
async def test_a_verdict_has_its_sentence_its_ratios_with_intervals_and_the_offer(size: tuple[int, int]) -> None:
    run = read_run(whole_run("mtp").folder)
    assert run.verdict is not None
    assert run.verdict.overall == "adopt"
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready")
        app = app_of(pilot)
        app.dashboard.post_message(RunSeen(run, live=False))
        await until(pilot, lambda: app.situation.run_ended)
        if size[0] < 120:
            await pilot.press("tab")
        pair = run.metrics["decode.tpot_s"].compare[0]
        assert pair.ratio is not None
        assert pair.lo is not None
        change, low = f"{(pair.ratio - 1) * 100:+.1f} %", f"[{(pair.lo - 1) * 100:+.1f}, "
        text = await shows(pilot, "✓ adopt on   ", "o writes arm on as a new preset", change, low, "▲ better")
        whole_width(text, size)


async def test_a_run_of_three_arms_names_arm_and_base_of_each_row() -> None:
    run = read_run(whole_run("chunk", arms=["512", "1024", "2048"]).folder)
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        app_of(pilot).dashboard.post_message(RunSeen(run, live=False))
        text = await shows(pilot, "vs 512", "TPOT                  1024", "TPOT                  2048")
        whole_width(text, (120, 40))


def test_the_smallest_terminal_shows_the_interval_and_what_it_says() -> None:
    run = read_run(whole_run("mtp").folder)
    assert run.verdict is not None
    for width in (57, 59):
        rows = [text_of(line) for line in run_lines.run_lines(run, width)]
        (row,) = (row for row in rows if row.startswith("TPOT "))
        assert row.endswith("▲ better")
        assert "]" in row
        assert len(row) <= width


def test_a_short_panel_shows_the_figures_that_decide_before_any_prose() -> None:
    run = read_run(whole_run("mtp").folder)
    rows = [text_of(line) for line in run_lines.run_lines(run, 78)]
    assert rows[0].startswith("✓ adopt on   o writes arm on")
    assert "95 % interval" in rows[1]
    assert rows[2].startswith("TPOT ")
    assert rows[2].endswith("▲ better")
    prose = next(i for i, row in enumerate(rows) if row.startswith("time per output token -50"))
    judged = [i for i, row in enumerate(rows) if "▲" in row or "= same" in row]
    assert max(judged) < prose < next(i for i, row in enumerate(rows) if row.startswith("gap (ITL) "))


@pytest.mark.parametrize(
    ("word", "sentence", "head", "behind"),
    [
        (
            "keep",
            "off holds: on is a trade, time per output token better but time to first token worse",
            "= keep: off holds   v all",
            "on is a trade, time per output token better but time to first token worse",
        ),
        ("undecided", "not settled yet: no data", "? undecided: not settled yet   v all", "no data"),
        (
            "undecided",
            "one round only suggests, and has no interval: better x; worse y",
            "? undecided   v all",
            "one round only suggests, and has no interval: better x; worse y",
        ),
    ],
)
def test_the_sentence_goes_on_where_the_headline_ends(word: str, sentence: str, head: str, behind: str) -> None:
    run = read_run(whole_run("mtp").folder)
    assert run.verdict is not None
    run = replace(run, verdict=replace(run.verdict, overall=word, sentence=sentence, arm=None))
    rows = [text_of(line) for line in run_lines.run_lines(run, 120)]
    assert rows[0].startswith(head)
    assert behind in rows
    assert sum(head[2:].partition("   ")[0] in row for row in rows) == 1


def test_an_open_run_has_its_figures_first_too_and_what_is_worse_above_what_is_better() -> None:
    run = read_run(whole_run("mtp").folder)
    assert run.verdict is not None
    (pair,) = run.metrics["interference.ttft_s"].compare
    worse = replace(run.metrics["interference.ttft_s"], compare=(replace(pair, verdict="worse"),))
    sentence = "not settled yet: nothing is, " + "and so on, " * 30
    verdict = replace(run.verdict, overall="undecided", sentence=sentence, arm=None)
    run = replace(run, verdict=verdict, metrics={**run.metrics, "interference.ttft_s": worse})
    rows = [text_of(line) for line in run_lines.run_lines(run, 78)]
    assert rows[0].startswith("? undecided: not settled yet   v all")
    assert [row[:22].strip() for row in rows[2:5]] == ["TPOT", "TTFT beside a stream", "output, all sessions"]


def test_measures_stand_in_plain_words_where_there_is_room_and_are_explained_elsewhere() -> None:
    run = read_run(whole_run("mtp").folder)
    wide, narrow = ([text_of(line) for line in run_lines.full(run, width)] for width in (118, 78))
    assert any(row.startswith("time to first token, cold  ") for row in wide)
    assert not any(row.startswith("TTFT") or "· TTFT" in row for row in wide)
    assert any(row.startswith("TTFT, cold ") for row in narrow)
    assert "· TTFT, cold: time to first token, cold" in narrow


def test_warm_above_cold_is_explained_while_an_mtp_run_goes_on() -> None:
    run = replace(read_run(whole_run("mtp").folder), state="running", verdict=None)
    metrics = dict(run.metrics)
    metrics["agent.ttft_warm_s"], metrics["agent.ttft_cold_s"] = (
        metrics["agent.ttft_cold_s"],
        metrics["agent.ttft_warm_s"],
    )
    rows = [text_of(line) for line in run_lines.run_lines(replace(run, metrics=metrics), 120)]
    told = "\n".join(rows)
    # It must not push the table out of a short panel.
    explained = next(i for i, row in enumerate(rows) if "under MTP" in row)
    assert explained > next(i for i, row in enumerate(rows) if row.startswith("time per output token"))
    assert "under MTP vLLM computes the last cached block again" in told
    assert "under MTP" not in "\n".join(text_of(line) for line in run_lines.run_lines(run, 120))


def test_an_estimate_that_has_run_out_is_no_number() -> None:
    told = text_of(run_lines.run_lines(replace(running(), eta_s=0.0), 100)[0])
    assert "any moment" in told
    assert "left" not in told


@pytest.mark.parametrize(
    ("size", "said"),
    [
        ((60, 15), "qwen3.8…100k-mtp · arm off "),
        ((80, 24), "qwen3.8-2…-100k-mtp · arm off "),
        ((120, 40), "· arm off "),
    ],
)
async def test_the_header_names_the_arm_that_runs(size: tuple[int, int], said: str) -> None:
    name = f"{READY.preset}-mtp"
    run = replace(running(), preset=name, arm="off")
    async with House(FakeServer(replace(READY, preset=name))).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready")
        dashboard = app_of(pilot).dashboard
        dashboard.post_message(RunSeen(run, live=True))
        text = await shows(pilot, said)
        assert "● ready" in text.split("\n")[0]
        whole_width(text, size)
        dashboard.post_message(RunSeen(replace(run, arm=None), live=True))
        await until(pilot, lambda: "arm off" not in screen_text(pilot.app).split("\n")[0])
        dashboard.post_message(RunSeen(run, live=True))
        await shows(pilot, said)
        await pilot.resize_terminal(120, 40)
        await shows(pilot, "qwen-console   ", "k-mtp · arm off ")
        dashboard.post_message(RunSeen(replace(run, state="done"), live=False))
        await until(pilot, lambda: "arm off" not in screen_text(pilot.app).split("\n")[0])


async def test_a_server_of_another_preset_is_no_arm() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "● ready")
        app_of(pilot).dashboard.post_message(RunSeen(replace(running(), preset="other", arm="off"), live=True))
        await shows(pilot, "A/B MTP · other")
        assert "arm off" not in screen_text(pilot.app).split("\n")[0]


def test_the_arm_is_that_of_the_boot_under_way() -> None:
    made = make_run("mtp", rounds=2)

    def arm(state: str = "running") -> str | None:
        results = read_results(made.folder)
        assert results is not None
        return view_of(results, state, 0.0).arm

    first, second = made.plan.boots()[:2]
    assert arm() is None
    made.boot(first, Speed())
    assert arm() is None
    with made.journal() as journal:
        journal.add("boot-start", n=2, arm=second[2], round=1, port=1)
        journal.add("step", n=2, text="decode 2/3")
    assert arm() == second[2]
    assert arm("interrupted") is None


async def test_the_cursor_goes_along_with_servers_and_not_with_the_arms_of_a_run() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = app_of(pilot)
        await shows(pilot, "● ready")
        first, second, third = (preset.name for preset in PRESETS)

        async def sees(name: str, chosen: str) -> None:
            house.server.now = replace(READY, preset=name)
            app.dashboard.post_message(StatusSeen(house.server.now))
            await until(pilot, lambda: app.situation.status.preset == name)
            assert app.situation.selected == chosen

        await sees(second, second)
        app.dashboard.post_message(RunSeen(running(), live=True))
        await until(pilot, lambda: app.situation.run is not None)
        await sees(third, second)
        await sees(first, second)


async def test_a_console_that_comes_during_a_run_has_its_cursor_on_the_runs_preset() -> None:
    house = House(FakeServer(replace(READY, preset=PRESETS[2].name)))
    async with house.app().run_test() as pilot:
        app = app_of(pilot)
        app.dashboard.post_message(RunSeen(running(), live=True))
        await until(pilot, lambda: app.situation.known and app.situation.listed)
        await until(pilot, lambda: app.situation.selected == PRESETS[2].name)
