"""State files that hold anything: each is as good as lost, and its reader lives on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from console.errors import ConsoleError, UsageError
from console.lab.journal import FILE, read_events, read_json
from console.lab.probes.layout import read_request
from console.lab.replay import read_recorded
from console.memory.files import find
from console.paths import Paths
from console.presets import Preset
from console.server.cards import cards_file, read_before
from console.server.failure import failure_path, read_failure
from console.server.history import read_history
from console.server.life import Server
from console.server.lives import lives_file, seen_lives
from console.server.locks import take
from console.server.log import tail
from console.server.minutes import history_path
from console.server.process import Identity
from console.server.proof import proof_file, read_proof
from console.server.ready import read_canary
from console.server.revival import read_revival, revival_path
from console.server.run_lock import run_holder
from console.server.starts import past_starts, starts_file
from console.server.state import ServerRecord, read_exit, read_server, read_stop, stop_path, write
from console.server.worked import worked_file

_WHO = Identity(7, 8, "boot")
_PRESET = Preset("p", "m", args={"max-model-len": 4096})
_RECORD = ServerRecord(
    life="abc",
    keeper=_WHO,
    child=_WHO,
    argv=("/bin/vllm", "serve"),
    log="/log",
    started="2029-01-01T00:00:00+00:00",
    preset=_PRESET.to_json(),
    host="127.0.0.1",
    port=8000,
)
_GARBAGE = {
    "deep": b"[" * 100_000,
    "deep map": b'{"schema": 1, "life": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
    "no text": b"\xff\xfe\0",
    "digits": b"9" * 5000,
    "large": b'{"schema": 1, "life": "abc", "at": 1' + b"0" * 400 + b"}",
    "endless": b'{"schema": 1, "life": "abc", "attempt": 1e999, "at": 1e999, "by": [1e999, 1, "b"], "total_s": 1e999}',
    "nothing": b"",
    "list": b"[]",
    "lines": b"\n[[[\n{}\nnull\n1\n",
}


def _layers(paths: Paths) -> object:
    found = find(str(paths.state), {})
    assert found is not None
    return (found.config or {}).get("num_hidden_layers")


_READERS: dict[str, tuple[Callable[[Paths], Path], Callable[[Paths], object]]] = {
    "server": (lambda paths: paths.server_record, lambda paths: read_server(paths.server_record)[0]),
    "exit": (lambda paths: paths.exit_record, lambda paths: read_exit(paths.exit_record)[0]),
    "stop": (lambda paths: stop_path(paths.server_record), lambda paths: read_stop(stop_path(paths.server_record))[0]),
    "canary": (lambda paths: paths.canary, lambda paths: read_canary(paths, "abc")),
    "failure": (failure_path, read_failure),
    "revival": (revival_path, read_revival),
    "cards": (lambda paths: cards_file(paths.state), lambda paths: read_before(cards_file(paths.state), "abc")[0]),
    "proof": (lambda paths: proof_file(paths, "p"), lambda paths: read_proof(paths, _PRESET)),
    "starts": (lambda paths: starts_file(paths, "p"), lambda paths: past_starts(paths, "p")),
    "lives": (lives_file, seen_lives),
    "worked": (worked_file, lambda paths: Server(paths).worked()),
    "run lock": (lambda paths: paths.run_lock, run_holder),
    "baseline": (lambda paths: paths.baseline, lambda paths: Server(paths).baseline()),
    "history": (
        lambda paths: history_path(paths.state),
        lambda paths: read_history(history_path(paths.state), 0.0).boots,
    ),
    "journal": (lambda paths: paths.state / FILE, lambda paths: read_events(paths.state)),
    "model": (
        lambda paths: paths.state / "config.json",
        lambda paths: _layers(paths),
    ),
}


@pytest.fixture
def paths() -> Paths:
    found = Paths.from_env()
    found.make()
    return found


@pytest.mark.parametrize("garbage", _GARBAGE.values(), ids=_GARBAGE)
@pytest.mark.parametrize("name", _READERS)
def test_no_garbage_breaks_a_reader(name: str, garbage: bytes, paths: Paths) -> None:
    where, read = _READERS[name]
    path = where(paths)
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(garbage)
    assert not read(paths)


@pytest.mark.parametrize("name", _READERS)
def test_a_pipe_in_the_place_of_a_file_keeps_nobody_waiting(name: str, paths: Paths) -> None:
    where, read = _READERS[name]
    path = where(paths)
    path.parent.mkdir(exist_ok=True, parents=True)
    os.mkfifo(path)
    assert not read(paths)


@pytest.mark.parametrize(("make", "kind"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a folder")])
def test_what_stands_in_place_of_a_lock_is_named(make: Callable[[Path], None], kind: str, tmp_path: Path) -> None:
    make(tmp_path / "run.lock")
    with pytest.raises(ConsoleError, match="cannot be held") as caught:
        take(tmp_path / "run.lock")
    assert (caught.value.why, caught.value.fix) == (f"it is {kind}, not a file", "remove it")


@pytest.mark.parametrize(
    "change",
    [
        {"host": "a\x1bb"},
        {"host": "[::1"},
        {"host": ""},
        {"host": None},
        {"life": None},
        {"life": ""},
        {"life": 3},
        {"log": None},
        {"log": ""},
        {"port": None},
        {"port": -1},
        {"port": 0},
        {"port": 65536},
        {"port": 1.5},
        {"port": True},
        {"port": 10**400},
        {"started": "yesterday"},
        {"started": "2029-01-01T00:00:00"},
        {"keeper": [0, 1, "b"]},
        {"keeper": [-1, 1, "b"]},
        {"keeper": ["7", 1, "b"]},
        {"child": [1, 2]},
        {"argv": [None]},
        {"grace_s": "long"},
        {"restarts": None},
        {"preset": {**_PRESET.to_json(), "args": {"a": ["b\0"]}}},
        {"preset": {**_PRESET.to_json(), "server": {**_PRESET.to_json()["server"], "host": "a b"}}},
    ],
)
def test_a_record_that_is_wrong_is_a_torn_one(change: dict[str, Any], paths: Paths) -> None:
    write(paths.server_record, _RECORD)
    assert read_server(paths.server_record)[0] == _RECORD
    paths.server_record.write_text(json.dumps({"schema": 1, **asdict(_RECORD), **change}))
    read, note = read_server(paths.server_record)
    assert read is None
    assert note
    status = Server(paths).status(probe=False)
    assert status.url is None
    assert "ignored" in (status.note or "")


def test_a_log_that_is_a_device_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "log").symlink_to("/dev/zero")
    assert tail(tmp_path / "log", 5) == []


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff", b'{"messages": ' + b"[" * 900, b"1" * 5000])
def test_recorded_requests_that_are_garbage_are_usage_errors(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "requests").write_bytes(text)
    for read in (read_recorded, read_request):
        with pytest.raises(UsageError) as caught:
            read(tmp_path / "requests")
        assert len(str(caught.value)) < 500


def test_recorded_requests_from_a_device_are_usage_errors() -> None:
    for read in (read_recorded, read_request):
        with pytest.raises(UsageError) as caught:
            read(Path("/dev/zero"))
        assert caught.value.why == "it is a device, not a file"


def test_a_plan_that_is_garbage_is_none(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text("[" * 100_000)
    assert read_json(tmp_path / "plan.json") is None
