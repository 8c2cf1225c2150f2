"""Every key of the table, pressed, with what then stands on the screen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.tui.app import ConsoleApp
from console.tui.commands import COMMANDS, footer
from console.tui.messages import LogSeen, StatusSeen
from tests.tui.fakes import FAILED, PRESETS, READY, FakeServer, House, screen_text, settled, shows, until

SHOWS = {
    "start": "Switch to qwen3.8-27b-nvfp4-100k-mtp?",
    "stop": "Stop qwen3.8-27b-nvfp4-100k?",
    "restart": "Restart qwen3.8-27b-nvfp4-100k?",
    "back": "nothing to go back to",
    "probe": "the prefix cache works: 4800 of 5200 tokens",
    "mtp": "Compare MTP on and off?",
    "chunk": "Compare chunk budgets?",
    "aa": "Compare the same setting twice",
    "adopt": "no run has ended yet",
    "details": "─ A/B runs ",
    "preset": "2 of 3 presets",
    "notices": "─ notices ",
    "trends": "hit rate to 100 %",
    "chain": "─ execution chain ",
    "cards": "─ cards ",
    "history": "─ history of the last 7 days ",
    "explain": "another figure",
    "log": "─ log /x.log ",
    "next_view": "tab presets",
    "up": "▸1 qwen3.8",
    "down": "▸3 qwen3.8",
    "select1": "▸1 qwen3.8",
    "select2": "▸2 qwen3.8",
    "select3": "▸3 qwen3.8",
    "write": "wrote ",
    "copy": "copied, if the terminal allows that",
    "help": "─ keys ",
    "palette": "Search for commands",
    "ask_quit": "Leave the console?",
}
KEYS = [(command.name + command.argument, key) for command in COMMANDS for key in command.keys]
SILENT = {f"select{n}" for n in range(4, 10)}
"""A number without a preset does nothing."""
OTHERWISE = {"quit", "redraw", "suspend"} | SILENT
"""What leaves nothing on the screen: tested below."""


async def ready(app: ConsoleApp) -> None:
    """The second preset selected, the first one running."""
    app.dashboard.lower.select(1)
    app.know()
    app.dashboard.post_message(LogSeen("/x.log", ("a line",)))


def test_every_command_is_here() -> None:
    assert {name for name, _ in KEYS} == set(SHOWS) | OTHERWISE


@pytest.mark.parametrize(("name", "key"), [(name, key) for name, key in KEYS if name in SHOWS])
async def test_a_key_has_its_effect(name: str, key: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await ready(app)
        await shows(pilot, "▸2 qwen3.8", "a line")
        await pilot.press(key)
        await shows(pilot, SHOWS[name])


@pytest.mark.parametrize("name", sorted(SILENT))
async def test_a_number_without_a_preset_does_nothing(name: str) -> None:
    async with House(FakeServer(READY)).app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await ready(app)
        await pilot.press(name.removeprefix("select"))
        await pilot.pause()
        assert app.situation.selected == PRESETS[1].name


@pytest.mark.parametrize("key", ["q", "ctrl+q"])
async def test_quit_leaves_and_stops_nothing(key: str) -> None:
    house = House(FakeServer(READY))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press(key)
        await until(pilot, lambda: app.return_value == 0)
    assert house.server.calls == []


@pytest.mark.parametrize(("key", "method"), [("ctrl+l", "paint_anew"), ("ctrl+z", "action_suspend_process")])
async def test_redraw_and_suspend_reach_the_app(key: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    # Whether a shell is behind the tests is a chance.
    monkeypatch.setattr("console.tui.leaving.someone_continues_us", lambda: True)
    async with House().app().run_test() as pilot:
        app = await settled(pilot)
        monkeypatch.setattr(app, method, lambda: called.append(method))
        await pilot.press(key)
        await until(pilot, lambda: called == [method])


async def test_b_after_a_failure_goes_back() -> None:
    house = House(FakeServer(FAILED, worked_last=replace(PRESETS[1])))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: app.situation.back is not None)
        await pilot.press("b", "y")
        await until(pilot, lambda: house.server.calls == [f"start {PRESETS[1].name}", "follow"])


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_every_key_in_the_footer_is_of_the_table_and_does_what_it_says(size: tuple[int, int]) -> None:
    async with House(FakeServer(READY)).app().run_test(size=size) as pilot:
        app = await settled(pilot)
        await shows(pilot, "● ready")
        offered = [(key, word) for key, word, _, _ in footer(app.situation, {})]
        shown = screen_text(app).split("\n")[-1]
        seen = [(key, word) for key, word in offered if f" {key} {word}" in shown]
        assert len(seen) >= 8
        keys = {word for command in COMMANDS for word in command.shown.split()}
        assert {key for key, _ in seen} <= keys


@pytest.mark.parametrize("page", ["l", "e", "g", "h", "v", "n", "t", "d", "?"])
async def test_what_a_page_offers_works_on_it(page: str) -> None:
    async with House(FakeServer(READY)).app().run_test() as pilot:
        app = await settled(pilot)
        app.dashboard.post_message(LogSeen("/x.log", tuple(f"line {i} {'x' * 90}" for i in range(90))))
        app.dashboard.post_message(StatusSeen(READY))
        await pilot.press(page)
        await shows(pilot, "esc back")
        offered = screen_text(app).split("\n")[-1]
        if " z cut" in offered:
            await pilot.press("z", "right", "right")
            await shows(pilot, "from column 41")
            await pilot.press("z")
            await until(pilot, lambda: "from column" not in screen_text(app))
        if " w write" in offered:
            await pilot.press("w")
            await shows(pilot, "wrote ")
        if " / find" in offered:
            await pilot.press("/", "e", "enter")
            await shows(pilot, "'e'", "all again")
            await pilot.press("escape")
        await pilot.press("escape")
        await shows(pilot, "prefix cache")
