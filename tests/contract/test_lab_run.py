"""Whole runs through real processes on the stand-in engine: results, and what is left of them."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from console.endpoint import Endpoint
from console.errors import BusyError, ConsoleError
from console.lab.control import recover, stop_run
from console.lab.journal import read_events
from console.metrics.feed import Feed
from console.server.process import send
from console.server.run_lock import run_is_live
from console.server.state import read_json, spec_path
from console.server.status import State
from tests.contract.lab_house import KEY, LabHouse, open_lab, until


@pytest.fixture
def house(own_folders: Path) -> Iterator[LabHouse]:
    with open_lab(own_folders) as lab:
        yield lab


def test_mtp_from_plan_to_verdict_and_back_to_what_ran_before(house: LabHouse) -> None:
    before = house.preset()
    house.up(before)
    pid = house.server.status().pid
    run_id = house.begin("mtp", house.preset(QWEN_CONSOLE_SIM_SEED="3"))
    report = house.ended(run_id)
    view = house.view(run_id)

    assert (view.state, view.problem, view.restored) == ("done", None, "quick runs again")
    spec, _ = read_json(spec_path(house.server.paths.server_record))
    assert spec is not None
    assert spec["recorder"], "what runs again goes into the history again"
    assert [boot["valid"] for boot in report["boots"]] == [True] * 4, report["warnings"]
    assert report["simulated"] is True
    tpot, gap = (report["metrics"][name] for name in ("decode.tpot_s", "decode.gap_s"))
    assert tpot["arms"]["on"]["n_rounds"] == tpot["arms"]["off"]["n_rounds"] == 2
    assert tpot["compare"][0]["ratio"] < 0.9
    assert gap["compare"][0]["ratio"] > tpot["compare"][0]["ratio"]
    assert tpot["compare"][0]["lo"] < tpot["compare"][0]["ratio"] < tpot["compare"][0]["hi"]
    assert report["mtp"]["off"] is None
    assert 0 < report["mtp"]["on"]["acceptance_start"] <= 1
    assert len(report["mtp"]["on"]["per_position"]) == 2
    assert report["verdict"]["overall"] in ("adopt", "keep", "undecided")
    assert "long_context" not in report["probes"]["on"], "the stand-in cannot recall"
    assert {boot["env"]["vllm"] for boot in report["boots"]} == {"0.32.0+sim"}
    assert report["boots"][0]["env"]["block_tokens"] == 1600
    assert report == json.loads((house.paths.run(run_id) / "report.json").read_text())
    assert (house.paths.run(run_id) / "report.md").read_text().startswith("# SIMULATED")

    again = house.server.status()
    assert (again.state, again.preset) == (State.READY, "quick")
    assert again.pid != pid
    endpoint = house.server.endpoint()
    assert endpoint is not None
    assert endpoint.key == KEY
    assert run_is_live(house.paths) is None
    for file in house.paths.run(run_id).rglob("*"):
        assert file.is_dir() or KEY not in file.read_text(errors="replace"), file


def test_chunk_budgets_are_proved_and_nothing_runs_that_did_not_before(house: LabHouse) -> None:
    run_id = house.begin("chunk", house.preset(), arms=["512", "2048"], rounds=1)
    report = house.ended(run_id)
    assert report["metrics"]["agent.ttft_cold_s"]["arms"].keys() == {"512", "2048"}
    assert all(boot["valid"] for boot in report["boots"]), report["warnings"]
    assert not any("not proved" in text for text in report["warnings"])
    assert report["verdict"]["overall"] == "undecided"
    assert house.view(run_id).restored == "nothing ran before, so nothing runs now"
    assert house.server.status().state is State.STOPPED
    assert house.alive() == []


def test_an_arm_that_dies_at_its_first_request_is_a_result(house: LabHouse) -> None:
    house.up(house.preset())
    run_id = house.begin("mtp", house.preset(fault="crash-at-first-request-with-mtp"))
    report = house.ended(run_id)
    view = house.view(run_id)
    crashed = [boot for boot in report["boots"] if boot["crash"]]
    assert {boot["arm"] for boot in crashed} == {"on"}
    assert len(crashed) == 2
    assert crashed[0]["crash"]["cause"] == "engine-crashed"
    assert "subscriptable" in json.dumps(crashed[0]["crash"])
    assert report["verdict"]["overall"] == "keep"
    assert report["metrics"]["decode.tpot_s"]["arms"]["off"]["n_rounds"] >= 1
    assert report["metrics"]["decode.tpot_s"]["arms"]["on"]["median"] is None
    assert (view.state, view.ok) == ("done", False)
    assert house.server.status().preset == "quick"
    assert house.server.status().state is State.READY


def _at_step(house: LabHouse, run_id: str, words: str) -> None:
    until(lambda: words in house.view(run_id).step or house.view(run_id).state != "running", f"the step {words}")
    assert house.view(run_id).state == "running"


def test_stop_ends_the_arm_and_starts_what_ran_before(house: LabHouse) -> None:
    house.up(house.preset())
    run_id = house.begin("mtp", house.preset())
    _at_step(house, run_id, "decode")
    said: list[str] = []
    view = stop_run(house.paths, said.append)
    assert (view.state, view.problem) == ("interrupted", "stopped on request")
    assert view.restored == "quick runs again"
    assert said
    assert run_is_live(house.paths) is None
    assert house.ended(run_id)["state"] == "interrupted"
    assert house.server.status().state is State.READY


def test_stop_while_an_arm_starts(house: LabHouse) -> None:
    run_id = house.begin("mtp", house.preset(QWEN_CONSOLE_SIM_START_S="30"))
    _at_step(house, run_id, "starting:")
    assert stop_run(house.paths).state == "interrupted"
    house.ended(run_id)
    assert house.alive() == []


def test_the_death_of_the_lab_is_cleaned_up_by_its_keeper(house: LabHouse) -> None:
    house.up(house.preset())
    run_id = house.begin("mtp", house.preset())
    _at_step(house, run_id, "warm-up")
    send(house.lab(run_id), signal.SIGKILL)
    until(lambda: house.view(run_id).problem, "the recovery")
    report = house.ended(run_id)
    assert report["state"] == "interrupted"
    assert house.view(run_id).restored == "quick runs again"
    endpoint = house.server.endpoint()
    assert endpoint is not None
    assert endpoint.key == KEY
    assert recover(house.paths, run_id) is False


def test_two_runs_at_a_time_are_refused(house: LabHouse) -> None:
    run_id = house.begin("mtp", house.preset())
    with pytest.raises(BusyError, match=run_id):
        house.begin("aa", house.preset())
    stop_run(house.paths)


def test_requests_of_somebody_else_make_a_boot_invalid(house: LabHouse) -> None:
    run_id = house.begin("mtp", house.preset(), rounds=1)
    _at_step(house, run_id, "agent")
    endpoint = house.server.endpoint()
    assert isinstance(endpoint, Endpoint)
    body: dict[str, Any] = {"model": "q", "max_tokens": 1, "messages": [{"role": "user", "content": "hi"}]}
    assert endpoint.post_json("/v1/chat/completions", body)[0] == 200
    report = house.ended(run_id)
    first = report["boots"][0]
    assert first["valid"] is False
    assert "foreign traffic" in first["reason"]
    assert report["verdict"]["overall"] == "invalid"


def test_a_server_that_answers_requests_is_not_cut_off(house: LabHouse) -> None:
    house.up(house.preset(QWEN_CONSOLE_SIM_SPEED="0.2"))
    endpoint = house.server.endpoint()
    assert endpoint is not None
    thread = Thread(target=_ask_at_length, args=(endpoint,), daemon=True)
    thread.start()
    until(lambda: Feed(endpoint).scrape().running, "a running request")
    with pytest.raises(BusyError, match="1 request"):
        house.begin("mtp", house.preset())
    house.server.stop()
    thread.join(30)


def _ask_at_length(endpoint: Endpoint) -> None:
    body = {"model": "q", "max_tokens": 2000, "messages": [{"role": "user", "content": "write"}], "ignore_eos": True}
    with suppress(ConsoleError):
        endpoint.post_json("/v1/chat/completions", body, deadline=60)


def test_every_request_stands_in_the_journal_with_its_stamps(house: LabHouse) -> None:
    run_id = house.begin("aa", house.preset(), rounds=1)
    report = house.ended(run_id)
    sent = [event for event in read_events(house.paths.run(run_id)) if event["event"] == "request"]
    decode = [event for event in sent if event["workload"] == "decode"]
    assert len(decode) == 2 * 3
    assert all(event["trace"]["outcome"] == "ok" for event in sent)
    assert all(event["trace"]["tokens"][-1] == 32 for event in decode)
    # Acceptance is looked at before and after: at both ends words are drawn as the model wants.
    phases = [event["phase"] for event in sent if event["n"] == 1 and event["workload"] != "warm-up"]
    assert phases.count("greedy") == 1
    assert phases.index("decode") < phases.index("greedy") < len(phases) - 1
    assert phases[-1] == "decode"
    by_key: dict[str, set[int]] = {}
    for event in sent:
        by_key.setdefault(event["key"], set()).add(event["trace"]["prompt_tokens"])
    assert all(len(counts) == 1 for counts in by_key.values())
    assert report["verdict"]["overall"] == "undecided"
    assert report["plan"]["differs"] == []
