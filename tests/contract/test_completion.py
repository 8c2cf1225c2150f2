"""Shell completion: made from the parser, tried in a real shell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from console.cli.parser import build
from tests.console_process import Console

DEFAULT = "qwen3.8-27b-nvfp4-100k"


@pytest.fixture
def console(own_folders: Path) -> Console:
    return Console({"XDG_STATE_HOME": str(own_folders / "state")})


def completed(console: Console, folder: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    script = folder / "completion.bash"
    script.write_text(console("completion", "bash").out)
    program = folder / "qwen-console"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m console "$@"\n')
    program.chmod(0o755)
    line = " ".join(f"'{word}'" for word in ("qwen-console", *words))
    code = f"""
    PATH="{folder}:$PATH"; . "{script}"
    COMP_WORDS=({line}); COMP_CWORD={len(words)}; _qwen_console; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


def test_bash_offers_verbs_options_and_presets(console: Console, tmp_path: Path) -> None:
    assert completed(console, tmp_path, "st") == {"status"}
    assert completed(console, tmp_path, "up", DEFAULT) >= {DEFAULT, f"{DEFAULT}-mtp"}
    assert completed(console, tmp_path, "--demo", "ab", "--si") == {"--size"}
    assert completed(console, tmp_path, "ab", "--preset", "tiny") == {"tiny-cpu"}
    assert completed(console, tmp_path, "completion", "f") == {"fish"}


def test_bash_offers_runs_values_and_what_the_folder_holds_that_was_named(console: Console, tmp_path: Path) -> None:
    ids = {"20260101-000000-mtp", "20260102-000000-aa"}
    for state, found in (("qwen-console", ids), ("qwen-console-demo", {"20260103-000000-aa"})):
        for name in found:
            (Path(console.env["XDG_STATE_HOME"]) / state / "runs" / name).mkdir(parents=True)
    for verb in ("show", "resume", "adopt", "compare", "stop"):
        assert completed(console, tmp_path, "ab", verb, "2026") == ids
    assert completed(console, tmp_path, "--demo", "ab", "show", "2026") == {"20260103-000000-aa"}
    assert completed(console, tmp_path, "ab", "show", "--j") == {"--json"}
    assert completed(console, tmp_path, "ab", "--size", "") == {"small", "normal", "full"}
    assert completed(console, tmp_path, "ab", "--workloads", "d") == {"decode"}
    assert completed(console, tmp_path, "ab", "mtp", "--size", "small", "--ro") == {"--rounds"}
    folder = tmp_path / "presets"
    folder.mkdir()
    (folder / "my-own.yaml").write_text("model: m\n")
    assert completed(console, tmp_path, "--presets", str(folder), "up", "my") == {"my-own"}
    # A folder that is called like a verb is none.
    assert completed(console, tmp_path, "--presets", "presets", "status", "--w") == {"--window"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_verb_and_option_is_in_every_script(console: Console, shell: str) -> None:
    script = console("completion", shell).out
    _, verbs = build()
    for name, verb in verbs.items():
        assert name in script
        for action in verb._actions:
            for word in action.option_strings:
                if word.startswith("--") and action.help != "==SUPPRESS==":
                    assert word.lstrip("-") in script
