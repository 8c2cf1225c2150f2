"""What of A/B runs on the real engine CI leaves out: budgets, and a run that is stopped and goes on."""

from __future__ import annotations

import pytest

from tests.console_process import Console, wait_until
from tests.engine.conftest import PresetMaker

pytestmark = [pytest.mark.engine, pytest.mark.full]


def test_chunk_budgets_are_measured_and_proved_and_a_stopped_run_goes_on(
    console: Console, make_preset: PresetMaker
) -> None:
    name = make_preset("plain", prefix=False)
    words = ("ab", "chunk", "--preset", name, "--arms", "512,2048", "--quick")
    console.start(*words, "--no-wait").communicate()
    wait_until(lambda: console.state == "starting", timeout=60)
    (listed,) = console("ab", "list", "--json").json["runs"]
    console("ab", "stop")
    assert console("ab", "show", listed["id"], "--json").json["state"] == "interrupted"
    assert console.state == "stopped"
    assert console.processes() == []
    run = console("ab", "resume", listed["id"], "--json", timeout=900).json
    assert run["state"] == "done"
    assert run["plan"]["differs"] == ["max-num-batched-tokens"]
    assert {boot["arm"] for boot in run["boots"] if boot["valid"]} == {"512", "2048"}
    assert not any("not proved" in text for text in run["warnings"])
    (pair,) = run["metrics"]["agent.ttft_cold_s"]["compare"]
    assert pair["verdict"] == "undecided"
    assert console.state == "stopped"
    assert console.processes() == []
