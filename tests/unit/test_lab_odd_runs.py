"""A run whose files are not what a lab writes is one failed run: it hides no other and ends in no traceback."""

from __future__ import annotations

import json
import math

import pytest

from console.cli.main import main
from console.lab.journal import FILE
from console.lab.results import PLAN_FILE
from console.lab.view import UNREADABLE, read_run
from tests.unit.lab_runs import Made, whole_run

ODD = (
    '{"event": "boot-end"}',
    '{"event": "boot-end", "n": 1, "arm": "on", "round": 1, "valid": true, "reason": null, "crash": null, "env": 7}',
    '{"event": "boot-end", "n": [], "arm": "on", "round": 1, "valid": true, "reason": null, "crash": null, "env": {}}',
    '{"event": "request", "n": 1, "workload": "decode", "phase": "decode", "key": "k", "trace": []}',
    '{"event": "request", "n": 1, "workload": "decode", "phase": "decode", "key": "k", "trace": {"outcome": "ok"}}',
    '{"event": "run-end"}',
    '{"event": "run-end", "state": "done", "at": "noon"}',
    '{"event": "step", "at": {}}\n{"event": "restored", "at": 1}',
    '{"event": "environment", "variables": 3}\n{"event": "warning"}',
)


def _spoil(made: Made, lines: str) -> None:
    with (made.folder / FILE).open("a") as file:
        file.write(lines + "\n")


@pytest.mark.parametrize("lines", ODD)
def test_lines_of_another_shape_spoil_their_own_run_only(lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = whole_run()
    _spoil(made, lines)
    view = read_run(made.folder)
    assert view.state in ("failed", "done", "interrupted")
    other = made.paths.run("20260102-000000-aa")
    other.mkdir()
    assert main(["ab", "list"]) == 0
    assert other.name in capsys.readouterr().out
    assert main(["ab", "list", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 2
    for words in (["ab", "show", made.folder.name], ["ab", "show", made.folder.name, "--json"]):
        code = main(words)
        said = capsys.readouterr()
        assert code == (1 if view.problem == UNREADABLE else 0)
        assert code == 0 or "cannot be shown" in said.err
    code = main(["ab", "adopt", made.folder.name, "on", "--yes"])
    assert code in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_a_plan_of_one_arm_is_adopted_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    made = whole_run()
    plan = json.loads((made.folder / "plan.json").read_text())
    plan["arms"], plan["order"] = plan["arms"][:1], [plan["arms"][0]["name"]]
    (made.folder / "plan.json").write_text(json.dumps(plan))
    for arm in ("off", "on"):
        assert main(["ab", "adopt", made.folder.name, arm, "--yes"]) in (1, 2)
        assert "fix:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stamps", "tokens"),
    [
        ([-1.0, 0.2], [1, 2]),
        ([0.2, 0.1], [1, 2]),
        ([0.1, math.nan], [1, 2]),
        ([0.1, math.inf], [1, 2]),
        ([0.1, 0.2], [2, 1]),
        ([0.1, 0.2], [1]),
    ],
)
def test_a_request_that_nobody_can_have_seen_is_in_no_figure(stamps: list[float], tokens: list[int]) -> None:
    made = whole_run()
    lines = (made.folder / FILE).read_text().splitlines()
    at = next(i for i, text in enumerate(lines) if '"event": "request"' in text and '"decode"' in text)
    event = json.loads(lines[at])
    event["trace"] |= {"stamps": stamps, "tokens": tokens}
    (made.folder / FILE).write_text("\n".join([*lines[:at], json.dumps(event), *lines[at + 1 :], ""]))
    view = read_run(made.folder)
    assert (view.state, view.problem) == ("failed", UNREADABLE)


def test_a_request_that_stands_there_twice_is_counted_in_no_throughput() -> None:
    made = whole_run()
    lines = (made.folder / FILE).read_text().splitlines()
    at = next(i for i, text in enumerate(lines) if '"event": "request"' in text and '"concurrent"' in text)
    (made.folder / FILE).write_text("\n".join([*lines[: at + 1], lines[at], *lines[at + 1 :], ""]))
    view = read_run(made.folder)
    assert (view.state, view.problem) == ("failed", UNREADABLE)


def test_nesting_without_end_is_no_event() -> None:
    made = whole_run()
    _spoil(made, "[" * 100_000)
    assert read_run(made.folder).state == "done"
    (made.folder / PLAN_FILE).write_text("[" * 100_000)
    assert read_run(made.folder).problem == "its plan.json is missing or cannot be read"


@pytest.mark.parametrize("plan", ["[]", "7", '{"preset": []}', '{"kind": 3}'])
def test_a_plan_of_another_shape_is_a_failed_run(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = whole_run()
    (made.folder / PLAN_FILE).write_text(plan)
    assert read_run(made.folder).state == "failed"
    assert main(["ab", "list"]) == 0
    assert main(["ab", "show", made.folder.name]) in (1, 3)
    assert "Traceback" not in capsys.readouterr().err


def test_a_plan_with_a_preset_of_another_shape_is_a_failed_run() -> None:
    made = whole_run()
    raw = json.loads((made.folder / PLAN_FILE).read_text())
    for key, value in (("env", []), ("server", 3), ("args", ["x"])):
        spoilt = raw | {"preset": raw["preset"] | {key: value}}
        (made.folder / PLAN_FILE).write_text(json.dumps(spoilt))
        assert read_run(made.folder).state == "failed"


def test_what_is_printed_is_json_whatever_numbers_stand_in_a_journal(capsys: pytest.CaptureFixture[str]) -> None:
    made = whole_run()
    text = (made.folder / FILE).read_text()
    (made.folder / FILE).write_text(text.replace('"start_s": 24.0', '"start_s": 1e999'))
    assert main(["ab", "show", made.folder.name, "--json"]) == 0

    def refuse(word: str) -> None:
        raise AssertionError(word)

    report = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert report["boots"][0]["env"]["start_s"] is None


@pytest.mark.parametrize("word", ["nope", "2026"])
def test_recover_takes_what_the_other_words_take(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = whole_run()
    code = main(["ab", "recover", word])
    error = capsys.readouterr().err
    if word == "nope":
        assert code == 3
        assert "there is no run nope" in error
    else:
        assert code == 1
        assert "has ended already" in error
    assert made.folder.exists()


@pytest.mark.parametrize("words", [("show",), ("resume",), ("recover",), ("adopt", "on"), ("compare",)])
def test_a_beginning_that_several_runs_share_is_named_with_them(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [whole_run(kind).folder.name for kind in ("mtp", "aa")]
    verb, *rest = words
    assert main(["ab", verb, "2026", *rest]) == 2
    error = capsys.readouterr().err
    assert "2026 is ambiguous: 2 runs begin so" in error
    assert all(one in error for one in ids)
    assert "there is no run" not in error


def test_a_run_is_not_compared_with_itself(capsys: pytest.CaptureFixture[str]) -> None:
    run = whole_run().folder.name
    assert main(["ab", "compare", run, run]) == 2
    assert "one run is named twice" in capsys.readouterr().err
