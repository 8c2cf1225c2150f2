"""Graphs: what a column means, what is sent when one changes, and where they stand."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region

from console.notices import Look
from console.series import Series
from console.server.minutes import Minute
from console.tui import recorded
from console.tui.app import ConsoleApp
from console.tui.graphs import Picture, ceiling, columns_of, eighths, of_card, picture, step_for
from console.tui.messages import NoticesSeen
from console.tui.screens.trends import Trends
from console.tui.widgets.graph import Graph
from tests.tui.fakes import BUSY, CARDS, READY, SIZES, FakeServer, House, screen_text, settled, shows, until
from tests.unit.test_past import kept


def series(*samples: tuple[float, float | None]) -> Series:
    made = Series()
    for at, value in samples:
        made.add(at, value)
    return made


def test_a_column_is_the_largest_of_its_time_and_now_is_at_the_right_edge() -> None:
    made = series((90, 9.0), (100, 1.0), (104, 3.0), (105, 2.0), (110, None), (115, 5.0))
    assert columns_of(made, 119.0, 5, 5) == (None, 3.0, 2.0, None, 5.0)


def test_the_newest_column_grows_in_place_and_all_move_when_it_is_complete() -> None:
    made = series(*((float(at), float(at)) for at in range(100, 122)))
    assert columns_of(made, 121.0, 4, 5) == (109.0, 114.0, 119.0, 121.0)
    made.add(122.0, 122.0)
    assert columns_of(made, 122.0, 4, 5) == (109.0, 114.0, 119.0, 122.0)
    made.add(125.0, 1.0)
    assert columns_of(made, 125.0, 4, 5) == (114.0, 119.0, 122.0, 1.0)


@pytest.mark.parametrize(
    ("value", "top"), [(0.9, 1.0), (1.0, 1.0), (1.01, 2.0), (2.1, 5.0), (5.5, 10.0), (0.03, 0.05), (1234.0, 2000.0)]
)
def test_a_scale_ends_at_a_round_number(value: float, top: float) -> None:
    assert ceiling(value) == pytest.approx(top)


def test_a_column_stands_for_a_round_time() -> None:
    assert step_for(300, 28) == 15
    assert step_for(300, 300) == 5
    assert step_for(1e9, 10) == 3600


def test_zero_is_drawn_and_a_gap_is_not() -> None:
    assert eighths((0.0, None, 0.5, 1.0), 1.0, 2) == (1, None, 8, 16)


def test_a_card_has_a_fixed_scale_for_memory_and_one_scale_for_both_directions() -> None:
    rings = {
        "card 0 vram_used_bytes": series((100, 8 * 2**30)),
        "card 0 pcie_tx_bytes_per_s": series((100, 1e9)),
        "card 0 pcie_rx_bytes_per_s": series((100, 3e9)),
    }
    memory, traffic = (picture(kind, rings.__getitem__, 100.0, 4, 1) for kind in of_card(0, 16 * 2**30))
    assert memory.title == "card 0 VRAM to 16.0 GiB"
    assert (traffic.title, traffic.top) == ("card 0 PCIe TX/RX to 5.0 GB/s", 5e9)
    assert traffic.down == (None, None, None, 3e9)


class OneGraph(App[None]):
    CSS = "Graph { height: 5; width: 8; }"

    def compose(self) -> ComposeResult:
        yield Graph()


FIRST = Picture("x to 8", (8.0, 4.0, None, 1.0), 8.0)


async def test_bars_stand_and_hang() -> None:
    async with OneGraph().run_test(size=(20, 10)) as pilot:
        graph = pilot.app.query_one(Graph)
        graph.show(FIRST)
        await pilot.pause()
        rows = [graph.render_line(y).text for y in range(5)]
        assert rows == ["x to 8  ", "█       ", "█       ", "██      ", "██ ▄    "]
        graph.show(replace(FIRST, down=(8.0, 2.0, None, 4.0)))
        await pilot.pause()
        rows = [graph.render_line(y).text for y in range(5)]
        assert rows[1:3] == ["█       ", "██ ▂    "]
        assert rows[3:5] == ["█▄ █    ", "█       "]
        # The sign of the lower half, reversed, is the upper half.
        assert [bool(segment.style and segment.style.reverse) for segment in graph.render_line(3)][:2] == [False, True]


async def test_a_sample_is_one_column_on_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OneGraph().run_test(size=(20, 10)) as pilot:
        graph = pilot.app.query_one(Graph)
        graph.show(FIRST)
        await pilot.pause()
        asked: list[tuple[Region, ...]] = []
        monkeypatch.setattr(Graph, "refresh", lambda _, *regions, **__: asked.append(regions))
        graph.show(FIRST)
        assert asked == []
        graph.show(replace(FIRST, up=(8.0, 4.0, 2.0, 1.0)))
        assert asked == [(Region(2, 1, 1, 4),)]
        graph.show(replace(FIRST, top=10.0))
        assert asked[1:] == [()]
        graph.show(replace(FIRST, top=10.0, up=(1.0, 4.0, None, 2.0)))
        assert asked[2:] == [(Region(0, 1, 4, 4),)]


@pytest.mark.parametrize("size", [(120, 40), (160, 60)])
async def test_a_roomy_dashboard_has_graphs_while_a_server_serves(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await settled(pilot)
        await shows(pilot, "TTFT to 100 ms", "card 0 VRAM to 15.9 GiB", "card 1 PCIe TX/RX to 2.0 GB/s")
        app.workers.cancel_all()
        app.dashboard.post_message(NoticesSeen(Look(at=time.monotonic(), reading=BUSY), (), ()))
        text = await shows(pilot, "TTFT to 500 ms", "ITL to 50.0 ms", "output to 50.0 tok/s")
        assert ("─ log ─" in text) == (size[1] == 60)
        assert {len(row) for row in text.split("\n")} == {size[0]}
        await pilot.press("tab")
        await until(pilot, lambda: "─ log ─" in screen_text(app))


@pytest.mark.parametrize("size", [*SIZES, (60, 15)])
async def test_t_shows_the_graphs_over_the_whole_screen(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY), cards=CARDS).app().run_test(size=size) as pilot:
        await settled(pilot)
        await pilot.press("t")
        text = await shows(pilot, "hit rate", "card 1 PCIe", "-7 min … now, 15 s" if size[0] == 120 else "min … now")
        assert {len(row) for row in text.split("\n")} == {size[0]}
        assert ("running to 2" in text) == (size[0] == 120)
        await pilot.press("+", "+")
        await shows(pilot, "300 s a column" if size[0] == 120 else "s a column")
        await pilot.press("-", "-", "-")
        await pilot.press("t")
        await until(pilot, lambda: not isinstance(pilot.app.screen, Trends))


async def test_a_card_that_is_not_there_has_no_graphs() -> None:
    house = House(FakeServer(READY), cards=replace(CARDS, cards=CARDS.cards[:1]))
    async with house.app().run_test(size=(120, 40)) as pilot:
        await settled(pilot)
        text = await shows(pilot, "card 0 VRAM", "… now")
        assert "card 1 VRAM" not in text


async def test_a_console_that_comes_back_draws_what_was_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "_REST_S", 0.0)
    house = House(FakeServer(READY))
    services = house.services()
    begun = int(time.time()) // 60 * 60 - 120
    kept(services.paths.state, Minute(begun, "abc", 60.0, ttft_n=2, ttft_s=5.0))
    async with ConsoleApp(services).run_test(size=(120, 40)) as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: any(value == 2.5 for _, value in app.rings["ttft_s"]))
        await shows(pilot, "TTFT to 5.00 s")
        app.rings["ttft_s"].put_before([(0.0, 1.0)])
        before = len(app.rings["ttft_s"])
        await until(pilot, lambda: len(app.rings["ttft_s"]) > before)
        assert sum(value == 2.5 for _, value in app.rings["ttft_s"]) == 12, "told once"
