"""A preset that needs a variable which is not set: marked in the list, and refused before anything is asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from console.presets import Preset, load_catalog
from console.tui.preset_lines import Entry, preset_lines
from console.tui.preset_page import Inspection, preset_page
from console.tui.screens.modal import Question, Trouble
from console.tui.search import text_of
from tests.tui.fakes import BROKEN, PRESETS, READY, FakeServer, House, settled, shows, until

FIRST = PRESETS[0].name
KEYED = """
model: m
command: [{python}]
env:
  SOME_TOKEN: ${{SOME_TOKEN}}
"""


@dataclass
class Keyed(FakeServer):
    """A server that runs with the token."""

    def running_preset(self) -> Preset | None:
        return replace(PRESETS[0], env={"SOME_TOKEN": "hunter33"}, secrets=frozenset({"SOME_TOKEN"}))


@pytest.fixture
def nokey(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Preset:
    monkeypatch.delenv("SOME_TOKEN", raising=False)
    (tmp_path / "nokey.yaml").write_text(KEYED.format(python=sys.executable))
    return load_catalog([tmp_path]).presets["nokey"]


@pytest.mark.parametrize("running", [True, False])
async def test_it_is_marked_and_enter_says_what_is_wrong_before_any_question(nokey: Preset, running: bool) -> None:
    house = House(FakeServer(READY) if running else FakeServer(), presets=(*PRESETS, nokey))
    async with house.app().run_test(size=(80, 24)) as pilot:
        app = await settled(pilot)
        await pilot.press("4")
        await shows(pilot, "▸4 nokey", " ▲ │", "enter what is wrong")
        await pilot.press("enter")
        await shows(pilot, "nokey cannot start", "env.SOME_TOKEN", "why   ${SOME_TOKEN}", "`export SOME_TOKEN=…`")
        assert isinstance(app.screen, Trouble)
        await pilot.press("d")
        text = await shows(pilot, "4 of 4 presets")
        assert "enter " not in text.split("\n")[-1]
        assert house.server.calls == []


async def test_what_the_running_server_has_is_not_lacking(nokey: Preset) -> None:
    house = House(Keyed(READY), presets=(*PRESETS, nokey))
    async with house.app().run_test() as pilot:
        app = await settled(pilot)
        await pilot.press("4", "enter")
        await shows(pilot, "Switch to nokey?", f"{FIRST} will be stopped")
        assert isinstance(app.screen, Question)
        await pilot.press("y")
        await until(pilot, lambda: house.server.calls == ["stop", "start nokey", "follow"])


def test_the_list_says_which_variable_and_one_that_runs_shows_its_state(nokey: Preset) -> None:
    found = [Entry("nokey", preset=nokey)]
    rows = [text_of(row) for row in preset_lines(found, 0, replace(READY, preset="other"), width=60, height=9)]
    assert rows[0].endswith(" ▲")
    assert "not set in this shell: SOME_TOKEN" in rows
    rows = [text_of(row) for row in preset_lines(found, 0, replace(READY, preset="nokey"), width=60, height=9)]
    assert rows[0].endswith(" ●")


def test_its_page_says_why_it_cannot_start(nokey: Preset) -> None:
    told = "\n".join(text_of(row) for row in preset_page(Inspection(nokey, None, (), (), ()), 400))
    assert "▲     it cannot start: " in told
    assert "nokey.yaml:5: env.SOME_TOKEN" in told
    assert "fix   `export SOME_TOKEN=…`" in told


def test_a_variable_that_is_not_set_is_a_difference_to_what_runs(tmp_path: Path) -> None:
    (tmp_path / "open.yaml").write_text("model: m\n")
    (tmp_path / "closed.yaml").write_text("extends: open\nenv: {VLLM_API_KEY: '${MY_SECRET_KEY}'}\n")
    presets = load_catalog([tmp_path]).presets
    found = Inspection(presets["closed"], presets["open"], (), (), ())
    told = "\n".join(text_of(row) for row in preset_page(found, 100))
    assert "env.VLLM_API_KEY: not set → ${MY_SECRET_KEY}, not set" in told
    assert "nothing differs" not in told


@pytest.mark.parametrize(("keys", "told"), [(("enter",), "start"), (("m",), "plan")])
async def test_a_preset_is_taken_as_its_file_is_when_the_key_is_pressed(keys: tuple[str, ...], told: str) -> None:
    house = House()
    async with house.app().run_test() as pilot:
        await settled(pilot)
        house.presets = (replace(PRESETS[0], served_name="edited"), *PRESETS[1:])
        await pilot.press(*keys)
        if told == "start":
            await until(pilot, lambda: house.server.calls == [f"start {FIRST}", "follow"])
            assert house.server.ran is not None
            assert house.server.ran.served_name == "edited"
        else:
            await shows(pilot, "Compare MTP on and off?")
            await pilot.press("y")
            await until(pilot, lambda: bool(house.plans))
            assert house.plans[0].base.served_name == "edited"


async def test_a_file_that_was_broken_or_removed_a_moment_ago_starts_nothing() -> None:
    house = House()
    async with house.app().run_test() as pilot:
        await settled(pilot)
        house.presets, house.problems = PRESETS[1:], (replace(BROKEN, name=FIRST),)
        await pilot.press("enter")
        await shows(pilot, "no flag --max-modle-len")
        await pilot.press("escape")
        house.problems = ()
        await pilot.press("m")
        await shows(pilot, "its file is gone")
        assert house.server.calls == []
