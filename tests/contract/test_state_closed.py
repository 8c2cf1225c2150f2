"""A state folder that this user cannot read or write: a sentence with its remedy, and a stop all the same."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.server.access import folder_in_the_way, in_the_way
from console.server.history import read_history
from console.server.locks import is_held, take
from console.server.minutes import Boot, Minute, Store
from tests.console_process import Console, Result

_DROP = 24  # PR_CAPBSET_DROP
_OVERRIDES = (0, 1, 2)  # CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


def _as_anybody() -> None:
    """Root, too, has to keep to modes then; for others nothing changes."""
    for capability in _OVERRIDES:
        ctypes.CDLL(None).prctl(_DROP, capability, 0, 0, 0)


class Plain(Console):
    """A console that may do what an owner may, and no more."""

    def __call__(self, *words: str, code: int | None = 0, timeout: float = 600) -> Result:
        done = subprocess.run(
            self.words(*words),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            preexec_fn=_as_anybody,
        )
        result = Result(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in result.err, result.err
        assert code is None or result.code == code, f"{words}: {result.code}\n{result.out}\n---\n{result.err}"
        return result


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Plain]:
    console = Plain({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "0.3"}, demo=True)
    yield console
    state = own_folders / "state" / "qwen-console-demo"
    for folder in (state, state / "logs", state / "runs"):
        if folder.exists():
            folder.chmod(0o700)
    console.end()


@pytest.fixture
def state(own_folders: Path) -> Path:
    return own_folders / "state" / "qwen-console-demo"


def names(said: str, state: Path) -> bool:
    """Whether it says what is in the way and what helps."""
    return "keeps you out" in said and f"chmod u+rwX {state}" in said


@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_closed_folder_is_a_sentence_for_every_verb(demo: Plain, state: Path, mode: int) -> None:
    state.mkdir(parents=True)
    state.chmod(mode)
    assert names(demo.status()["server"]["note"], state)
    assert names(demo("status").out, state)
    assert names(demo("up", code=1).err, state)
    assert names(demo("logs", code=1).err, state)
    assert names(demo("history").err, state)
    assert names(demo("ab", "aa", "--no-wait", code=1).err, state)
    assert demo("presets").out
    assert demo("down", code=3).err
    if mode == 0:
        for words in (("list",), ("show",)):
            assert names(demo("ab", *words, code=1).err, state)
    assert demo.processes() == []


def test_what_runs_is_stopped_where_nothing_can_be_written(demo: Plain, state: Path) -> None:
    demo("up")
    state.chmod(0o500)
    server = demo.status()["server"]
    assert server["state"] == "ready"
    assert "what happens is not kept" in server["note"]
    assert names(demo("restart", code=1).err, state), "and nothing was stopped for it"
    assert names(demo("restart", "--no-wait", code=1).err, state)
    assert demo.status()["server"]["pid"] == server["pid"]
    down = demo("down")
    assert "that it was stopped is not on record" in down.err
    assert "stopped in" in down.err
    _ends(demo)
    after = demo.status()["server"]
    assert (after["state"], after["diagnosis"]) == ("stopped", None)
    assert "how it ended is not on record" in after["note"]


def test_what_runs_is_found_and_stopped_where_nothing_can_be_read(demo: Plain, state: Path) -> None:
    demo("up")
    pid = demo.status()["server"]["pid"]
    state.chmod(0)
    server = demo.status()["server"]
    assert server["pid"] == pid
    assert "found by its processes" in server["note"]
    assert "stopped in" in demo("down").err
    _ends(demo)


def _ends(console: Console) -> None:
    """A recorder may take a moment to follow."""
    end = time.monotonic() + 20
    while console.processes() and time.monotonic() < end:
        time.sleep(0.05)
    assert console.processes() == []


@pytest.mark.parametrize("name", ["logs", "runs", "server.lock", "server.json"])
def test_one_closed_file_or_folder_stops_no_stop(demo: Plain, state: Path, name: str) -> None:
    demo("up")
    (state / name).chmod(0)
    assert demo.status()["server"]["pid"] is not None
    said = demo("logs", code=None).err
    assert (f"chmod u+rwX {state / name}" in said) == (name == "logs")
    if name == "runs":
        assert names(demo("ab", "list", code=1).err, state / name)
    assert "stopped in" in demo("down").err
    up = demo("up", code=None)
    # A record is replaced by the next one, and needs no permission of its own for it.
    assert (up.code == 0) == (name == "server.json"), up.err
    if up.code:
        assert names(up.err, state / name)
    else:
        demo("down")
    (state / name).chmod(0o700)


def test_the_state_folder_is_a_file(demo: Plain, state: Path) -> None:
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text("")
    for words in (("up",), ("logs",)):
        assert "is a file, not a folder" in demo(*words, code=1).err
    assert "is a file, not a folder" in demo.status()["server"]["note"]


def test_a_history_of_somebody_else_is_a_sentence(demo: Plain, state: Path) -> None:
    state.mkdir(parents=True)
    store = Store(state / "history.db")
    assert store.keep(Boot("a", "p", "1", "m", False, 1_900_000_000), Minute(1_900_000_000, "a", 60.0), ())
    store.close()
    (state / "history.db").chmod(0)
    assert names(demo("history").err, state / "history.db")
    assert "torn" not in demo("history", "--json").json["problem"]
    (state / "history.db").chmod(0o600)
    assert read_history(state / "history.db", 0.0).problem is None


def test_places_in_the_way(tmp_path: Path) -> None:
    assert in_the_way(tmp_path) is None
    assert in_the_way(tmp_path / "not" / "there") is None
    (tmp_path / "file").write_text("")
    assert in_the_way(tmp_path / "file") is None
    assert "not a folder" in (in_the_way(tmp_path / "file" / "x") or ("", ""))[0]
    assert "not a folder" in (folder_in_the_way(tmp_path / "file") or ("", ""))[0]
    assert "read-only" in (in_the_way(Path("/sys/kernel")) or ("read-only", ""))[0]


def test_a_lock_that_cannot_be_written_is_a_lock_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch(mode=0o400)
    handle = take(path)
    assert handle is not None
    assert is_held(path)
    os.close(handle)
    assert not is_held(path)
    assert not is_held(tmp_path / "lock" / "none")
