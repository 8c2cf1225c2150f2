"""Whoever is against us: texts that write to the terminal, a lock that a stranger holds, an stdout that is closed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import console.cli
from console.paths import Paths
from console.server.locks import is_held
from console.server.state import write_json
from tests.console_process import Console, wait_until, write_preset
from tests.contract.test_cli_streams import in_a_shell


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    console = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "0.3"}, demo=True)
    yield console
    console.end()


def test_only_the_voice_prints() -> None:
    folder = Path(console.cli.__file__).parent
    for file in folder.glob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
        prints = [node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"]
        to_stdout = [node.lineno for node in prints if all(word.arg != "file" for word in node.keywords)]
        assert file.name == "voice.py" or not to_stdout, f"{file.name}: {to_stdout}"


def test_no_text_of_a_file_writes_to_the_terminal(demo: Console, tmp_path: Path) -> None:
    write_preset(
        tmp_path, "bidi", 'model: "m\u202e"\nserved-name: "s\u2066"\ndescription: "fine\u202e\\n* forged  preset"\n'
    )
    write_preset(tmp_path, "esc\x1b]0;PWNED\x07", "model: m\n")
    write_preset(tmp_path, "broken\x9b31m", 'model: m\n"k\\u202e\\e[2J": 1\n"\u202ekey": 1\n')
    write_preset(tmp_path, "$(touch pwned)", "model: m\n")
    write_preset(tmp_path, "two\nlines", "model: m\n")
    (tmp_path / "\udcff.yaml").write_text("model: m\n")
    where = ("--presets", str(tmp_path))
    said = [
        demo(*where, "presets"),
        demo(*where, "presets", "--json"),
        demo(*where, "show", "bidi"),
        demo(*where, "show", "broken\x9b31m", code=2),
        demo(*where, "show", "\x1b[2Jnone", code=2),
        demo(*where, "lint", code=None),
        demo(*where, "completion", "presets"),
        demo("st\x1b[2Jatus", code=2),
    ]
    for one in said:
        whole = one.out + one.err
        assert not [sign for sign in whole if (ord(sign) < 32 and sign != "\n") or 127 <= ord(sign) < 160], whole
        assert not set(whole) & set("\u202e\u2066"), whole
    assert r"esc\x1b]0;PWNED\x07" in said[0].out
    assert "\n* forged" not in said[0].out
    assert r"two\nlines.yaml' is not read: its name has a line end" in said[0].err
    assert "\nlines" not in said[0].out + said[0].err
    assert all(line.startswith("# ") for line in said[2].out.splitlines()[:2])
    assert said[6].out.splitlines()[-1] == "bidi"
    assert "pwned" not in said[6].out


@pytest.mark.parametrize(
    "words",
    ["status --json", "presets", "show tiny-cpu", "ab list --json", "history --json", "completion bash", "--help"],
)
def test_data_that_has_nowhere_to_go_is_a_failure(demo: Console, words: str) -> None:
    done = in_a_shell(demo, f"$Q {words} >&-")
    assert done.returncode == 1
    assert "standard output is closed" in done.stderr
    assert len(done.stderr.splitlines()) == 3


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-"])
def test_the_console_needs_streams_and_says_so(demo: Console, closed: str) -> None:
    done = in_a_shell(demo, f"$Q {closed}")
    assert (done.returncode, "needs a terminal" in done.stderr) == (2, True), done.stderr


@pytest.fixture
def locked(own_folders: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is none of ours and holds the server's lock."""
    lock = own_folders / "state" / "qwen-console-demo" / "server.lock"
    lock.parent.mkdir(parents=True)
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code, str(lock)], stdin=subprocess.PIPE) as stranger:
        wait_until(lambda: is_held(lock))
        yield stranger
        assert stranger.stdin is not None
        stranger.stdin.close()


@pytest.mark.parametrize("verb", ["up", "down"])
def test_a_lock_of_a_stranger_is_told_with_who_holds_it(
    verb: str, demo: Console, locked: subprocess.Popen[bytes]
) -> None:
    told = demo(verb, code=4, timeout=30).err
    assert "server.lock is locked by python" in told
    assert f"(pid {locked.pid})" in told
    assert f"`kill {locked.pid}`" in told
    assert len(told.splitlines()) == 3


def test_a_lock_of_a_stranger_is_no_start(demo: Console, locked: subprocess.Popen[bytes]) -> None:
    status = demo.status()["server"]
    assert status["state"] == "stopped"
    assert f"pid {locked.pid}" in status["note"]


def test_a_start_of_another_console_is_none_of_a_stranger(demo: Console) -> None:
    start = demo.start("up")
    second = demo("up", code=None)
    start.communicate(timeout=60)
    assert (start.returncode, second.code) == (0, 0)
    demo("down")


def test_garbage_beside_a_living_server_stops_no_verb(demo: Console, own_folders: Path) -> None:
    demo("up")
    state = own_folders / "state" / "qwen-console-demo"
    for file in (state / "starts").glob("*.jsonl"):
        file.write_text("[" * 100_000)
    (state / "lives.jsonl").write_text("[" * 100_000)
    assert demo("up").out
    assert demo("status").out
    assert demo("ab", "mtp", "--dry-run").out
    record = Paths(state, state, state).server_record
    whole = json.loads(record.read_text())
    write_json(record, {**whole, "host": "a\x1b[", "port": -1, "life": None})
    assert demo.status()["server"]["state"] == "ready"
    demo("down")
