"""A/B runs on the real engine: small, but whole."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.console_process import Console, wait_until
from tests.engine.conftest import DEAD_PROXY, PresetMaker

pytestmark = [pytest.mark.engine, pytest.mark.core]


def boots_of(run: Any, arm: str) -> list[Any]:
    return [boot for boot in run["boots"] if boot["arm"] == arm]


def test_mtp_is_measured_against_off_and_what_ran_before_runs_again(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("plain", prefix=False)
    console("up", name)
    before = console.status()["server"]["pid"]
    run = console("ab", "mtp", "--preset", name, "--rounds", "2", "--size", "small", "--json", timeout=1500).json
    assert run["state"] == "done"
    assert run["kind"] == "mtp"
    assert run["simulated"] is False
    assert run["plan"]["differs"] == ["speculative-config"]
    for arm in ("off", "on"):
        assert [boot["valid"] for boot in boots_of(run, arm)] == [True, True], run["boots"]
    tpot, gap = run["metrics"]["decode.tpot_s"], run["metrics"]["decode.gap_s"]
    for metric in (tpot, gap):
        for arm in ("off", "on"):
            assert metric["arms"][arm]["median"] > 0
            assert metric["arms"][arm]["n_rounds"] == 2
    # An engine step yields several tokens: the gap is the longer time, and never taken for the time per token.
    assert gap["arms"]["on"]["median"] > 1.5 * tpot["arms"]["on"]["median"]
    # Without speculation they are one; a busy machine now and then puts two tokens into one chunk.
    assert gap["arms"]["off"]["median"] == pytest.approx(tpot["arms"]["off"]["median"], rel=0.2)
    (pair,) = tpot["compare"]
    assert (pair["arm"], pair["against"]) == ("on", "off")
    assert pair["lo"] < pair["ratio"] < pair["hi"]
    assert pair["verdict"] in ("better", "worse", "equivalent", "undecided")
    assert run["mtp"]["off"] is None
    on = run["mtp"]["on"]
    assert 0.3 < on["acceptance_start"] <= 1
    assert 0.3 < on["acceptance_end"] <= 1
    assert len(on["per_position"]) == 2
    assert 1 < on["mean_acceptance_length"] <= 3
    assert run["verdict"]["overall"] in ("adopt", "keep", "undecided")
    folder = Path(run["journal"]).parent
    assert (folder / "report.md").read_text().startswith("# mtp on plain")
    assert console("ab", "show", run["id"], "--json").json["metrics"] == run["metrics"]

    server = console.status()["server"]
    assert (server["state"], server["preset"]) == ("ready", name)
    assert server["pid"] != before
    console("down")
    assert console.processes() == []


def test_chunk_budgets_are_measured_and_proved_from_the_log(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("plain", prefix=False)
    console.env |= {"VLLM_API_KEY": "sesame-open"} | DEAD_PROXY
    words = ("ab", "chunk", "--preset", name, "--arms", "512,2048", "--quick", "--json")
    run = console(*words, timeout=900).json
    assert run["state"] == "done"
    assert run["plan"]["differs"] == ["max-num-batched-tokens"]
    assert {boot["arm"] for boot in run["boots"] if boot["valid"]} == {"512", "2048"}
    (pair,) = run["metrics"]["agent.ttft_cold_s"]["compare"]
    assert pair["verdict"] == "undecided"
    assert console.state == "stopped"
    assert console.processes() == []


def test_an_arm_that_crashes_at_its_first_request_is_a_result(console: Console, make_preset: PresetMaker) -> None:
    """MTP with prefix caching dies on this CPU build: the align-mode copy kernel is Triton's."""
    name = make_preset("prefix", prefix=True)
    words = ("ab", "mtp", "--preset", name, "--rounds", "1", "--size", "small", "--json")
    run = console(*words, code=1, timeout=900).json
    (crashed,) = boots_of(run, "on")
    assert crashed["crash"]["cause"] == "engine-crashed"
    assert "'function' object is not subscriptable" in str(crashed["crash"])
    assert [boot["valid"] for boot in boots_of(run, "off")] == [True]
    assert run["verdict"]["overall"] != "adopt"
    assert console.state == "stopped"
    assert console.processes() == []


def test_a_run_outlives_its_console_and_stops_when_told(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("plain", prefix=False)
    ab = console.start("ab", "mtp", "--preset", name, "--rounds", "2", "--size", "small")
    wait_until(lambda: console("ab", "list", "--json").json["runs"], timeout=60)
    wait_until(lambda: console.state == "starting", timeout=60)
    ab.send_signal(signal.SIGKILL)
    ab.communicate()
    (run,) = console("ab", "list", "--json").json["runs"]
    assert run["state"] == "running"
    refused = console("up", name, code=4).err
    assert f"ab stop {run['id']}" in refused
    assert "ab stop" in console("down", code=4).err
    console("ab", "stop")
    assert console("ab", "show", run["id"], "--json").json["state"] == "interrupted"
    assert console.state == "stopped"
    assert console.processes() == []
