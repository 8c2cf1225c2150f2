"""Sentences name the keys that the user has, not those that are shipped."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import pytest

import console.tui
from console.lab.view import read_run
from console.server.status import ServerStatus, State
from console.tui.commands import COMMANDS
from console.tui.config import Config
from console.tui.guards import can_go_back, can_restart, can_run, can_start
from console.tui.keycaps import cap
from console.tui.situation import Situation
from tests.tui.fakes import FAILED, PRESETS, READY, FakeServer, House, settled, shows, until
from tests.unit.lab_runs import whole_run

_OWN = {"stop": ("X",), "restart": ("R",), "start": ("f5",), "next_view": ("f2",), "details": ("f3",)}
_PAGE_KEYS = {"z"}
"""Keys that only a page knows, and no configuration changes."""


async def test_every_sentence_follows_the_keys_of_the_configuration() -> None:
    house = House(FakeServer(READY), config=Config(keys=_OWN))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        assert [cap(name) for name in ("stop", "restart", "start", "details", "mtp")] == ["X", "R", "f5", "f3", "m"]
        now = replace(app.situation, selected=PRESETS[0].name)
        assert can_start(now) == f"{PRESETS[0].name} is ready already; R restarts it"
        run = replace(now, run="20260101-000000-mtp")
        assert {can_restart(run), can_run(run)} == {
            "an A/B run is going on and owns the server; X stops the run",
            "one A/B run at a time; X stops this one",
        }
        assert can_restart(Situation(known=True)) == "nothing runs; f5 starts the selected preset"
        failed = replace(now, status=FAILED)
        assert can_go_back(failed) == "nothing to go back to: no other preset was ready before; R tries it again"
        await shows(pilot, "X stop", "R restart", "f2 run", "m MTP off and on" if app.size.width > 100 else "log")
        await pilot.press("m")
        await shows(pilot, "The run goes on without this console; X stops it.")
        await pilot.press("escape", "x")
        await pilot.pause()
        assert house.server.calls == []


async def test_the_key_lines_of_pages_follow_them_too() -> None:
    keys = {"write": ("f6",), "copy": ("f7",), "start": ("f5",), "adopt": ("O",), "stop": ("X",)}
    house = House(FakeServer(READY), config=Config(keys=keys))
    async with house.app().run_test(size=(120, 40)) as pilot:
        app = await settled(pilot)
        await pilot.press("l")
        await shows(pilot, "f6 write", "f7 copy")
        await pilot.press("2", "d")
        await shows(pilot, "f6 write")
        await pilot.press("escape", "2", "d")
        await shows(pilot, "f5 switch")
        await pilot.press("f5")
        await shows(pilot, f"Switch to {PRESETS[1].name}?")
        run = read_run(whole_run("mtp").folder)
        app.sources.runs.listed = lambda: (run,)  # type: ignore[method-assign]
        await pilot.press("escape", "v")
        await shows(pilot, "O adopt", "f6 write")
        await pilot.press("O")
        await shows(pilot, "Adopt on?")


async def test_another_console_of_the_same_process_has_its_own_keys() -> None:
    async with House(FakeServer(ServerStatus(State.STOPPED))).app().run_test() as pilot:
        app = await settled(pilot)
        await until(pilot, lambda: app.situation.known)
        assert cap("stop") == "x"


def _sentences() -> list[tuple[str, str]]:
    """Every text of the screens that is no docstring, with the file it stands in."""
    found = []
    for file in sorted(Path(console.tui.__file__).parent.rglob("*.py")):
        tree = ast.parse(file.read_text())
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (n for n in ast.walk(tree) if isinstance(n, ast.Constant) and id(n) not in docs)
        found += [(file.name, n.value) for n in texts if isinstance(n.value, str)]
    return found


@pytest.mark.parametrize("file", sorted({file for file, _ in _sentences()}))
def test_no_sentence_names_a_key_by_its_letter(file: str) -> None:
    keys = {word for command in COMMANDS for word in command.shown.split() if word.isalnum()} - _PAGE_KEYS
    named = re.compile(rf"(?:^|[;:,(] ?)(?:{'|'.join(map(re.escape, sorted(keys)))}) [a-z]{{2,}}s\b")
    assert [text for where, text in _sentences() if where == file and named.search(text)] == []
