"""The life of the real server, and its numbers against a client that knows the truth."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.console_process import Console, wait_until, write_preset
from tests.engine import truth
from tests.engine.conftest import DEAD_PROXY, PresetMaker

pytestmark = [pytest.mark.engine, pytest.mark.core]
SLACK_S = 0.015
TRIES = 3
"""On a busy machine the client itself is late: a stamp of its own that came 30 ms late is no fault of a figure."""


def near(shown: float, true: float, slack_s: float = 0.0) -> bool:
    """Within 5 %, or within `slack_s` where HTTP and tokenising lie outside the server's clock."""
    return abs(shown - true) <= max(0.05 * true, slack_s)


def off(reading: Any, seen: list[truth.Seen]) -> list[str]:
    """The figures that do not agree with the client's."""
    tokens = sum(one.tokens for one in seen)
    rows = {
        "ttft": (reading["ttft_s"]["mean"], truth.mean([one.ttft for one in seen]), SLACK_S),
        "e2e": (reading["e2e_s"]["mean"], truth.mean([one.end for one in seen]), SLACK_S),
        "tpot": (reading["tpot_s"]["mean"], truth.mean([one.tpot for one in seen]), 0.0),
        "rate": (reading["generation_tokens_per_s"], tokens / reading["window_s"], 0.0),
    }
    return [
        f"{name}: {shown}, true {true}" for name, (shown, true, slack) in rows.items() if not near(shown, true, slack)
    ]


def read_while_loaded(console: Console, url: str, prompts: list[str], key: str) -> tuple[Any, list[truth.Seen]]:
    """`status --window` around a load that begins and ends within the window."""
    words = console.words("status", "--json", "--window", "25")
    status = subprocess.Popen(
        words, env=console.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert status.stderr
    assert "measuring" in status.stderr.readline()
    seen = truth.load(url, prompts, max_tokens=48, at_once=2, key=key)
    assert status.poll() is None, "the load outlasted the window"
    return json.loads(status.communicate()[0]), seen


def test_a_whole_life_with_a_key_and_a_dead_proxy(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("prefix", prefix=True)
    console.env |= {"VLLM_API_KEY": "sesame-open"} | DEAD_PROXY
    up = console("up", name)
    assert "load" in up.err
    url = up.out.strip()
    del console.env["VLLM_API_KEY"]

    server = console.status()["server"]
    assert server["state"] == "ready"
    assert server["model"] == "tiny"
    assert server["version"].startswith("0.")
    assert len(server["ours"]) >= 4

    truth.load(url, [truth.prompt(300, 99)], max_tokens=8, at_once=1, key="sesame-open")
    asked: list[truth.Seen] = []
    for _ in range(TRIES):
        whole, seen = read_while_loaded(console, url, [truth.prompt(500, s % 3) for s in range(8)], "sesame-open")
        asked += seen
        reading = whole["reading"]
        if not off(reading, seen):
            break
    assert off(reading, seen) == []
    assert reading["ttft_s"]["n"] == len(seen)
    # Our servers are asked for finer buckets, so that quantiles are figures, and bounds are close.
    assert reading["itl_s"]["p50"] is not None, reading["itl_s"]
    bounds = reading["ttft_s"]["p90_bounds"]
    assert min(s.ttft for s in seen) * 0.8 < bounds[0] <= bounds[1] < max(s.ttft for s in seen) * 1.25
    cache = reading["prefix_cache"]
    assert cache["enabled"] is True
    assert cache["block_tokens"] == 256
    assert cache["cached_tokens"] == sum(s.cached_tokens for s in seen)
    assert cache["cached_tokens"] + cache["computed_tokens"] == sum(s.prompt_tokens for s in seen)
    assert reading["mtp"] is None
    assert sum(rise["n"] for rise in reading["last"]) == len(seen)
    links = {link["link"]: link for link in whole["chain"]}
    assert (links["prefix caching"]["verdict"], links["mtp"]["value"]) == ("ok", "off")
    assert "61.13x at 32,768" in links["kv cache"]["value"]

    console("down")
    assert console.state == "stopped"
    assert console.processes() == []
    (boot,) = console("history", "--since", "1h", "--json").json["boots"]
    assert (boot["preset"], boot["version"][:2]) == (name, "0.")
    # All but the console's own first request.
    assert boot["totals"]["requests"] == len(asked) + 1
    assert boot["totals"]["cached_tokens"] == sum(s.cached_tokens for s in asked)


def test_a_console_killed_during_a_start_and_while_ready_loses_nothing(
    console: Console, make_preset: PresetMaker
) -> None:
    name = make_preset("plain", prefix=False)
    up = console.start("up", name)
    wait_until(lambda: console.state == "starting")
    up.send_signal(signal.SIGKILL)
    up.communicate()
    assert console.state == "starting"
    # The next console finds the start and sees it to its end.
    console("up", name)
    logs = console.start("logs", "-f")
    logs.send_signal(signal.SIGKILL)
    logs.communicate()
    assert console.state == "ready"
    console("down")
    assert console.processes() == []


def test_stopping_in_the_middle_of_a_start_is_whole(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("plain", prefix=False)
    console("up", name, "--no-wait")
    # A look takes longer than a phase on a busy machine: any phase from loading on is the middle.
    wait_until(lambda: console.status()["server"]["phase"] not in (None, "download", "start"), timeout=120)
    console("down")
    assert console.state == "stopped"
    assert console.processes() == []


def test_a_model_that_is_not_there(console: Console, make_preset: PresetMaker) -> None:
    name = make_preset("gone", prefix=False, model="/models/does-not-exist")
    error = console("up", name, code=1).err
    assert "cause: model-missing" in error
    assert "/models/does-not-exist" in error
    assert "fix:" in error
    assert console.status()["server"]["diagnosis"]["cause"] == "model-missing"
    assert console.processes() == []


def test_a_flag_that_vllm_does_not_know(console: Console, make_preset: PresetMaker) -> None:
    make_preset("plain", prefix=False)
    write_preset(Path(console.env["QWEN_CONSOLE_PRESETS"]), "wrong", "extends: plain\nargs: {zzz-nonsense: 3}\n")
    error = console("up", "wrong", code=1).err
    assert "cause: bad-flag" in error
    assert "--zzz-nonsense" in error
    assert console.processes() == []
