"""The pages under docs/ that people type from: every command is run, every file is read, every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from console.cli.completion import _bash, _fish, _zsh
from console.cli.parser import build
from console.presets import load_catalog
from console.tui.commands import COMMANDS
from console.tui.config import load
from tests.console_process import Console

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("presets", "reading", "ssh")
_FENCE = re.compile(r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
CONSOLE = """#!{python}
import subprocess, sys
sys.path.insert(0, {root!r})
words = sys.argv[1:]
if "--demo" not in words and "--url" not in words:
    words = ["--demo", *words]
command = ["-P", "-m", "console", *words]
if all(word.startswith(("-", "http")) for word in words):
    from tests.tui.terminal import terminal
    with terminal(*command) as shown:
        shown.shows("qwen-console", "q quit")
        shown.type(b"q")
        shown.until(shown.ended)
    sys.exit(shown.code)
sys.exit(subprocess.run([sys.executable, *command]).returncode)
"""
SSH = """#!/bin/sh
# Its own parser judges the options; nothing is dialled.
exec "{ssh}" -G "$@" > /dev/null
"""


def fences(page: str, kind: str) -> list[str]:
    """The blocks of one kind."""
    text = (DOCS / f"{page}.md").read_text()
    return [found["body"] for found in _FENCE.finditer(text) if found["kind"] == kind]


def test_every_block_is_of_a_kind_that_is_tried() -> None:
    for page in PAGES:
        text = (DOCS / f"{page}.md").read_text()
        assert {found["kind"] for found in _FENCE.finditer(text)} <= {"sh", "yaml"}, page


@pytest.fixture
def home(own_folders: Path, tmp_path: Path) -> dict[str, str]:
    """A user's home with the programs that the pages name."""
    programs = tmp_path / "bin"
    programs.mkdir()
    root = str(Path(__file__).parents[2])
    for name, text in (
        ("qwen-console", CONSOLE.format(python=sys.executable, root=root)),
        ("ssh", SSH.format(ssh="/usr/bin/ssh")),
    ):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return {
        "HOME": str(tmp_path),
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(own_folders / "state"),
        "QWEN_CONSOLE_SIM_START_S": "1",
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_command_does_what_it_says(page: str, home: dict[str, str]) -> None:
    try:
        for block in fences(page, "sh"):
            done = subprocess.run(
                ["bash", "-e", "-c", block],
                env=os.environ | home,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    finally:
        Console({name: home[name] for name in ("XDG_STATE_HOME",)}, demo=True).end()


@pytest.mark.parametrize("page", PAGES)
def test_every_file_can_be_used(page: str, tmp_path: Path) -> None:
    for i, block in enumerate(fences(page, "yaml")):
        folder = tmp_path / str(i)
        folder.mkdir()
        name = Path(block.partition("\n")[0].removeprefix("# ")).name
        (folder / name).write_text(block)
        if name == "config.yaml":
            assert load(folder / name).keys
        else:
            shipped = DOCS.parent / "presets"
            catalog = load_catalog([folder, shipped])
            assert catalog.problems == ()
            assert Path(name).stem in catalog.presets


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_every_command_that_a_key_can_be_given_is_named() -> None:
    text = (DOCS / "ssh.md").read_text()
    names = [command.name for command in COMMANDS if not command.argument]
    assert [name for name in names if f"`{name}`" not in text] == []


def test_the_page_and_the_script_name_the_same_file() -> None:
    parser, verbs = build()
    lines = "\n".join([*_bash(parser, verbs), *_zsh(parser, verbs), *_fish(parser, verbs)]).splitlines()
    told = [line.removeprefix("# ") for line in lines if line.startswith("# qwen-console completion")]
    assert len(told) == 3
    assert [line for line in told if line not in (DOCS / "ssh.md").read_text()] == []
