"""`server: {restart: on-crash}`: started again with patience, and not for ever."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.errors import BusyError
from console.server.keeper_spawn import KeeperSpec, spawn_keeper
from console.server.locks import is_held
from console.server.log import new_log
from console.server.process import alive, environ, send
from console.server.start import revive_command
from console.server.status import Phase, State
from tests.contract.life_house import House, open_house, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _up(house: House, manners: str = "") -> None:
    house.server.start(house.preset(manners, grace_s=0.5, restart="on-crash"))
    assert list(house.server.follow_start())[-1].state is State.READY


def _crash(house: House) -> None:
    assert send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().restart_in_s is not None, "the waiting")


def test_a_crashed_server_is_started_again_without_a_console(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_VALUE", "kept")
    _up(house, "workers")
    before = house.record
    _crash(house)
    waiting = house.server.status()
    assert (waiting.state, waiting.phase, waiting.restarts) == (State.STARTING, Phase.START, 1)
    assert waiting.diagnosis is not None
    assert "SIGKILL" in waiting.diagnosis.what
    assert "after a crash" in (waiting.detail or "")
    with pytest.raises(BusyError, match="about to be started again"):
        house.server.start(house.preset())
    # Nobody looks: what follows the start by itself gets it ready.
    until(lambda: house.paths.canary.exists() and house.record.life not in before.life, "a new life")
    until(lambda: house.record.life in house.paths.canary.read_text(), "its first request")
    now = house.server.status()
    assert (now.state, now.restarts) == (State.READY, 1)
    assert "after a crash" in (now.note or "")
    assert house.record.log != before.log
    assert Path(before.log).exists()
    assert (environ(house.child.pid) or {})["SOME_VALUE"] == "kept"
    assert len(now.ours) == 3
    assert is_held(house.paths.server_lock)
    status = Path(f"/proc/{house.record.keeper.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) < 15_000
    assert house.server.stop().left == ()
    house.must_be_empty()
    assert house.server.status().state is State.STOPPED


def test_down_calls_it_off(house: House) -> None:
    _up(house)
    _crash(house)
    keeper = house.record.keeper
    assert house.server.stop().left == ()
    assert not alive(keeper)
    assert not is_held(house.paths.server_lock)
    status = house.server.status()
    assert status.state is State.FAILED
    assert "called off" in (status.note or "")
    house.must_be_empty()
    house.up()
    house.server.stop()


def test_an_asked_end_and_an_orderly_one_are_no_crash(house: House) -> None:
    _up(house)
    assert house.server.stop().left == ()
    assert house.server.status().state is State.STOPPED
    _up(house)
    os.kill(house.child.pid, signal.SIGTERM)
    until(lambda: house.server.status().state is State.STOPPED, "stopped")
    assert not is_held(house.paths.server_lock)


def test_a_start_that_fails_is_not_tried_again(house: House) -> None:
    house.server.start(house.preset("exit-3", restart="on-crash"))
    last = list(house.server.follow_start())[-1]
    assert last.state is State.FAILED
    until(lambda: "never ready" in (house.server.status().note or ""), "the reason")
    assert not is_held(house.paths.server_lock)


def test_after_three_in_a_row_it_is_given_up(house: House) -> None:
    preset = house.preset(restart="on-crash")
    argv = (*preset.command, "m", "--host", preset.server.host, "--port", str(preset.server.port))
    spec = KeeperSpec(
        argv=argv,
        log=new_log(house.paths, "small"),
        record=house.paths.server_record,
        exit=house.paths.exit_record,
        lock=house.paths.server_lock,
        grace_s=0.5,
        preset=preset.to_json(),
        host=preset.server.host,
        port=preset.server.port,
        on_crash=revive_command(house.paths),
        restarts=3,
    )
    spawn_keeper(spec, dict(os.environ))
    assert list(house.server.follow_start())[-1].restarts == 3
    send(house.child, signal.SIGKILL)
    until(lambda: not is_held(house.paths.server_lock), "the end")
    status = house.server.status()
    assert status.state is State.FAILED
    assert "3 times in a row" in (status.note or "")
    house.up()
    house.server.stop()


def test_a_keeper_that_is_killed_starts_nothing_again(house: House) -> None:
    _up(house)
    send(house.record.keeper, signal.SIGKILL)
    send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().state is State.FAILED, "failed")
    assert not is_held(house.paths.server_lock)
