"""What does not change costs nothing: no repaint, no byte; and what the console does at rest stays small."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot
from textual.strip import Strip

from console.tui.app import ConsoleApp
from console.tui.messages import CardsSeen, LogSeen, ReadingSeen, StatusSeen
from console.tui.widgets.drawing import Drawing
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Lines, line
from tests.tui.fakes import BUSY, CARDS, READY, FakeServer, House, shows, until

_REFRESH_S = 0.1
"""Textual paints what was asked for within a sixtieth of a second."""
LAZY = ("httpx", "numpy", "pynvml", "uvicorn", "console.lab", "console.metrics.feed", "console.gpu.nvml", "console.sim")


def test_the_first_frame_waits_for_no_heavy_module() -> None:
    code = f"import sys, console.tui.app; print([name for name in {LAZY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.fixture
def painted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each widget drew a line."""
    counts: Counter[str] = Counter()
    for kind in (Form, Lines):

        def counting(self: Form | Lines, y: int, draw: object = kind.render_line) -> Strip:
            counts[self.name or self.id or ""] += 1
            assert callable(draw)
            strip = draw(self, y)
            assert isinstance(strip, Strip)
            return strip

        monkeypatch.setattr(kind, "render_line", counting)
    return counts


async def quiet(pilot: Pilot[int]) -> ConsoleApp:
    """A dashboard that has shown everything once and whose pollers rest."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await shows(pilot, "● ready", "2x RTX 5060 Ti", "1 qwen3.8")
    app.workers.cancel_all()
    for message in (ReadingSeen(BUSY), LogSeen("x", ("a line",))):
        app.dashboard.post_message(message)
    await pilot.press("tab")
    await shows(pilot, "92.4 %", "a line")
    await pilot.pause(_REFRESH_S)
    return app


async def test_the_same_again_paints_nothing(painted: Counter[str]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        app = await quiet(pilot)
        painted.clear()
        for _ in range(3):
            for message in (StatusSeen(READY), CardsSeen(CARDS), ReadingSeen(BUSY), LogSeen("x", ("a line",))):
                app.dashboard.post_message(message)
            await pilot.pause()
            app.dashboard.paint()
            await pilot.pause(_REFRESH_S)
        assert not painted


async def test_one_figure_that_changes_is_one_line_painted(painted: Counter[str]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        app = await quiet(pilot)
        painted.clear()
        app.dashboard.post_message(ReadingSeen(replace(BUSY, generation_tokens_per_s=35.0)))
        await pilot.pause()
        app.dashboard.paint()
        await shows(pilot, "35.0 tok/s")
        assert painted == {"reading": 1}


async def test_a_second_that_passes_changes_no_text_of_an_idle_server(painted: Counter[str]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(120, 40)) as pilot:
        app = await quiet(pilot)
        painted.clear()
        assert READY.uptime_s is not None
        app.dashboard.post_message(StatusSeen(replace(READY, uptime_s=READY.uptime_s + 1)))
        await pilot.pause(_REFRESH_S)
        assert not painted


class OneForm(App[None]):
    CSS = "Form { height: 1; } Lines { width: 20; height: 5; }"

    def compose(self) -> ComposeResult:
        yield Form((Drawing.of("a {a  } b {b  }"),), id="form")
        yield Lines(id="lines")


async def test_a_line_that_changes_is_one_line_painted(painted: Counter[str]) -> None:
    async with OneForm().run_test(size=(40, 10)) as pilot:
        lines = pilot.app.query_one(Lines)
        lines.show([line(str(i)) for i in range(5)])
        await shows(pilot, "\n4 ")
        await pilot.pause(_REFRESH_S)
        painted.clear()
        lines.show([line(str(i) if i != 3 else "new") for i in range(5)])
        await until(pilot, lambda: painted["lines"] > 0)
        assert painted == {"lines": 1}


async def test_a_value_repaints_its_own_cells_and_an_equal_one_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with OneForm().run_test(size=(40, 10)) as pilot:
        form = pilot.app.query_one(Form)
        form.show("a", "12", "warn")
        await pilot.pause()
        asked: list[Region] = []
        monkeypatch.setattr(form, "refresh", lambda *regions, **_: asked.extend(regions))
        form.show("a", "12", "warn")
        assert asked == []
        form.show("a", "13", "warn")
        assert asked == [Region(2, 0, 5, 1)]
