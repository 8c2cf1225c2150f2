"""A start as it is told: downloads, silences, and how long it will take."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.presets import Preset
from console.server.process import alive
from console.server.starts import past_starts
from console.server.status import Phase, State
from tests.contract.life_house import House, open_house, until

MIB = 1024**2


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("QWEN_CONSOLE_SIM_START_S", "1.5")
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _sim(house: House, **env: str) -> Preset:
    small = house.preset()
    command = (sys.executable, "-P", "-m", "console.sim")
    args = {"tensor-parallel-size": 2}
    return replace(small, name="sim", model="acme/tiny", served_name="tiny", command=command, args=args, env=env)


def test_a_download_is_a_phase_with_size_and_eta(house: House, tmp_path: Path) -> None:
    blobs = tmp_path / "hub" / "models--acme--m" / "blobs"
    blobs.mkdir(parents=True)
    part = blobs / "weights.incomplete"
    part.write_bytes(b"x" * MIB)
    preset = replace(house.preset("never-listens"), model="acme/m")
    house.server.start(preset.with_env(HF_HUB_CACHE=str(tmp_path / "hub")))

    def downloads() -> bool:
        part.write_bytes(b"x" * (part.stat().st_size + MIB))
        return house.server.status().phase is Phase.DOWNLOAD

    until(downloads, "the phase")
    assert "GiB, " in (house.server.status().detail or "")
    assert house.server.status().eta_s is None, "how much will come is not known"
    house.server.stop()


def _silent_for(log: str, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(log, (then, then))


def test_silence_is_explained_and_nothing_is_ended_for_it(house: House) -> None:
    house.server.start(_sim(house, QWEN_CONSOLE_SIM_FAULT="hang-at-nccl"))
    log = Path(house.record.log)
    until(lambda: "using nccl==" in log.read_text(), "the last line")
    assert house.server.status().silence is None
    _silent_for(house.record.log, 40)
    quiet = house.server.status()
    assert "NCCL" in (quiet.silence or "")
    assert quiet.diagnosis is None
    _silent_for(house.record.log, 70)
    stuck = house.server.status()
    assert stuck.state is State.STARTING
    assert stuck.diagnosis is not None
    assert stuck.diagnosis.cause == "nccl-stuck"
    assert "NCCL_P2P_DISABLE=1" in stuck.diagnosis.fix
    assert alive(house.child)
    assert house.server.stop().left == ()


def test_a_start_is_timed_by_those_before_it(house: House) -> None:
    preset = _sim(house)
    house.server.start(preset)
    seen = list(house.server.follow_start())
    assert {one.eta_s for one in seen} == {None}, "nothing is known of it yet"
    until(lambda: past_starts(house.paths, "sim"), "the history")
    (start,) = past_starts(house.paths, "sim")
    assert start.cache == "warm"
    assert start.total_s > 1
    assert sum(start.phases.values()) == pytest.approx(start.total_s, abs=0.1)
    assert house.server.worked() is None, "one does not go back to what one has"
    assert house.server.worked(replace(preset, name="other")) == replace(preset, path=None)
    house.server.stop()
    house.server.start(preset)
    starting = [one for one in house.server.follow_start() if one.state is State.STARTING and one.uptime_s]
    assert starting
    assert all(one.eta_s is not None and one.progress is not None for one in starting)
    assert all(0 <= (one.progress or 0) < 1 for one in starting)
    house.server.stop()


def test_arms_of_a_run_are_no_history_and_no_way_back(house: House) -> None:
    folder = house.paths.runs / "r1" / "boots"
    folder.mkdir(parents=True)
    house.server.start(_sim(house), log=folder / "01-on.log")
    assert list(house.server.follow_start())[-1].state is State.READY
    house.server.stop()
    assert past_starts(house.paths, "sim") == ()
    assert house.server.worked() is None
