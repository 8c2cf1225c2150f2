"""`ab` and `probe` as their user types them, on the stand-in engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console_process import Console, wait_until

RULES = "\n".join(f"rule {i}: leave the tests as they are" for i in range(400))


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    found = Console(
        {
            "XDG_STATE_HOME": str(own_folders / "state"),
            "QWEN_CONSOLE_SIM_START_S": "0.3",
            "QWEN_CONSOLE_SIM_SPEED": "25",
        },
        demo=True,
    )
    yield found
    left = found.processes()
    found.end()
    assert left == [], f"left running: {left}"


def test_a_plan_is_shown_with_its_time_before_anything_starts(demo: Console) -> None:
    text = demo("ab", "mtp", "--dry-run").out
    assert "differs  speculative-config" in text
    assert "about " in text
    plan = demo("ab", "chunk", "--dry-run", "--json", "--arms", "1600,2048,3200").json
    assert [arm["name"] for arm in plan["arms"]] == ["1600", "2048", "3200"]
    notes = " / ".join(plan["notes"])
    assert "starves" in notes
    assert "in effect" in notes
    assert demo("ab", "list", "--json").json["runs"] == []


def test_a_time_budget_is_kept_or_refused(demo: Console) -> None:
    plan = demo("ab", "aa", "--dry-run", "--json", "--time-budget", "30m").json
    assert plan["estimate_s"] <= plan["time_budget_s"] == 1800
    refused = demo("ab", "aa", "--dry-run", "--time-budget", "2s", code=2).err
    assert "the shortest would take" in refused
    assert "no span of time" in demo("ab", "aa", "--time-budget", "soon", code=2).err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("ab", "resume"), 3),
        (("ab", "resume", "1999"), 3),
        (("ab", "compare"), 3),
        (("ab", "nonsense", "--dry-run"), 2),
        (("ab", "aa", "--workloads", "sleep"), 2),
        (("ab", "aa", "--replay", "/nowhere.jsonl"), 2),
        (("ab", "replay"), 2),
        (("probe", "prefix"), 3),
        (("probe", "nonsense"), 2),
    ],
)
def test_what_cannot_be_done_ends_with_its_code_and_a_fix(demo: Console, words: tuple[str, ...], code: int) -> None:
    error = demo(*words, code=code).err
    assert error.strip()


def test_recorded_requests_are_planned_on_the_arms_that_are_given(demo: Console, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps({"messages": [{"role": "user", "content": "go"}]}) + "\n")
    equal = demo("ab", "replay", str(path), "--dry-run", "--json").json
    assert (equal["kind"], equal["workloads"]) == ("aa", ["replay"])
    other = demo("ab", "replay", str(path), "--b", "max-num-seqs=4", "--dry-run", "--json").json
    assert (other["kind"], other["differs"]) == ("custom", ["max-num-seqs"])
    assert other["shape"]["replays"] == 1


def _request(tmp_path: Path, name: str, when: str) -> str:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": f"It is {when}.\n{RULES}"},
        {"role": "user", "content": "go on"},
    ]
    path = tmp_path / name
    path.write_text(json.dumps({"model": "x", "messages": messages}))
    return str(path)


def test_the_prefix_cache_of_the_running_server_is_probed(demo: Console, tmp_path: Path) -> None:
    demo("up")
    try:
        found = demo("probe", "prefix", "--json").json
        assert found["ok"] is True
        assert found["cached"][-1] == found["expected"] == 3 * 1600
        assert "the prefix cache works" in demo("probe", "prefix", "--blocks", "1").out
        files = [_request(tmp_path, name, when) for name, when in (("a.json", "10:00"), ("b.json", "10:05"))]
        layout = demo("probe", "layout", *files, "--json").json
        assert layout["where"] == "message 1 of 2 (system)"
        assert layout["blocks"] == 0
        assert layout["saved_tokens"] >= 1600
        assert "10:05" in demo("probe", "layout", *files).out
        assert "takes two requests" in demo("probe", "layout", files[0], code=2).err
        assert "POST /tokenize?" in demo("logs", "--all", "-n", "5000").out
        log = demo("logs", "-n", "5000").out
        assert "/tokenize" not in log
        assert "POST /v1/chat/completions" in log
    finally:
        demo("down")


def test_runs_are_compared_adopted_with_their_difference_and_go_on(demo: Console) -> None:
    words = ("ab", "mtp", "--size", "small", "--rounds", "1", "--workloads", "decode")
    first, second = (demo(*words, "--json").json for _ in range(2))
    side = demo("ab", "compare", "--json").json
    assert side["runs"] == [second["id"], first["id"]]
    assert {cell["run"] for row in side["rows"] for cell in row["cells"]} == set(side["runs"])
    assert "time per output token, on/off" in demo("ab", "compare", first["id"], second["id"]).out
    adopted = demo("ab", "adopt", first["id"], "on")
    assert "speculative-config: not set → {" in adopted.err
    assert Path(adopted.out.strip()).is_file()
    assert "is whole" in demo("ab", "resume", first["id"], code=2).err


def test_while_a_run_goes_on_no_probe_spoils_it_and_the_log_is_quiet(demo: Console) -> None:
    run_id = demo("ab", "aa", "--size", "normal", "--rounds", "2", "--no-wait").out.strip()
    try:
        wait_until(lambda: "POST /tokenize?" in demo("logs", "--all", "-n", "5000", code=None).out)
        shown = demo("logs", "-n", "5000")
        assert "startup complete" in shown.out
        assert '" 200' not in shown.out
        assert f"what the A/B run {run_id} asks its arm is left out" in shown.err
        for words in (("prefix",), ("layout", "a.json", "b.json")):
            refused = demo("probe", *words, code=4).err
            assert "an A/B run is going on: a probe would spoil it" in refused
        assert run_id in demo("up", "--prove", code=4).err
        assert f"the run {run_id} goes on: it advises nothing yet" in demo("ab", "adopt", run_id, "a2", code=4).err
        told = demo("status").out
        assert f"an A/B run goes on: {run_id}" in told
        assert f"ab stop {run_id}" in told
        run = demo("status", "--json").json["run"]
        assert (run["id"], run["kind"], run["arm"]) == (run_id, "aa", "a1")
    finally:
        demo("ab", "stop")
    boots = demo("ab", "show", run_id, "--json").json["boots"]
    assert not any("foreign traffic" in (boot["reason"] or "") for boot in boots)
