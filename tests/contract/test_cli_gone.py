"""The file of the preset that runs is gone: what runs is what it was started as, never the default."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.console_process import Console, write_preset

SIM = f"[{sys.executable}, -P, -m, console.sim]"
ARGS = "args: {max-model-len: 8192, max-num-seqs: 3}"


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Iterator[Console]:
    env = {
        "XDG_STATE_HOME": str(own_folders / "state"),
        "QWEN_CONSOLE_PRESETS": str(tmp_path / "presets"),
        "QWEN_CONSOLE_SIM_START_S": "0.3",
    }
    found = Console(env)
    yield found
    found.end()


@pytest.mark.parametrize("how", ["gone", "broken"])
def test_a_preset_whose_file_went_while_it_runs(console: Console, tmp_path: Path, how: str) -> None:
    text = f"model: acme/tiny\ncommand: {SIM}\n{ARGS}\nserver: {{port: {free_port()}, stop-grace: 5}}\n"
    write_preset(tmp_path / "presets", "mine", text)
    console("up", "mine")
    file = tmp_path / "presets" / "mine.yaml"
    file.unlink() if how == "gone" else file.write_text("model: [")
    server = console.status()["server"]
    assert (server["state"], server["preset"]) == ("ready", "mine")
    again = console("up")
    assert "mine is ready already" in again.err
    assert f"the file of mine {'is not there any more' if how == 'gone' else 'cannot be used'}" in again.err
    plan = console("ab", "aa", "--dry-run", "--json").json
    assert plan["preset"]["name"] == "mine"
    assert plan["preset"]["args"]["max-num-seqs"] == 3
    for words in (("up", "mine"), ("show", "mine"), ("restart", "mine"), ("ab", "aa", "--preset", "mine", "--dry-run")):
        said = console(*words, code=2).err
        assert ("its file is gone; the server that runs was started from it" in said) == (how == "gone")
    console("restart")
    after = console.status()["server"]
    assert (after["state"], after["preset"], after["pid"] != server["pid"]) == ("ready", "mine", True)
    console("down")
