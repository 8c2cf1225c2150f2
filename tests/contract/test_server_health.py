"""A server that was ready: still so, or only in appearance."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.server.process import identify, read_stat, send
from console.server.ready import read_canary
from console.server.status import Phase, ServerStatus, State
from tests.contract.life_house import House, open_house, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        opened.figures(0, 0.0)
        yield opened


def _fresh(house: House) -> ServerStatus:
    """As a `status` sees it that looks once."""
    other = house.another()
    status = other.status()
    other.close()
    return status


def _long_ago(house: House, seconds: float) -> None:
    """What was seen last was seen so long ago."""
    path = house.paths.state / "pulse.json"
    pulse = json.loads(path.read_text())
    for key in ("since", "tokens_since"):
        pulse[key] -= seconds
    path.write_text(json.dumps(pulse))


def test_a_busy_engine_that_stands_still_is_stalled_and_recovers(house: House) -> None:
    house.up("busy")
    house.figures(100, 0.25)
    assert _fresh(house).state is State.READY
    _long_ago(house, 60)
    assert _fresh(house).state is State.READY, "a minute is a prefill"
    _long_ago(house, 100)
    stalled = _fresh(house)
    assert stalled.state is State.STALLED
    assert stalled.diagnosis is not None
    assert stalled.diagnosis.cause == "engine-stalled"
    assert "requests in flight: 1" in stalled.diagnosis.what
    assert "restart" in stalled.diagnosis.fix
    house.figures(101, 0.25)
    assert _fresh(house).state is State.READY
    house.server.stop()


def test_a_long_prefill_is_no_stall_and_is_shown(house: House) -> None:
    house.up("busy")
    house.figures(100, 0.10)
    _fresh(house)
    for step in range(1, 5):
        # 125 s without a token: only KV use moves, chunk by chunk.
        _long_ago(house, 31)
        house.figures(100, 0.10 + step / 10)
        assert _fresh(house).state is State.READY
    # A look whose page comes too late on a busy machine says nothing of it.
    until(lambda: (_fresh(house).prefill_s or 0.0) > 120, "the prefill is shown")
    house.server.stop()


def test_an_idle_server_never_stalls(house: House) -> None:
    house.up()
    for _ in range(2):
        assert _fresh(house).state is State.READY
    assert not (house.paths.state / "pulse.json").exists()
    house.server.stop()


def test_an_engine_that_is_gone_while_http_answers_is_stalled(house: House) -> None:
    house.up("engine")
    canary = read_canary(house.paths, house.record.life)
    assert canary is not None
    ((engine, name),) = canary.engine
    assert name.startswith("VLLM::EngineCo")
    assert send(engine, signal.SIGKILL)
    until(lambda: identify(engine.pid) is None, "the engine's end")
    status = _fresh(house)
    assert status.state is State.STALLED
    assert status.diagnosis is not None
    assert status.diagnosis.cause == "engine-crashed"
    assert "front end still answers" in status.diagnosis.why
    assert read_stat(house.child.pid) is not None, "nothing is ended for it"
    house.server.stop()


def test_a_503_is_stalled(house: House) -> None:
    house.up("sick")
    house.go.touch()
    status = _fresh(house)
    assert (status.state, status.phase) == (State.STALLED, Phase.READY)
    assert status.diagnosis is not None
    assert "503" in status.diagnosis.why
    house.server.stop()
