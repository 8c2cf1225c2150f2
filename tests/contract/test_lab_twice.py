"""Two that go on with one run, and a run whose lab and keeper are both dead: nothing of the user's is lost."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from console.errors import BusyError, ConsoleError, Exit
from console.lab.control import recover, stop_run
from console.lab.journal import read_events
from console.lab.launch import beginning
from console.lab.resume import resume
from console.server.process import alive, send
from console.server.run_lock import hold_run_lock, run_holder
from console.server.state import read_server
from console.server.status import State
from tests.contract.lab_house import KEY, LabHouse, open_lab, until


@pytest.fixture
def house(own_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LabHouse]:
    # Whoever recovers by hand has the key in the shell; the processes that carried it are dead.
    monkeypatch.setenv("VLLM_API_KEY", KEY)
    with open_lab(own_folders) as lab:
        yield lab


def _measures(house: LabHouse, run_id: str) -> None:
    until(lambda: any(event["event"] == "request" for event in read_events(house.paths.run(run_id))), "a request")


def _stopped(house: LabHouse) -> str:
    run_id = house.begin("aa", house.preset(), rounds=1, workloads=["decode"])
    _measures(house, run_id)
    assert stop_run(house.paths).resumable
    return run_id


def test_of_two_that_go_on_with_one_run_one_does_and_the_other_is_told(house: LabHouse) -> None:
    run_id = _stopped(house)

    def go_on() -> BaseException | None:
        try:
            resume(house.paths, run_id)
        except ConsoleError as error:
            return error
        return None

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(lambda _: go_on(), range(2)))
    (loser,) = [end for end in ends if end is not None]
    assert isinstance(loser, BusyError)
    assert loser.exit_code == Exit.BUSY
    assert run_holder(house.paths) == house.lab(run_id)
    assert stop_run(house.paths).state == "interrupted"
    assert house.ended(run_id)["state"] == "interrupted"


def test_nothing_is_touched_while_another_begins(house: LabHouse) -> None:
    run_id = _stopped(house)
    house.ended(run_id)
    record = house.paths.run(run_id) / "lab.json"
    before = record.read_bytes()
    with beginning(house.paths), pytest.raises(BusyError, match="being started"):
        resume(house.paths, run_id)
    with beginning(house.paths), pytest.raises(BusyError, match="being started"):
        house.begin("aa", house.preset())
    assert record.read_bytes() == before
    assert [folder.name for folder in house.paths.runs.iterdir()] == [run_id]


def test_a_record_that_names_a_dead_process_does_not_save_a_run_from_its_stop(house: LabHouse) -> None:
    run_id = house.begin("aa", house.preset(), rounds=1)
    _measures(house, run_id)
    lab, record = house.lab(run_id), house.paths.run(run_id) / "lab.json"
    raw = json.loads(record.read_text())
    record.write_text(json.dumps(raw | {"child": [2**22 - 1, 1, lab.boot]}))
    view = stop_run(house.paths)
    assert (view.state, alive(lab)) == ("interrupted", False)
    # What the lab wrote before pids stood in the lock is found by its command line.
    record.write_text(json.dumps(raw))
    house.ended(run_id)
    resume(house.paths, run_id)
    house.paths.run_lock.write_text(run_id)
    record.unlink()
    assert stop_run(house.paths).state == "interrupted"


def test_a_run_that_nobody_is_found_to_carry_out_is_not_called_stopped(
    house: LabHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.lab.control._BLIND_S", 0.3)
    with hold_run_lock(house.paths, "r1"), pytest.raises(ConsoleError, match="cannot be told to end") as caught:
        stop_run(house.paths)
    assert caught.value.exit_code == Exit.FAILED


def _kill_the_lab(house: LabHouse, run_id: str) -> None:
    """The run's keeper and its lab, at once."""
    record, _ = read_server(house.paths.run(run_id) / "lab.json")
    assert record is not None
    assert record.child is not None
    for who in (record.keeper, record.child):
        send(who, signal.SIGKILL)
    until(lambda: not alive(record.keeper) and not alive(record.child), "their end")


def _orphan(house: LabHouse) -> str:
    """A run whose keeper and lab were killed while its arm was ready; the user's server ran before."""
    house.up(house.preset(MARK="the user's own"))
    run_id = house.begin("aa", house.preset(), rounds=1, workloads=["decode"])
    _measures(house, run_id)
    _kill_the_lab(house, run_id)
    status = house.server.status()
    assert status.pid is not None
    assert f"an arm left by the A/B run {run_id}" in str(status.note)
    assert f"ab recover {run_id}" in str(status.note)
    return run_id


def _is_back(house: LabHouse) -> None:
    status, preset = house.server.status(), house.server.preset()
    assert (status.state, status.note) == (State.READY, None)
    assert preset is not None
    assert preset.env["MARK"] == "the user's own"
    assert preset.env["VLLM_API_KEY"] == KEY


def test_an_arm_that_was_left_is_not_taken_for_what_ran_before(house: LabHouse) -> None:
    run_id = _orphan(house)
    resume(house.paths, run_id)
    assert house.ended(run_id)["state"] == "done"
    assert house.view(run_id).restored == "quick runs again"
    _is_back(house)


def test_a_new_run_puts_back_what_ran_before_the_dead_one(house: LabHouse) -> None:
    _orphan(house)
    run_id = house.begin("aa", house.preset(), rounds=1, workloads=["decode"])
    _measures(house, run_id)
    assert stop_run(house.paths).restored == "quick runs again"
    house.ended(run_id)
    _is_back(house)


def test_recover_by_hand_puts_back_what_ran_before(house: LabHouse) -> None:
    run_id = _orphan(house)
    assert recover(house.paths, run_id[:-1], by_hand=True)
    assert house.view(run_id).state == "interrupted"
    _is_back(house)


def test_a_second_death_does_not_forget_what_was_restored_after_the_first(house: LabHouse) -> None:
    house.up(house.preset(MARK="the user's own"))
    run_id = house.begin("aa", house.preset(), rounds=1, workloads=["decode"])
    _measures(house, run_id)
    assert stop_run(house.paths).restored == "quick runs again"
    house.ended(run_id)
    known = len(read_events(house.paths.run(run_id)))
    resume(house.paths, run_id)
    until(lambda: any(e["event"] == "request" for e in read_events(house.paths.run(run_id))[known:]), "a request")
    _kill_the_lab(house, run_id)
    house.server.stop()
    resume(house.paths, run_id)
    house.ended(run_id)
    _is_back(house)
