"""The life of a server on the stand-in engine, through phases as vLLM logs them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from console.presets import Preset
from console.server.process import send
from console.server.status import Phase, State
from tests.contract.life_house import House, open_house, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    monkeypatch.setenv("QWEN_CONSOLE_SIM_START_S", "1.5")
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _preset(house: House, fault: str | None = None, timeout_s: float = 60.0) -> Preset:
    small = house.preset(timeout_s=timeout_s)
    return replace(
        small,
        name="sim",
        model="acme/tiny",
        served_name="tiny",
        command=(sys.executable, "-P", "-m", "console.sim"),
        args={"max-model-len": 8192, "tensor-parallel-size": 2},
        env={"QWEN_CONSOLE_SIM_FAULT": fault} if fault else {},
    )


def test_phases_come_in_order_and_ready_is_last(house: House) -> None:
    house.server.start(_preset(house))
    seen = list(house.server.follow_start())
    phases = [one.phase for one in seen]
    order = list(Phase)
    places = [order.index(phase) for phase in phases if phase]
    assert places == sorted(places)
    assert {Phase.LOAD, Phase.WARM_UP} <= set(phases)
    ready = seen[-1]
    assert ready.state is State.READY, ready
    assert ready.model == "tiny"
    assert (ready.version or "").startswith("0.")
    assert "vllm:" in (house.server.baseline() or "")
    until(lambda: house.server.status().note is None, "a prompt answer of /health")
    assert house.server.stop().left == ()
    assert house.server.status().state is State.STOPPED


@pytest.mark.parametrize(("fault", "cause"), [("oom", "oom"), ("crash-at-first-request", "engine-crashed")])
def test_a_fault_is_told_with_its_cause(house: House, fault: str, cause: str) -> None:
    house.server.start(_preset(house, fault))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.diagnosis.cause == cause
    assert last.diagnosis.evidence


@pytest.mark.parametrize("fault", ["hang-at-nccl", "hang-at-first-request"])
def test_a_start_that_hangs_is_stopped_when_its_time_is_over(house: House, fault: str) -> None:
    house.server.start(_preset(house, fault, timeout_s=4.0))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    assert last.diagnosis is not None
    assert last.diagnosis.cause == ("engine-stalled" if "request" in fault else "unknown")


def test_an_engine_killed_while_ready_is_not_forgotten(house: House) -> None:
    house.server.start(_preset(house))
    assert list(house.server.follow_start())[-1].state is State.READY
    send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().state is State.FAILED, "failed")
    diagnosis = house.server.status().diagnosis
    assert diagnosis is not None
    assert "SIGKILL" in diagnosis.what + diagnosis.why + diagnosis.fix
