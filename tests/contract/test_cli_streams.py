"""Standard streams that are closed, left by their reader, or of another encoding: the work goes on all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.server.locks import is_held
from tests.console_process import Console


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    console = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "0.3"}, demo=True)
    yield console
    console.end()


def in_a_shell(console: Console, line: str) -> subprocess.CompletedProcess[str]:
    """The line with `$Q` as the console's command."""
    command = f"{sys.executable} -P -m console --demo"
    env = console.environment() | {"Q": command}
    return subprocess.run(["sh", "-c", line], env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("closed", ["<&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_start_with_closed_streams_keeps_its_lock(demo: Console, closed: str, own_folders: Path) -> None:
    assert in_a_shell(demo, f"$Q up {closed}").returncode == 0
    assert is_held(own_folders / "state" / "qwen-console-demo" / "server.lock")
    assert "its keeper was lost" not in demo("status").out


def test_a_restart_nobody_listens_to_is_a_restart_all_the_same(demo: Console) -> None:
    demo("up")
    before = demo.status()["server"]["pid"]
    in_a_shell(demo, "$Q restart 2>&1 | true")
    after = demo.status()["server"]
    assert after["state"] == "ready"
    assert after["pid"] != before


def test_what_an_encoding_lacks_is_a_question_mark(demo: Console) -> None:
    demo("up")
    ascii_only = Console(demo.env | {"PYTHONIOENCODING": "ascii"}, demo=True)
    assert "ready" in ascii_only("status").out
    assert "?" in ascii_only("doctor", code=None).out


def test_a_server_that_was_held_is_asked_to_end_and_does(demo: Console) -> None:
    demo("up")
    os.kill(demo.status()["server"]["pid"], signal.SIGSTOP)
    stopped = demo("down")
    assert "had to be killed" not in stopped.out + stopped.err


@pytest.mark.parametrize("words", ["--help", "up --help", "--version", "presets", "completion bash", "sim --help"])
@pytest.mark.parametrize("buffered", [True, False])
def test_a_stdout_without_room_is_a_failure_in_a_sentence(demo: Console, words: str, buffered: bool) -> None:
    console = Console(demo.env | {"PYTHONUNBUFFERED": "" if buffered else "1"}, demo=False)
    done = in_a_shell(console, f"{sys.executable} -P -m console {words} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("qwen-console: the system refused: No space left")
    assert len(done.stderr.splitlines()) == 2


def test_a_stderr_without_room_leaves_the_code_as_it_is(demo: Console) -> None:
    assert in_a_shell(demo, "$Q statsu 2> /dev/full").returncode == 2
    assert in_a_shell(demo, "$Q up no-such 2> /dev/full").returncode == 2
    assert in_a_shell(demo, "$Q --help | true").stderr == ""


def test_no_verb_leaves_a_connection_open(demo: Console) -> None:
    strict = Console(demo.env | {"PYTHONWARNINGS": "error"}, demo=True)
    url = strict("up").out.strip()
    for words in (
        ("status",),
        ("status", "--window", "1"),
        ("status", "--url", url),
        ("logs",),
        ("history",),
        ("doctor",),
        ("probe", "prefix"),
        ("ab", "aa", "--dry-run"),
        ("up",),
        ("restart",),
        ("down",),
    ):
        said = strict(*words, code=None).err
        assert "Warning" not in said, f"{words}: {said}"
