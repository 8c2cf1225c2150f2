"""Runs that were cut off go on where they were, through real processes on the stand-in engine."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.errors import UsageError
from console.lab.control import stop_run
from console.lab.journal import FILE, read_events
from console.lab.plan import Known
from console.lab.resume import resume
from console.server.process import send
from console.server.status import State
from tests.contract.lab_house import LabHouse, open_lab, until


@pytest.fixture
def house(own_folders: Path) -> Iterator[LabHouse]:
    with open_lab(own_folders) as lab:
        yield lab


def _at(house: LabHouse, run_id: str, boot: int, words: str) -> None:
    """Wait until a boot is at a step."""

    def there() -> bool:
        events = read_events(house.paths.run(run_id))
        boots = [event["n"] for event in events if event["event"] == "boot-start"]
        return bool(boots) and boots[-1] == boot and words in house.view(run_id).step

    until(lambda: there() or house.view(run_id).state != "running", f"boot {boot} at {words}")
    assert house.view(run_id).state == "running"


def _requests(house: LabHouse, run_id: str) -> dict[int, Counter[str]]:
    """Boot → how often each request stands in what counts of the journal."""
    found: dict[int, Counter[str]] = {}
    for event in read_events(house.paths.run(run_id)):
        if event["event"] == "boot-start":
            found[event["n"]] = Counter()
        elif event["event"] == "request" and event["workload"] != "warm-up":
            found[event["n"]][event["key"]] += 1
    return found


def test_a_run_killed_at_three_points_goes_on_with_its_plan_and_no_request_twice_or_lost(house: LabHouse) -> None:
    house.up(house.preset())
    run_id = house.begin("mtp", house.preset(QWEN_CONSOLE_SIM_START_S="1"))
    plan = (house.paths.run(run_id) / "plan.json").read_bytes()
    for boot, words in ((1, "starting"), (2, "warm-up"), (3, "decode")):
        _at(house, run_id, boot, words)
        send(house.lab(run_id), signal.SIGKILL)
        until(lambda: house.view(run_id).state == "interrupted" and house.view(run_id).restored, "the recovery")
        house.ended(run_id)
        assert house.server.status().preset == "quick"
        assert resume(house.paths, run_id) == run_id
    report = house.ended(run_id)
    assert (house.paths.run(run_id) / "plan.json").read_bytes() == plan
    assert report["state"] == "done"
    assert [boot["n"] for boot in report["boots"]] == [1, 2, 3, 4]
    assert [boot["valid"] for boot in report["boots"]] == [True] * 4, report["warnings"]
    requests = _requests(house, run_id)
    assert set(requests) == {1, 2, 3, 4}
    keys = {n: set(counts) for n, counts in requests.items()}
    assert keys[1] == keys[2] == keys[3] == keys[4]
    assert all(count == 1 for counts in requests.values() for count in counts.values())
    assert house.server.status().state is State.READY
    assert house.view(run_id).restored == "quick runs again"
    with pytest.raises(UsageError, match="is whole"):
        resume(house.paths, run_id)


def test_a_stopped_run_goes_on_and_a_torn_line_costs_nothing(house: LabHouse) -> None:
    run_id = house.begin("aa", house.preset(), rounds=1)
    _at(house, run_id, 2, "agent")
    assert stop_run(house.paths).resumable
    house.ended(run_id)
    journal = house.paths.run(run_id) / FILE
    with journal.open("a") as file:
        file.write('{"event": "request", "n": 2, "wor')
    resume(house.paths, run_id)
    report = house.ended(run_id)
    assert report["state"] == "done"
    assert [boot["valid"] for boot in report["boots"]] == [True, True], report["warnings"]
    assert len(list((house.paths.run(run_id) / "boots").glob("02-*.log"))) == 2
    assert house.alive() == []


def test_a_cold_compile_cache_is_filled_by_a_start_that_is_not_measured(house: LabHouse) -> None:
    # The stand-in's fault writes the log of a cold cache at every start.
    preset = house.preset(fault="slow-start", QWEN_CONSOLE_SIM_START_S="0.05")
    run_id = house.begin("aa", preset, rounds=2, workloads=["decode"])
    report = house.ended(run_id)
    primed = [event["arm"] for event in read_events(house.paths.run(run_id)) if event["event"] == "primed"]
    assert sorted(primed) == ["a1", "a2"]
    assert all(boot["valid"] for boot in report["boots"]), report["warnings"]
    assert {boot["env"]["compile_cache"] for boot in report["boots"]} == {"cold"}
    assert any("compile cache was cold" in text for text in report["warnings"])
    assert len(list((house.paths.run(run_id) / "boots").glob("*-priming.log"))) == 2


def test_the_users_own_requests_are_replayed(house: LabHouse, tmp_path: Path) -> None:
    from console.lab.launch import launch
    from console.lab.plan import make_plan
    from console.lab.replay import read_recorded

    rules = "rule: leave the tests as they are. " * 600
    rows: list[dict[str, Any]] = [
        {
            "model": "whatever",
            "messages": [{"role": "system", "content": rules}, {"role": "user", "content": f"step {i}"}],
            "max_tokens": 40,
            "temperature": 0.6,
        }
        for i in range(3)
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    recorded = read_recorded(path)
    plan = make_plan("aa", house.preset(), size="small", rounds=1, replays=len(recorded), known=Known(1600))
    run_id = launch(house.paths, plan, recorded=recorded)
    report = house.ended(run_id)
    assert [boot["valid"] for boot in report["boots"]] == [True, True], report["warnings"]
    assert report["plan"]["workloads"] == ["replay"]
    assert report["metrics"]["replay.ttft_s"]["arms"]["a1"]["n_requests"] == 3
    assert report["metrics"]["replay.tpot_s"]["arms"]["a1"]["n_requests"] == 3
    # One salt for all of them: they share the prefix that they shared.
    assert report["metrics"]["replay.cached_tokens"]["arms"]["a1"]["median"] >= 1600


def test_time_that_is_up_ends_a_run_between_rounds_and_says_so(house: LabHouse) -> None:
    known = Known(1600, boot_s={("small", ("decode",)): 0.1})
    run_id = house.begin(
        "aa", house.preset(), rounds=40, workloads=["decode"], known=known, time_budget_s=25.0, size="small"
    )
    report = house.ended(run_id)
    assert report["state"] == "done"
    done = len(report["boots"])
    assert 2 <= done < 80
    assert done % 2 == 0
    assert any("rounds: the next round takes about" in text for text in report["warnings"])


def test_the_noise_floor_is_lent_to_the_next_run(house: LabHouse) -> None:
    first = house.begin("aa", house.preset(), rounds=2, workloads=["decode"])
    floor = house.ended(first)
    assert floor["verdict"]["overall"] == "keep"
    assert "equal arms come apart by up to" in floor["verdict"]["sentence"]
    run_id = house.begin("mtp", house.preset(), rounds=1, workloads=["decode"])
    report = house.ended(run_id)
    assert report["pooled_runs"] == [first]
    assert report["noise_floor"]["run"] == first
    assert report["probes"]["on"]["sampling_extra"]["passed"] == 0
    assert "min_p, logit_bias refused" in " ".join(report["verdict"]["why"])
    assert report["divergence"]["on"]["pairs"] == 1
    side = {boot["arm"]: boot["env"]["cards"] for boot in report["boots"]}
    assert len(side["on"]) == 2
    assert side["on"][0]["temp_c"] > 0
