"""A download as it looks from outside: files that grow in the hub's cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.presets import Preset
from console.server.download import DownloadWatch
from console.server.weights import weights_of

MIB = 1024**2


class Clock:
    """Seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    folder = tmp_path / "hub" / "models--acme--m"
    (folder / "blobs").mkdir(parents=True)
    snapshot = folder / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    index = {"metadata": {"total_size": 8 * MIB}, "weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


@pytest.fixture
def preset(tmp_path: Path) -> Preset:
    return Preset(name="p", model="acme/m", env={"HF_HUB_CACHE": str(tmp_path / "hub")})


def test_size_rate_and_what_is_left(cache: Path, preset: Preset) -> None:
    clock, part = Clock(), cache / "blobs" / "1234.incomplete"
    part.write_bytes(b"x" * MIB)
    watch = DownloadWatch(preset, clock=clock)
    assert watch.now() is None, "one look shows no growth"
    clock.now += 2
    part.write_bytes(b"x" * 3 * MIB)
    found = watch.now()
    assert found is not None
    assert (found.size, found.total) == (3 * MIB, 8 * MIB)
    assert found.rate == pytest.approx(MIB)
    assert found.eta_s == pytest.approx(5.0)
    assert found.text == "0.00 GiB of 0.01 GiB, 1.0 MB/s"


def test_what_does_not_grow_is_no_download(cache: Path, preset: Preset) -> None:
    clock = Clock()
    (cache / "blobs" / "left-over.incomplete").write_bytes(b"x" * MIB)
    watch = DownloadWatch(preset, clock=clock)
    for _ in range(30):
        clock.now += 2
        assert watch.now() is None


def test_a_whole_model_is_looked_at_once(cache: Path, preset: Preset) -> None:
    for name in ("one", "two"):
        (cache / "snapshots" / "abc" / f"{name}.safetensors").write_bytes(b"x")
    clock = Clock()
    watch = DownloadWatch(preset, clock=clock)
    assert watch.now() is None
    (cache / "blobs" / "other.incomplete").write_bytes(b"x" * MIB)
    clock.now += 5
    assert watch.now() is None


def test_whole_means_every_file_of_the_index(cache: Path, preset: Preset) -> None:
    assert not weights_of(preset).whole
    (cache / "snapshots" / "abc" / "one.safetensors").write_bytes(b"x")
    found = weights_of(preset)
    assert (found.local, found.whole, found.total) == (False, False, 8 * MIB)
    (cache / "snapshots" / "abc" / "two.safetensors").write_bytes(b"x")
    assert weights_of(preset).whole


def test_a_path_is_never_downloaded(tmp_path: Path) -> None:
    there = weights_of(Preset(name="p", model=str(tmp_path)))
    assert (there.local, there.whole) == (True, True)
    gone = weights_of(Preset(name="p", model="/nowhere/at/all"))
    assert (gone.local, gone.whole) == (True, False)


def test_a_model_that_was_never_fetched(tmp_path: Path) -> None:
    found = weights_of(Preset(name="p", model="acme/new", env={"HF_HOME": str(tmp_path)}))
    assert (found.local, found.whole, found.size, found.total) == (False, False, 0, None)
    assert found.free


def test_holes_do_not_count(cache: Path, preset: Preset) -> None:
    with (cache / "blobs" / "sparse.incomplete").open("wb") as file:
        file.truncate(64 * MIB)
    assert weights_of(preset).size < MIB
