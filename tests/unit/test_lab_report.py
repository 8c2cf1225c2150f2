"""From a journal to report.json, report.md and the view: the contract's keys, and the same numbers everywhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from console.errors import ConsoleError, NothingError, UsageError
from console.lab.control import find_run, list_runs, stop_run
from console.lab.folder import read_folder
from console.lab.journal import FILE
from console.lab.markdown import value
from console.lab.measures import said
from console.lab.plan import Known
from console.lab.report import to_json, write_reports
from console.lab.view import read_run
from console.paths import Paths
from console.presets import Preset
from console.server.run_lock import hold_run_lock
from tests.unit.lab_runs import BASE, CRASH, MTP, Speed, drafts, make_run, whole_run

CONTRACT = {
    "schema", "id", "kind", "preset", "simulated", "state", "versions", "plan", "boots", "metrics", "mtp", "probes",
    "divergence", "noise_floor", "pooled_runs", "settled", "verdict", "warnings", "pictures", "journal",
}  # fmt: skip


def test_the_json_has_the_keys_of_the_contract() -> None:
    report = to_json(whole_run().folder)
    assert report.keys() == CONTRACT
    assert report["plan"].keys() >= {"arms", "differs", "rounds", "order", "seed", "size", "workloads"}
    assert report["boots"][0].keys() == {"n", "arm", "round", "valid", "reason", "crash", "outcomes", "env"}
    tpot = report["metrics"]["decode.tpot_s"]
    assert tpot["arms"]["off"].keys() == {"median", "lo", "hi", "n_rounds", "n_requests"}
    assert tpot["compare"][0].keys() >= {"arm", "against", "ratio", "lo", "hi", "verdict", "warnings"}
    assert report["verdict"].keys() == {"overall", "sentence", "arm", "why"}
    assert report["schema"] == 1
    assert report["state"] == "done"
    json.dumps(report)


def test_gap_and_time_per_token_are_two_numbers() -> None:
    metrics = to_json(whole_run().folder)["metrics"]
    tpot, gap = (metrics[name]["compare"][0] for name in ("decode.tpot_s", "decode.gap_s"))
    assert tpot["ratio"] == pytest.approx(0.5, rel=0.01)
    assert gap["ratio"] == pytest.approx(1.0, rel=0.01)
    assert metrics["decode.tpot_s"]["arms"]["on"]["n_rounds"] == 3
    assert metrics["decode.tpot_s"]["arms"]["on"]["n_requests"] == 6
    assert metrics["decode.tpot_greedy_s"]["arms"]["on"]["n_requests"] == 3


def test_speculation_is_null_where_there_is_none() -> None:
    mtp = to_json(whole_run().folder)["mtp"]
    assert mtp["off"] is None
    assert mtp["on"]["acceptance_start"] == pytest.approx(40 / 60)
    assert mtp["on"]["mean_acceptance_length"] == pytest.approx(1 + 40 / 30)
    assert mtp["on"]["per_position"] == [pytest.approx(25 / 30), pytest.approx(15 / 30)]


def test_a_good_run_is_adopted_and_fine() -> None:
    view = read_run(whole_run().folder)
    assert (view.state, view.progress, view.step) == ("done", 1.0, "")
    assert view.verdict is not None
    assert view.verdict.overall == "adopt"
    assert view.ok
    assert view.restored == "nothing ran before, so nothing runs now"


def test_both_reports_say_the_same() -> None:
    folder = whole_run().folder
    write_reports(folder)
    report = json.loads((folder / "report.json").read_text())
    page = (folder / "report.md").read_text()
    for name, metric in report["metrics"].items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {said(name)} |"))
        for figure in metric["arms"].values():
            shown = f"{value(name, figure['median'])} [{value(name, figure['lo'])}, {value(name, figure['hi'])}]"
            assert shown in row
    for pair in report["metrics"]["decode.tpot_s"]["compare"]:
        assert f"{(pair['ratio'] - 1) * 100:+.1f} %" in page
    assert report["verdict"]["sentence"] in page
    assert "SIMULATED" not in page


def test_a_simulated_run_says_so_in_its_title() -> None:
    folder = whole_run(base=Preset("demo", "m", lab={"mtp": MTP}, simulated=True)).folder
    write_reports(folder)
    assert to_json(folder)["simulated"] is True
    assert (folder / "report.md").read_text().startswith("# SIMULATED")


def test_a_stand_in_behind_an_ordinary_preset_is_found_by_its_version() -> None:
    made = make_run()
    made.boot((1, 1, "off"), Speed(), env={"vllm": "0.32.0+sim"})
    assert read_run(made.folder).simulated


def test_a_crashed_arm_is_reported_with_its_cause_and_fails_the_verb() -> None:
    made = make_run(rounds=2)
    for place in made.plan.boots():
        if place[2] == "off":
            made.boot(place, Speed())
        else:
            made.boot(place, Speed(), valid=False, crash=CRASH, reason=f"crashed: {CRASH['what']}")
    made.end()
    report = to_json(made.folder)
    crash = next(boot["crash"] for boot in report["boots"] if boot["arm"] == "on")
    assert crash["cause"] == "engine-crashed"
    assert report["verdict"]["overall"] == "keep"
    assert "not subscriptable" in report["verdict"]["sentence"]
    assert not read_run(made.folder).ok
    assert report["metrics"]["decode.tpot_s"]["arms"]["on"]["median"] is None
    write_reports(made.folder)
    assert "crashed: the engine died" in (made.folder / "report.md").read_text()


def test_a_boot_that_does_not_count_is_left_out_and_named() -> None:
    made = make_run(rounds=2)
    for place in made.plan.boots():
        void = place[:2] == (1, 1)
        made.boot(place, Speed(), **({"valid": False, "reason": "foreign traffic: 3 requests"} if void else {}))
    made.end()
    report = to_json(made.folder)
    assert {figure["n_rounds"] for figure in report["metrics"]["decode.tpot_s"]["arms"].values()} == {1, 2}
    assert any("foreign traffic" in text for text in report["warnings"])


def test_a_run_whose_process_is_gone_was_interrupted() -> None:
    made = make_run()
    made.boot((1, 1, "off"), Speed())
    view = read_run(made.folder)
    assert view.state == "interrupted"
    assert view.verdict is not None
    assert "cut short after 1 of 6 boots" in view.verdict.sentence
    assert view.verdict.overall in ("undecided", "invalid")


def test_a_run_that_lives_shows_where_it_is() -> None:
    made = make_run()
    place = made.plan.boots()[0]
    made.boot(place, Speed())
    with made.journal() as journal:
        n, round_number, arm = made.plan.boots()[1]
        journal.add("boot-start", n=n, arm=arm, round=round_number, port=1)
        journal.add("step", n=n, text="decode 2/3")
    with hold_run_lock(made.paths, made.folder.name):
        view = read_run(made.folder)
    assert view.state == "running"
    assert view.step == f"round 1/3 · {arm} · decode 2/3"
    assert view.done / view.planned == pytest.approx(1 / 6, abs=0.01)
    assert view.progress > 0
    assert view.verdict is None
    assert view.eta_s is not None
    assert set(view.metrics["decode.tpot_s"].arms) == {"off", "on"}


def test_a_torn_journal_costs_one_request() -> None:
    made = whole_run()
    path = made.folder / FILE
    path.write_bytes(path.read_bytes()[:-7])
    view = read_run(made.folder)
    assert view.state == "interrupted"
    assert len(view.boots) == 6


def test_a_folder_without_a_plan_is_a_failed_run(tmp_path: Path) -> None:
    view = read_run(tmp_path)
    assert view.state == "failed"
    assert view.problem
    with pytest.raises(NothingError):
        to_json(tmp_path)


def test_runs_are_listed_newest_first_and_found_by_their_beginning() -> None:
    made = whole_run()
    other = made.paths.run("20260102-000000-aa")
    other.mkdir()
    assert [view.id for view in list_runs(made.paths)] == [other.name, made.folder.name]
    assert find_run(made.paths, "20260101") == made.folder
    assert find_run(made.paths) == other
    with pytest.raises(NothingError):
        find_run(made.paths, "2028")
    with pytest.raises(UsageError, match="20 is ambiguous: 2 runs begin so"):
        find_run(made.paths, "20")


def test_without_runs_there_is_nothing() -> None:
    paths = Paths.from_env()
    assert list_runs(paths) == []
    with pytest.raises(NothingError):
        find_run(paths)
    with pytest.raises(NothingError):
        stop_run(paths)


def test_several_arms_are_each_held_against_the_first() -> None:
    made = make_run("chunk", arms=["512", "1024", "2048"])
    for place in made.plan.boots():
        made.boot(place, Speed(ttft_s=1.0 if place[2] == "2048" else 2.0))
    made.end()
    report = to_json(made.folder)
    pairs = report["metrics"]["agent.ttft_cold_s"]["compare"]
    assert [(pair["arm"], pair["against"]) for pair in pairs] == [("1024", "512"), ("2048", "512")]
    assert pairs[1]["verdict"] == "better"
    assert report["verdict"]["overall"] == "adopt"
    assert "adopt 2048" in report["verdict"]["sentence"]
    assert report["mtp"] == {"512": None, "1024": None, "2048": None}


def test_late_stamps_and_changed_versions_are_warned_of() -> None:
    made = make_run(rounds=1)
    made.boot((1, 1, "off"), Speed(), env={"vllm": "0.32.0", "client_lateness_s": 0.012})
    made.boot((2, 1, "on"), Speed(), env={"vllm": "0.33.0"})
    text = " / ".join(to_json(made.folder)["warnings"])
    assert "12.0 ms late" in text
    assert "version differs" in text
    assert "one round only suggests" in text


def test_secrets_do_not_reach_the_run_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    base = Preset("s", "m", env={"VLLM_API_KEY": "hush-hush"}, secrets=frozenset({"VLLM_API_KEY"}), lab={"mtp": MTP})
    made = make_run(base=base)
    for file in made.folder.rglob("*"):
        assert "hush-hush" not in file.read_text()
    assert read_folder(made.folder).plan.base.api_key is None
    monkeypatch.setenv("QWEN_CONSOLE_CARRIED_plan_VLLM_API_KEY", "hush-hush")
    assert read_folder(made.folder).plan.base.api_key == "hush-hush"


def test_a_broken_folder_is_an_error_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConsoleError, match="cannot be read"):
        read_folder(tmp_path)


def test_every_number_in_the_page_has_a_unit_or_is_a_count() -> None:
    folder = whole_run().folder
    write_reports(folder)
    page = (folder / "report.md").read_text()
    assert not re.search(r"\d\.\d{5,}", page)
    assert "None" not in page
    assert "nan" not in page


def test_the_base_is_not_touched() -> None:
    assert "speculative-config" not in BASE.args


def test_a_prefix_too_short_for_the_cache_is_said_for_the_arm_it_concerns() -> None:
    made = make_run(rounds=1, known=Known(block_tokens=1600))
    # The block was known as 1,600 tokens when the run was planned, and turned out to be larger.
    assert made.plan.shape.prefix_tokens == 3600
    env = {"vllm": "0.32.0", "block_tokens": 2096}
    made.boot((1, 1, "off"), Speed(), env=env)
    made.boot((2, 1, "on"), Speed(), env=env)
    found = [text for text in to_json(made.folder)["warnings"] if "taken from the cache" in text]
    assert len(found) == 1
    assert found[0].startswith("on: 2 cache blocks of 2096 tokens")


def test_the_verdict_is_there_while_what_ran_before_comes_up_again() -> None:
    made = whole_run()
    journal = made.folder / FILE
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(lines[:-2]))
    with made.journal() as open_journal:
        open_journal.add("measured", state="done")
        open_journal.add("step", n=None, text="starting small again")
    with hold_run_lock(made.paths, made.folder.name):
        view = read_run(made.folder)
    assert (view.state, view.step) == ("running", "starting small again")
    assert view.verdict is not None
    assert view.verdict.overall == "adopt"


def test_a_journal_that_grows_is_read_on_from_where_it_was() -> None:
    made = make_run()
    for place in made.plan.boots():
        made.boot(place, Speed())
        assert len(read_run(made.folder).boots) == place[0]


def test_of_several_arms_that_may_be_adopted_the_best_is_named_in_a_field() -> None:
    made = make_run("mtp", arms=["1", "2", "3"])
    for place in made.plan.boots():
        speed = Speed(tpot_s={"off": 0.03, "n1": 0.02, "n2": 0.012, "n3": 0.015}[place[2]])
        made.boot(place, speed, **({} if place[2] == "off" else {"drafts": drafts()}))
    made.end()
    verdict = to_json(made.folder)["verdict"]
    assert (verdict["overall"], verdict["arm"]) == ("adopt", "n2")
    assert verdict["sentence"].startswith("adopt n2:")


def test_a_run_that_was_cut_short_is_not_called_invalid() -> None:
    made = make_run()
    made.end("interrupted", "stopped by SIGTERM")
    view = read_run(made.folder)
    assert view.verdict is not None
    assert (view.state, view.verdict.overall, view.verdict.arm) == ("interrupted", "undecided", None)
