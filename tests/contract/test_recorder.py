"""The recorder beside a real keeper and the stand-in engine: it records, dies, comes back, and never matters."""

from __future__ import annotations

import json
import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.console_process import Console, wait_until


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    console = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "1"}, demo=True)
    yield console
    console.end()


def recorder(console: Console) -> psutil.Process | None:
    found = [p for p in console.processes() if "console.server.recorder" in " ".join(p.cmdline())]
    assert len(found) < 2
    return found[0] if found else None


def ask(url: str, tokens: int) -> None:
    body = {"model": "qwen3.8-27b", "prompt": "a few words", "max_tokens": tokens, "ignore_eos": True}
    request = urllib.request.Request(
        f"{url}/v1/completions", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert answer.status == 200


def test_what_a_server_did_is_in_the_history_and_the_canary_is_not(demo: Console) -> None:
    assert "nothing is recorded yet" in demo("history").err
    demo("up")
    url = demo.status()["server"]["url"]
    process = recorder(demo)
    assert process is not None
    for _ in range(3):
        ask(url, 8)
    demo("down")
    assert demo.processes() == []
    whole = demo("history", "--since", "1h", "--json").json
    (boot,) = whole["boots"]
    assert (boot["preset"], boot["simulated"]) == ("qwen3.8-27b-nvfp4-100k", True)
    assert boot["version"] == "0.32.0+sim"
    assert (boot["totals"]["requests"], boot["totals"]["generation_tokens"]) == (3, 24)
    assert sum(minute["requests"] for minute in boot["minutes"]) == 3
    assert [card["card"] for card in boot["cards"]] == [0, 1]
    assert all(card["vram_peak_bytes"] > 0 for card in boot["cards"])
    told = demo("history")
    text = told.out
    assert "A/B runs are not in it" in told.err
    assert "requests ended 3" in text
    assert "SIMULATED" in text
    assert "fix:" in demo("history", "--since", "soon", code=2).err


def test_a_recorder_that_dies_is_started_three_times_more_and_then_is_a_note(demo: Console) -> None:
    demo("up")
    before = demo.status()["server"]["pid"]
    for _ in range(4):
        wait_until(lambda: recorder(demo), timeout=20)
        process = recorder(demo)
        assert process is not None
        process.kill()
        wait_until(lambda dead=process: not dead.is_running(), timeout=20)  # type: ignore[misc]
    wait_until(lambda: "is not started again" in demo("history").err, timeout=20)
    assert recorder(demo) is None
    whole = demo.status()
    server = whole["server"]
    assert (server["state"], server["pid"]) == ("ready", before)
    told = server["unrecorded"]
    assert told["cause"] == "recorder-ended"
    assert "the last time signal 9 ended it" in told["why"]
    assert "`qwen-console --demo restart`" in told["fix"]
    assert "not-recorded" in [notice["id"] for notice in whole["notices"]]
    assert "what this server does is not recorded" in demo("status").out
    demo("restart")
    assert demo.status()["server"]["unrecorded"] is None
    demo("down")
    assert demo.processes() == []


def test_the_recorder_ends_with_a_keeper_that_is_killed(demo: Console) -> None:
    demo("up")
    process = recorder(demo)
    assert process is not None
    psutil.Process(process.ppid()).send_signal(signal.SIGKILL)
    assert "its keeper was lost" in demo.status()["server"]["unrecorded"]["why"]
    wait_until(lambda: recorder(demo) is None, timeout=20)
    demo("down")
    assert demo.processes() == []


def test_an_unwritable_history_does_not_stop_a_server(demo: Console) -> None:
    state = Path(demo.env["XDG_STATE_HOME"]) / "qwen-console-demo"
    state.mkdir(parents=True)
    (state / "history.db").mkdir()
    demo("up")
    ask(demo.status()["server"]["url"], 4)
    demo("down")
    assert demo.processes() == []
    assert "cannot be read" in demo("history").err


def test_the_history_says_how_each_life_ended_and_holds_failed_starts(demo: Console) -> None:
    demo("up")
    demo("down")
    demo("up", "--set", "env.QWEN_CONSOLE_SIM_FAULT=oom", code=1)
    demo("up")
    ask(demo.status()["server"]["url"], 8)
    child = psutil.Process(demo.status()["server"]["pid"])
    child.send_signal(signal.SIGKILL)
    wait_until(lambda: demo.state == "failed")
    demo("up")
    whole = demo("history", "--json").json["boots"]
    ends = [(boot["end"]["word"], boot["end"]["cause"]) for boot in whole]
    # One that has no minute yet and goes on is not in it.
    assert [end for end in ends if end[0] != "runs"] == [
        ("killed", None),
        ("failed to start", "oom"),
        ("stopped", None),
    ]
    started = [boot["started"] for boot in whole]
    assert started == sorted(started, reverse=True)
    text = demo("history").out
    assert "best minute's mean" in text
    assert "killed: SIGKILL, not by this console" in text
    assert "failed to start: " in text
    assert "(oom)" in text
    assert "stopped: by down" in text
    demo("down")
    assert demo.processes() == []


def test_a_refused_start_stands_in_the_history(demo: Console) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        demo("up", "--set", f"server.port={taken.getsockname()[1]}", code=1)
    (boot,) = demo("history", "--json").json["boots"]
    assert (boot["end"]["word"], boot["end"]["cause"]) == ("failed to start", "port-in-use")
    assert "in use by somebody else (port-in-use)" in demo("history").out
