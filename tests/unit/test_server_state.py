"""Records on disk: what is written is read; what is damaged is a note."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.paths import Paths
from console.presets import Preset
from console.server.failure import Failure, failure_path, read_failure, write_failure
from console.server.process import Identity
from console.server.ready import Canary, read_canary, write_canary
from console.server.state import (
    ExitRecord,
    ServerRecord,
    StopRequest,
    read_exit,
    read_server,
    read_stop,
    write,
    write_text,
)
from console.server.status import Diagnosis, Phase

_WHO = Identity(7, 8, "boot")
_PRESET = Preset("p", "m", args={"max-model-len": 4096}, env={"A": "b"}).to_json()
_SERVER = ServerRecord(
    life="abc",
    keeper=_WHO,
    child=_WHO,
    argv=("/bin/vllm", "serve"),
    log="/log",
    started="2029-01-01T00:00:00+00:00",
    grace_s=3.5,
    whole=False,
    preset=_PRESET,
    host="127.0.0.1",
    port=8000,
)


def test_records_come_back_as_they_went(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    write(file, _SERVER)
    assert read_server(file) == (_SERVER, None)
    end = ExitRecord("abc", None, 9, "2029", asked=True, asked_by="down", escalated=True)
    write(file, end)
    assert read_exit(file) == (end, None)
    request = StopRequest("abc", "down", None, "2029", taken=True)
    write(file, request)
    assert read_stop(file) == (request, None)


def test_a_missing_file_is_no_news(tmp_path: Path) -> None:
    assert read_server(tmp_path / "none") == (None, None)


def test_files_are_their_owners_only_and_nothing_stays_beside_them(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text("old")
    write(file, _SERVER)
    assert file.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["record.json"]  # noqa: PTH208


def test_a_write_that_fails_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "record.json"
    write(file, _SERVER)

    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_text(file, "new")
    monkeypatch.undo()
    assert read_server(file) == (_SERVER, None)
    assert os.listdir(tmp_path) == ["record.json"]  # noqa: PTH208


def test_every_cut_of_a_record_is_a_note(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    write(file, _SERVER)
    whole = file.read_text()
    for length in range(len(whole)):
        file.write_text(whole[:length])
        record, note = read_server(file)
        assert record is None
        assert note is not None
        assert "server.json" in note


def test_another_schema_is_named(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text(json.dumps({"schema": 2}))
    assert "schema 2" in (read_server(file)[1] or "")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["pid", "name", "x"]), inner),
    max_leaves=5,
)
_FIELDS = ["life", "keeper", "child", "argv", "log", "started", "grace_s", "whole", "preset", "host", "port"]


@given(st.dictionaries(st.sampled_from(_FIELDS), _JSON))
def test_no_content_is_ever_a_traceback(tmp_path_factory: pytest.TempPathFactory, damage: dict[str, object]) -> None:
    file = tmp_path_factory.mktemp("s") / "server.json"
    write(file, _SERVER)
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}))
    record, note = read_server(file)
    assert (record is None) == (note is not None)


def test_canary_and_failure_belong_to_their_life() -> None:
    paths = Paths.from_env()
    paths.make()
    canary = Canary("abc", False, "no", "engine-crashed", None, "1", 2.0)
    write_canary(paths, canary)
    assert read_canary(paths, "abc") == canary
    assert read_canary(paths, "other") is None
    paths.canary.write_text('{"schema": 1, "life": "abc"}')
    assert read_canary(paths, "abc") is None
    failure = Failure("abc", "p", Diagnosis("oom", "w", "y", "f", ("line",), Phase.LOAD))
    write_failure(paths, failure)
    assert read_failure(paths) == failure
    failure_path(paths).write_text('{"schema": 1, "life": null, "preset": null, "diagnosis": {"cause": 1}}')
    assert read_failure(paths) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("keeper", 0), 1e999),
        (("log",), "/a\0b"),
        (("log",), "\ud800"),
        (("preset",), True),
        (("preset", "name"), None),
        (("preset", "name"), [None]),
        (("preset", "args"), None),
        (("preset", "server", "port"), "80"),
        (("preset", "server", "stop-grace"), True),
        (("preset", "env", "A"), 7),
        (("port",), {}),
        (("grace_s",), "long"),
    ],
)
def test_a_record_of_another_shape_is_a_note(tmp_path: Path, place: tuple[str | int, ...], value: object) -> None:
    file = tmp_path / "server.json"
    write(file, _SERVER)
    raw = json.loads(file.read_text())
    inside = raw
    for step in place[:-1]:
        inside = inside[step]
    inside[place[-1]] = value
    file.write_text(json.dumps(raw))
    record, note = read_server(file)
    assert record is None
    assert note is not None
    assert "ignored" in note


def test_a_file_nested_too_deeply_is_a_note(tmp_path: Path) -> None:
    file = tmp_path / "server.json"
    file.write_text("[" * 200_000)
    record, note = read_server(file)
    assert record is None
    assert note is not None
    assert "cannot be read" in note
