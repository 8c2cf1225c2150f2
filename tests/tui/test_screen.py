"""Each state of server, cards, figures and run on the dashboard, at 80x24 and at 120x40."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from console.errors import ConsoleError
from console.gpu.sample import GpuReport, GpuSample
from console.presets import Catalog
from console.server.status import Phase, ServerStatus, State
from console.tui.app import ConsoleApp
from console.tui.messages import CatalogSeen, LogSeen, ReadingLost, ReadingSeen, StatusSeen
from console.tui.widgets.form import Form
from tests.tui.fakes import (
    BROKEN,
    BUSY,
    CARDS,
    DIAGNOSIS,
    FAILED,
    IDLE,
    PRESETS,
    READY,
    STARTING,
    FakeServer,
    House,
    screen_text,
    shows,
    sizes,
    until,
)

LOG = (
    "(APIServer pid=7) INFO 11-29 12:00:00 [api_server.py:1] Starting vLLM server on http://127.0.0.1:8000",
    "(EngineCore pid=8) WARNING 11-29 12:00:01 [core.py:2] a warning",
)


def app_of(pilot: Pilot[Any]) -> ConsoleApp:
    assert isinstance(pilot.app, ConsoleApp)
    return pilot.app


def whole_width(text: str, size: tuple[int, int]) -> None:
    """Every row fills the terminal and none is wider: nothing wraps, nothing is left undrawn."""
    rows = text.split("\n")
    assert len(rows) == size[1]
    assert {len(row) for row in rows} == {size[0]}


@sizes
async def test_stopped(size: tuple[int, int]) -> None:
    async with House().app().run_test(size=size) as pilot:
        lower = "no server has run yet" if size[0] == 80 else "TTFT to"
        text = await shows(pilot, "○ stopped", "1 qwen3.8-27b-nvfp4-100k", "2x RTX 5060 Ti", lower)
        assert "▸1 qwen3.8-27b-nvfp4-100k" in text
        assert "hit rate" in text
        assert "SIMULATED" not in text
        whole_width(text, size)


@sizes
async def test_starting_shows_the_phases_in_place_of_figures(size: tuple[int, int]) -> None:
    async with House(FakeServer(STARTING, after_start=STARTING)).app().run_test(size=size) as pilot:
        text = await shows(pilot, "◐ compile · 1m24s", "✓ load", "▸ compile", "torch.compile 12.3 s", "· warm-up")
        assert "hit rate" not in text
        whole_width(text, size)


@sizes
async def test_a_start_tells_its_progress_and_what_its_silence_means(size: tuple[int, int]) -> None:
    far = replace(STARTING, progress=0.62, eta_s=51.0)
    house = House(FakeServer(far, after_start=far))
    async with house.app().run_test(size=size) as pilot:
        text = await shows(pilot, "about 50 s left", "████░", " 62 %")
        whole_width(text, size)
        app_of(pilot).workers.cancel_all()
        silent = replace(STARTING, silence="nothing printed for 90 s: usual while kernels compile", silent_s=90.0)
        app_of(pilot).dashboard.post_message(StatusSeen(silent))
        whole_width(await shows(pilot, "usual while kernels compile"), size)
        app_of(pilot).dashboard.post_message(StatusSeen(replace(STARTING, diagnosis=DIAGNOSIS)))
        whole_width(await shows(pilot, f"▲     {DIAGNOSIS.what}"), size)


async def test_a_prefill_under_way_is_said() -> None:
    async with House(FakeServer(replace(READY, prefill_s=37.0))).app().run_test() as pilot:
        await shows(pilot, "● ready · prefill 35 s")


@sizes
async def test_ready_and_idle(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready · up 3h12m")
        app_of(pilot).dashboard.post_message(ReadingSeen(IDLE))
        text = await shows(pilot, "n/a", "81.0 %", "30 s")
        assert "none yet" in text
        assert " off " in text
        whole_width(text, size)


@sizes
async def test_busy_shows_every_figure_with_its_n_and_window(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        await shows(pilot, "● ready")
        app_of(pilot).dashboard.post_message(ReadingSeen(BUSY))
        texts = [
            "92.4 %",
            "81.0 %",
            "96,231",
            "8,120",
            "1,600",
            "412 ms",
            "250-500 ms",
            "1.00-2.50 s",
            "28.1 ms",
            "3,421",
            "30 s",
        ]
        texts += ["10.2 ms", "41.2 %", "34.2 tok/s", "1,402 tok/s", "81.2 %", "2.62", "1,021", "91.2 %  72.0 %  55.1 %"]
        text = await shows(pilot, *texts, "15 s ago", "8.32 s", "2 min, n 2")
        for label in ("TTFT", "ITL", "TPOT", "queue", "prefix cache", "scheduler", "throughput", "MTP", "life"):
            assert label in text
        whole_width(text, size)


@sizes
async def test_the_cards_show_what_matters(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        text = await shows(pilot, "14.62/15.93", "812.3 MB/s", "1.2 GB/s", "gen5 x8", "87 %", "61 °C", "142")
        assert text.count("14.62/15.93") == 2


@sizes
async def test_a_lost_card_is_a_row_with_its_reason(size: tuple[int, int]) -> None:
    lost = GpuSample(index=1, problem="The driver has lost this card (GPU is lost): reboot, look at dmesg for Xid.")
    house = House(FakeServer(READY), cards=GpuReport(0.0, (CARDS.cards[0], lost)))
    async with house.app().run_test(size=size) as pilot:
        text = await shows(pilot, "✖ The driver has lost this card", "14.62/15.93")
        assert text.count("gen5 x8") == 1
        house.cards = CARDS
        await until(pilot, lambda: screen_text(pilot.app).count("gen5 x8") == 2)


@sizes
async def test_no_card_at_all_is_one_sentence(size: tuple[int, int]) -> None:
    house = House(cards=GpuReport(0.0, (), "No NVIDIA driver on this machine."))
    async with house.app().run_test(size=size) as pilot:
        text = await shows(pilot, "No NVIDIA driver on this machine.")
        assert "gen" not in text.split("\n")[2]
        whole_width(text, size)


async def test_more_cards_than_expected_get_rows_too() -> None:
    cards = tuple(replace(CARDS.cards[0], index=i) for i in range(4))
    async with House(cards=GpuReport(0.0, cards)).app().run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: screen_text(pilot.app).count("14.62/15.93") == 4)


@sizes
async def test_a_failed_server_shows_what_why_and_fix_in_place_of_figures(size: tuple[int, int]) -> None:
    async with House(FakeServer(FAILED)).app().run_test(size=size) as pilot:
        text = await shows(
            pilot, "✖ failed · kv-too-small", DIAGNOSIS.what, DIAGNOSIS.why, DIAGNOSIS.fix, "cause kv-too-small"
        )
        assert "to serve at least one request" in text
        assert "hit rate" not in text
        whole_width(text, size)


async def test_a_long_diagnosis_never_loses_its_fix() -> None:
    long = replace(DIAGNOSIS, why="why " * 200, fix="fix it " * 20 + "THE END")
    async with House(FakeServer(replace(FAILED, diagnosis=long))).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, DIAGNOSIS.what, "THE END", "cause kv-too-small")


@sizes
async def test_stale_figures_say_their_age_and_are_greyed(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        dashboard = app_of(pilot).dashboard
        await shows(pilot, "● ready")
        dashboard.post_message(ReadingSeen(BUSY))
        await shows(pilot, "92.4 %")
        dashboard.post_message(ReadingLost(ConsoleError("/metrics did not answer", "no answer within 2 s"), 42.0))
        text = await shows(pilot, "figures are 40 s old: /metrics did not answer (no answer within 2 s)", "92.4 %")
        assert dashboard.query_one("#reading", Form).old
        whole_width(text, size)
        dashboard.post_message(ReadingSeen(BUSY))
        await until(pilot, lambda: "old:" not in screen_text(pilot.app))
        assert not dashboard.query_one("#reading", Form).old


@sizes
async def test_the_log_is_condensed_and_loud_lines_are_marked(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app_of(pilot).dashboard.post_message(LogSeen("x.log", LOG))
        if size[0] == 120:
            await shows(pilot, "TTFT to")
            await pilot.press("tab")
        text = await shows(pilot, "Starting vLLM server on", "W a warning")
        assert "APIServer" not in text
        assert ("12:00:01 W" in text) == (size[0] == 120)


@sizes
async def test_a_broken_preset_is_listed_and_hides_nothing(size: tuple[int, int]) -> None:
    async with House(problems=(BROKEN,)).app().run_test(size=size) as pilot:
        text = await shows(pilot, "4 typo", "✖", "1 qwen3.8-27b-nvfp4-100k")
        assert "3 qwen3.8-27b-nvfp4-122k-sing" in text


@pytest.mark.parametrize("key", ["", "?", "l", "v", "x", "ctrl+c"])
@sizes
async def test_simulated_is_said_on_every_screen(size: tuple[int, int], key: str) -> None:
    house = House(FakeServer(replace(READY, simulated=True)), demo=True)
    async with house.app().run_test(size=size) as pilot:
        await shows(pilot, "● ready", "SIMULATED")
        if key:
            await pilot.press(key)
            await pilot.pause()
        assert "SIMULATED" in screen_text(pilot.app)


async def test_simulated_is_said_of_a_simulated_server_outside_a_demo_too() -> None:
    async with House(FakeServer(replace(READY, simulated=True))).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "SIMULATED")


async def test_a_note_beside_the_state_is_shown() -> None:
    async with House(FakeServer(replace(READY, note="its keeper was lost"))).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "its keeper was lost", "● ready")


async def test_resizing_folds_and_unfolds() -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "● ready", "presets")
        await pilot.resize_terminal(120, 40)
        text = await shows(pilot, "p99", "presets", "A/B", "log", "127.0.0.1:8000")
        whole_width(text, (120, 40))
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: "p99" not in screen_text(pilot.app) and "─ log" in screen_text(pilot.app))
        whole_width(screen_text(pilot.app), (80, 24))


async def test_figures_that_go_because_the_server_is_stopped_are_no_fault() -> None:
    house = House(FakeServer(READY, slow=True))
    async with house.app().run_test() as pilot:
        app = app_of(pilot)
        await shows(pilot, "● ready")
        app.workers.cancel_all()
        lost = ReadingLost(ConsoleError("http://x did not answer", "refused"), 9.0)
        app.dashboard.post_message(lost)
        await shows(pilot, "did not answer")
        app.dashboard.tell_note("reading", "")
        app.know(acting="stopping x")
        app.dashboard.post_message(lost)
        await pilot.pause()
        assert "did not answer" not in screen_text(app)


async def test_a_death_without_its_reason_yet_is_being_looked_into() -> None:
    async with House(FakeServer(ServerStatus(State.FAILED, preset="p"))).app().run_test() as pilot:
        await shows(pilot, "✖ failed", "looking for the reason")


async def test_a_server_elsewhere_is_watched() -> None:
    status = ServerStatus(State.FOREIGN, url="http://10.0.0.7:8000", model="m")
    async with House(FakeServer(status)).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "◇ foreign")
        app_of(pilot).dashboard.post_message(StatusSeen(status))
        await pilot.press("x")
        await shows(pilot, "watched, never touched")


async def test_why_no_card_is_there_is_read_whole() -> None:
    why = "No NVIDIA driver on this machine (libnvidia-ml.so.1 is missing): install the driver to see cards."
    async with House(FakeServer(READY), cards=GpuReport(0.0, problem=why)).app().run_test(size=(80, 24)) as pilot:
        text = await shows(pilot, "install the")
        assert why in " ".join(row.strip() for row in text.split("\n"))


async def test_a_preset_whose_file_is_gone_stays_under_the_cursor_and_starts_no_other() -> None:
    house = House()
    async with house.app().run_test(size=(80, 24)) as pilot:
        app = app_of(pilot)
        await shows(pilot, "1 qwen3.8")
        await pilot.press("3")
        name = PRESETS[2].name
        house.presets = PRESETS[:2]
        app.dashboard.post_message(CatalogSeen(Catalog({preset.name: preset for preset in house.presets})))
        await shows(pilot, "▸3 qwen3.8", "its file is gone")
        await pilot.press("enter")
        await shows(pilot, "any more", "put it back, or select another one")
        assert house.server.calls == []
        await pilot.press("escape")
        app.dashboard.post_message(CatalogSeen(Catalog({preset.name: preset for preset in PRESETS})))
        await until(pilot, lambda: app.situation.selected == name and not app.situation.broken)
        app.dashboard.post_message(CatalogSeen(Catalog({preset.name: preset for preset in PRESETS[:2]})))
        await until(pilot, lambda: app.situation.broken)
        await pilot.press("up")
        app.dashboard.post_message(CatalogSeen(Catalog({preset.name: preset for preset in PRESETS[:2]})))
        await until(pilot, lambda: len(app.dashboard.lower.entries) == 2)
        assert app.situation.selected == PRESETS[1].name


@sizes
async def test_a_crash_that_is_waited_after_says_why_and_how_long(size: tuple[int, int]) -> None:
    waits = replace(
        FAILED, state=State.STARTING, phase=Phase.START, detail="again after a crash", restarts=1, restart_in_s=75.0
    )
    async with House(FakeServer(waits, after_start=waits)).app().run_test(size=size) as pilot:
        await shows(
            pilot,
            "◐ starts again in 1m15s",
            " crashed ─",
            "starts again in 1m15s · x calls it off",
            "set max-model-len to 61,440",
        )
        await pilot.press("n")
        await shows(pilot, " crashed", "set max-model-len to 61,440")
