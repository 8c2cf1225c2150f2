"""What the screen hands out: files, the clipboard, the bell, and ASCII where nothing else is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from console.lab.view import read_run
from console.server.status import ServerStatus, State
from console.tui import ringing, shortened
from console.tui.app import ConsoleApp
from console.tui.ascii_signs import plain
from console.tui.config import Config
from console.tui.keeping import COPIED_BYTES, copy_screen
from console.tui.messages import LogSeen, ReadingSeen, RunSeen, StatusSeen
from tests.tui.fakes import BUSY, DIAGNOSIS, FAILED, READY, FakeServer, House, settled, shows, until
from tests.unit.lab_runs import whole_run


async def test_w_writes_text_and_figures_of_the_screen() -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(ReadingSeen(BUSY))
        await shows(pilot, "92.4 %", "14.62/15.93")
        await pilot.press("w")
        await shows(pilot, "wrote ")
    (path,) = (app.services.paths.state / "screens").iterdir()
    text = path.read_text()
    assert "prefix cache" in text
    assert "92.4 %" in text
    figures = json.loads(text[text.index("\n{") :])
    assert figures["reading"]["generation_tokens_per_s"] == BUSY.generation_tokens_per_s
    assert figures["server"]["state"] == "ready"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_w_on_a_page_writes_all_of_it() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(LogSeen("/x.log", tuple(f"line {i}" for i in range(200))))
        await until(pilot, lambda: bool(app.dashboard.lower.log_text))
        await pilot.press("l")
        await shows(pilot, "line 199")
        await pilot.press("w")
        await shows(pilot, "wrote ")
    (path,) = (app.services.paths.state / "screens").iterdir()
    assert "line 0\n" in path.read_text()


async def test_w_where_nothing_can_be_written_says_why() -> None:
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        app.services.paths.state.mkdir(parents=True)
        (app.services.paths.state / "screens").write_text("in the way")
        await pilot.press("w")
        await shows(pilot, "not written:")


async def test_y_copies_and_a_long_text_is_cut() -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await settled(pilot)
        await shows(pilot, "● ready")
        await pilot.press("y")
        await shows(pilot, "copied, ")
        assert "● ready" in app.clipboard
        app.dashboard.post_message(LogSeen("/x.log", tuple(f"{i} {'x' * 60}" for i in range(2000))))
        await until(pilot, lambda: bool(app.dashboard.lower.log_text))
        await pilot.press("l")
        await shows(pilot, "xxx")
        assert f"the first {COPIED_BYTES:,} of" in copy_screen(app, app.screen)
        assert len(app.clipboard.encode()) == COPIED_BYTES


def test_a_death_is_worth_a_bell_and_a_stop_is_not() -> None:
    assert ringing.death(READY, FAILED) == f"{FAILED.preset} failed: {DIAGNOSIS.what}"
    assert ringing.death(READY, ServerStatus()) is None
    assert ringing.death(FAILED, FAILED) is None
    assert ringing.death(ServerStatus(), FAILED) is None
    assert ringing.death(READY, ServerStatus(State.STOPPING)) is None


@pytest.mark.parametrize(
    ("notify", "data"),
    [("off", "\x07"), ("osc9", "\x07\x1b]9;a b\x07"), ("osc777", "\x07\x1b]777;notify;qwen-console;a b\x07")],
)
def test_a_bell_says_why_where_the_terminal_can_show_it(notify: str, data: str) -> None:
    assert ringing.bell("a\x1b; b", notify) == data


@pytest.mark.parametrize(("bell", "rings"), [(True, 2), (False, 0)])
async def test_the_end_of_a_run_and_a_death_ring(monkeypatch: pytest.MonkeyPatch, bell: bool, rings: int) -> None:
    rung: list[str] = []
    run = replace(read_run(whole_run("mtp").folder), state="running", verdict=None)
    app = House(FakeServer(READY), config=Config(bell=bell)).app()
    monkeypatch.setattr(app, "ring_terminal", rung.append)
    async with app.run_test() as pilot:
        await settled(pilot)
        app.workers.cancel_all()
        app.dashboard.post_message(RunSeen(run, live=True))
        await until(pilot, lambda: app.situation.run == run.id)
        app.dashboard.post_message(RunSeen(replace(run, state="done"), live=False))
        await until(pilot, lambda: app.situation.run is None)
        app.dashboard.post_message(StatusSeen(FAILED))
        await until(pilot, lambda: app.situation.status.state is State.FAILED)
        assert len(rung) == rings


def test_ascii_is_as_wide_as_what_it_stands_for() -> None:
    assert plain("─ ● ready │ ▸1 ✓ …") == "- * ready | >1 v ~"
    assert plain("日本") == "????"
    assert plain("plain\x1b[1;1H") == "plain\x1b[1;1H"
    assert plain("▔▁🔎") == "-_/ ", "the frame of the palette"


def test_a_path_is_shortened_where_it_tells_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    name = "20261130T013419.744043Z.txt"
    there = Path("/home/somebody/.local/state/qwen-console/screens") / name
    assert shortened.path(there, 80) == f"~/.local/state/qwen-console/screens/{name}"
    assert shortened.path(there, 50) == f"~/.local/s…ole/screens/{name}"
    assert shortened.path(Path("/tmp") / name, 80) == f"/tmp/{name}"
    assert shortened.path(there, 20) == name
    for width in range(len(name) + 2, 90):
        assert len(shortened.path(there, width)) <= width


@pytest.mark.parametrize("page", ["", "l"])
async def test_w_names_the_file_whole_at_80_columns(page: str, tmp_path: Path) -> None:
    deep = tmp_path / "a-folder-of-a-long-name" / "another-one-of-a-long-name" / "state"
    services = House(FakeServer(READY)).services()
    app = ConsoleApp(replace(services, paths=replace(services.paths, state=deep)))
    async with app.run_test(size=(80, 24)) as pilot:
        await settled(pilot)
        await pilot.press(*page, "w")
        await until(pilot, lambda: (deep / "screens").is_dir())
        (file,) = (deep / "screens").iterdir()
        text = await shows(pilot, "▸ wrote ", f"/{file.name}")
        (row,) = (row for row in text.split("\n") if "wrote" in row)
        assert "…" in row
        assert row.rstrip().endswith(file.name)
