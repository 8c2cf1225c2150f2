"""Stopping: in every phase, against every resistance, whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from console.errors import BusyError, Exit, NothingError
from console.server.locks import is_held
from console.server.process import Identity, alive, boot_id, identify, read_stat, send
from console.server.state import read_exit, write
from console.server.status import Phase, State
from console.server.stop import StopReport
from tests.contract.life_house import House, open_house, until


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with open_house(tmp_path, monkeypatch) as opened:
        yield opened


def _gone(house: House) -> None:
    house.must_be_empty()
    assert not is_held(house.paths.server_lock)
    with pytest.raises(NothingError) as caught:
        house.server.stop()
    assert caught.value.exit_code is Exit.NOTHING


def test_stop_while_starting(house: House) -> None:
    house.server.start(house.preset("never-listens workers", grace_s=1.0))
    until(lambda: len(house.server.status().ours) == 3, "three processes")
    report = house.server.stop()
    assert report.left == ()
    assert house.server.status().state is State.STOPPED
    _gone(house)


def test_a_stop_right_after_the_start(house: House) -> None:
    house.server.start(house.preset())
    assert house.server.stop().left == ()
    assert house.server.status().state is State.STOPPED
    _gone(house)


def test_a_lost_sigterm_is_said_again(house: House) -> None:
    house.up("lose-one", grace_s=30.0)
    report = house.server.stop()
    assert (report.left, report.escalated) == ((), False)
    end, _ = read_exit(house.paths.exit_record)
    assert end is not None
    assert (end.code, end.asked, end.asked_by) == (0, True, "down")
    _gone(house)


def test_what_ignores_sigterm_is_killed_after_its_grace(house: House) -> None:
    house.up("deaf workers daemon", grace_s=0.5)
    assert len(house.server.status().ours) == 4
    told: list[str] = []
    report = house.server.stop(on_event=told.append)
    assert report.escalated
    assert report.left == ()
    assert told
    _gone(house)


def test_workers_go_with_a_leader_that_ends_at_once(house: House) -> None:
    house.up("workers", grace_s=0.5)
    assert house.server.stop().left == ()
    _gone(house)


def test_a_killed_leader_leaves_no_workers_and_is_told(house: House) -> None:
    house.up("workers daemon")
    send(house.child, signal.SIGKILL)
    until(lambda: house.server.status().state is State.FAILED, "failed")
    status = house.server.status()
    assert status.diagnosis is not None
    assert "SIGKILL" in status.diagnosis.what + status.diagnosis.why or "9" in status.diagnosis.why
    end, _ = read_exit(house.paths.exit_record)
    assert end is not None
    assert (end.signal, end.code, end.asked) == (9, None, False)
    until(lambda: not house.alive(), "nothing left")
    _gone(house)


def test_two_stops_at_once_are_one(house: House) -> None:
    house.up("deaf workers", grace_s=1.0)
    reports: list[StopReport] = []
    nothing: list[NothingError] = []

    def stop() -> None:
        try:
            reports.append(house.another().stop())
        except NothingError as error:
            nothing.append(error)

    threads = [Thread(target=stop) for _ in range(3)]
    for thread in threads:
        thread.start()
    until(lambda: house.server.status().state in (State.STOPPING, State.STOPPED), "stopping")
    for thread in threads:
        thread.join()
    assert reports
    assert len(reports) + len(nothing) == 3
    assert {report.left for report in reports} == {()}
    _gone(house)


def test_a_start_during_a_stop_is_refused_and_works_afterwards(house: House) -> None:
    house.up("deaf", grace_s=1.5)
    stopper = Thread(target=house.another().stop)
    stopper.start()
    until(lambda: house.server.status().state is State.STOPPING, "stopping")
    assert house.server.status().phase is Phase.STOPPING
    with pytest.raises(BusyError):
        house.server.start(house.preset())
    stopper.join()
    house.up()
    house.server.stop()


def test_a_plain_kill_of_the_keeper_is_a_request_to_stop(house: House) -> None:
    house.up("workers", grace_s=0.5)
    os.kill(house.record.keeper.pid, signal.SIGTERM)
    until(lambda: house.server.status().state is State.STOPPED, "stopped")
    end, _ = read_exit(house.paths.exit_record)
    assert end is not None
    assert end.asked
    assert f"pid {os.getpid()}" in (end.asked_by or "")
    _gone(house)


def test_a_hang_up_does_not_reach_the_server(house: House) -> None:
    house.up()
    assert send(house.record.keeper, signal.SIGHUP)
    assert house.server.status().state is State.READY
    assert alive(house.record.keeper)
    assert house.server.stop().how == "its keeper stopped it"


def test_a_keeper_that_was_halted_still_stops(house: House) -> None:
    house.up()
    send(house.record.keeper, signal.SIGSTOP)
    until(lambda: (stat := read_stat(house.record.keeper.pid)) is not None and stat.state == "T", "halted")
    assert house.server.stop().left == ()
    _gone(house)


def test_reused_pids_are_never_touched(house: House) -> None:
    house.up()
    house.server.stop()
    innocent = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        who = identify(innocent.pid)
        assert who is not None
        former = Identity(who.pid, who.start - 1, who.boot)
        another_boot = Identity(who.pid, who.start, "another boot")
        house.paths.exit_record.unlink()
        for keeper, child in ((former, former), (another_boot, another_boot)):
            write(house.paths.server_record, replace(house.record, keeper=keeper, child=child, life="0" * 32))
            assert house.server.status().state in (State.STOPPED, State.FAILED)
            assert house.server.status().pid is None
            assert house.server.endpoint() is None
            with pytest.raises(NothingError):
                house.server.stop()
            assert not send(former, signal.SIGKILL)
        assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


def test_a_machine_that_was_restarted_stopped_its_server(house: House) -> None:
    house.up()
    house.server.stop()
    house.paths.exit_record.unlink()
    past = Identity(1, 1, "another boot")
    assert past.boot != boot_id()
    write(house.paths.server_record, replace(house.record, keeper=past, child=past))
    status = house.server.status()
    assert status.state is State.STOPPED
    assert "restarted" in (status.note or "")
    house.up()
    house.server.stop()
