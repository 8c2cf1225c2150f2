"""What runs leave for later ones: who may lend to whom, and that a verdict says what it pooled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from console.lab.compare import lines, side_by_side
from console.lab.control import list_runs
from console.lab.folder import write_folder
from console.lab.history import Lent, collect, identity, lent_by, may_lend, newest_floor, remembered, write_lent
from console.lab.plan import Plan, make_plan
from console.lab.report import to_json, write_reports
from console.lab.view import read_run
from console.presets import Preset
from tests.unit.lab_runs import BASE, MTP, Made, Speed, make_run, whole_run

ENVS: list[dict[str, Any]] = [{"vllm": "0.32.0"}]


def _lend_to(plan: Plan, made: Made) -> Lent:
    folder = made.paths.run("20300101-000000-next")
    folder.mkdir(exist_ok=True)
    write_folder(folder, made.paths, plan, None)
    write_lent(folder, collect(made.paths, plan), newest_floor(made.paths, plan))
    return lent_by(folder, ENVS)


def _plan(kind: str = "mtp", base: Preset = BASE, **options: Any) -> Plan:
    return make_plan(kind, base, **{"size": "small", "rounds": 3, "seed": 2, **options})


def test_a_run_lends_to_the_next_one_of_its_kind() -> None:
    made = whole_run()
    write_reports(made.folder)
    lent = _lend_to(_plan(), made)
    assert lent.runs == (made.folder.name,)
    assert lent.spread("decode.tpot_s").df == 2
    assert lent.spread("nothing.there").df == 0
    assert lent.floor is None


def test_equal_arms_lend_to_a_run_that_varies_a_key_and_leave_a_floor() -> None:
    made = whole_run("aa")
    write_reports(made.folder)
    lent = _lend_to(_plan(), made)
    assert lent.spread("decode.tpot_s").df == 2
    assert lent.floor is not None
    assert lent.floor.rounds == 3
    assert 0 < lent.floor.half_width["decode.tpot_s"] < 0.1


def test_the_floor_of_a_preset_is_shown_whatever_its_size_but_lends_nothing_then() -> None:
    made = whole_run("aa")
    write_reports(made.folder)
    lent = _lend_to(_plan(size="normal"), made)
    assert lent.runs == ()
    assert lent.floor is not None
    assert (lent.floor.run, lent.floor.size) == (made.folder.name, "small")
    assert _lend_to(_plan(size="normal", base=replace(BASE, name="another")), made).floor is None


@pytest.mark.parametrize(
    ("other", "able"),
    [
        ({}, True),
        ({"args": {**BASE.args, "max-num-seqs": 9}}, False),
        ({"args": {**BASE.args, **MTP}}, True),
        ({"model": "another"}, False),
        ({"env": {"NCCL_P2P_DISABLE": "1"}}, False),
        ({"env": {"HOME": "/x"}}, True),
        ({"name": "renamed"}, True),
    ],
)
def test_only_boots_of_the_same_configuration_count_but_for_what_was_varied(other: dict[str, Any], able: bool) -> None:
    made = whole_run()
    write_reports(made.folder)
    lent = _lend_to(_plan("aa", replace(BASE, **other)), made)
    assert bool(lent.runs) is able


def test_another_size_or_other_workloads_do_not_lend() -> None:
    made = whole_run()
    write_reports(made.folder)
    assert not _lend_to(_plan(size="normal"), made).runs
    assert not _lend_to(_plan(workloads=["decode"]), made).runs


def test_another_vllm_or_driver_does_not_lend() -> None:
    made = whole_run()
    write_reports(made.folder)
    folder = made.paths.run("20300101-000000-next")
    folder.mkdir()
    write_lent(folder, collect(made.paths, _plan()))
    assert lent_by(folder, [{"vllm": "0.33.0"}]).runs == ()
    assert lent_by(folder, [*ENVS, {"vllm": "0.33.0"}]).runs == ()
    assert lent_by(folder, [{"vllm": "0.32.0", "driver": "580.1"}]).runs == ()
    assert lent_by(folder, []).runs == ()
    assert lent_by(folder, ENVS).runs == (made.folder.name,)


def test_what_a_run_varied_is_free_on_either_side() -> None:
    ours = identity(_plan("custom", BASE, a={"max-num-seqs": 2}, b={"max-num-seqs": 4}))
    theirs = identity(_plan("aa", replace(BASE, args={**BASE.args, "max-num-seqs": 16})))
    assert may_lend({"identity": theirs}, ours)
    assert not may_lend({"identity": theirs}, identity(_plan("aa")))
    assert not may_lend({}, ours)


def test_the_verdict_says_what_it_pooled_and_shows_the_floor() -> None:
    floor = whole_run("aa")
    write_reports(floor.folder)
    plan = _plan()
    folder = floor.paths.run("20300101-000000-mtp")
    folder.mkdir()
    write_folder(folder, floor.paths, plan, None)
    write_lent(folder, collect(floor.paths, plan))
    made = Made(floor.paths, plan, folder)
    with made.journal() as journal:
        journal.add("run-start", id=folder.name, kind="mtp", preset="small")
    for place in plan.boots():
        made.boot(place, Speed(tpot_s=0.015, step=2) if place[2] == "on" else Speed())
    made.end()
    report = to_json(folder)
    pair = report["metrics"]["decode.tpot_s"]["compare"][0]
    assert (pair["df"], pair["pooled_df"]) == (4, 2)
    assert report["pooled_runs"] == [floor.folder.name]
    assert report["noise_floor"]["run"] == floor.folder.name
    why = " / ".join(report["verdict"]["why"])
    assert f"pooled with 1 earlier run ({floor.folder.name})" in why
    assert "4 degrees of freedom" in why
    assert f"noise floor ({floor.folder.name}, 3 rounds): equal arms come apart by time per output token ±" in why
    write_reports(folder)
    assert "(4, 2 of earlier runs)" in (folder / "report.md").read_text()


def test_a_run_whose_boots_ran_two_versions_leaves_nothing() -> None:
    made = make_run(rounds=2)
    for place in made.plan.boots():
        made.boot(place, Speed(), env={"vllm": f"0.{31 + place[1]}.0"})
    made.end()
    write_reports(made.folder)
    assert collect(made.paths, _plan(rounds=2)) == []


def test_the_next_plan_knows_how_long_a_boot_took() -> None:
    made = whole_run()
    write_reports(made.folder)
    known = remembered(made.paths, BASE)
    assert known.block_tokens == 256
    assert known.version == "0.32.0"
    assert known.start_s == 24.0
    assert remembered(made.paths, replace(BASE, name="other")).block_tokens is None


def test_runs_stand_side_by_side() -> None:
    first = whole_run()
    second = first.paths.run("20260102-000000-mtp")
    second.mkdir()
    write_folder(second, first.paths, first.plan, None)
    made = Made(first.paths, first.plan, second)
    with made.journal() as journal:
        journal.add("run-start", id=second.name, kind="mtp", preset="small")
    for place in made.plan.boots():
        made.boot(place, Speed(tpot_s=0.05), env={"vllm": "0.33.0"})
    made.end()
    side = side_by_side(list_runs(first.paths))
    assert side.runs == (second.name, first.folder.name)
    row = next(row for row in side.rows if row.measure == "decode.tpot_s")
    assert row.agree is False
    assert next(row for row in side.rows if row.measure == "agent.ttft_cold_s").agree is True
    assert side.differences == ("vLLM: 0.33.0 · 0.32.0",)
    text = "\n".join(lines(side))
    assert "DO NOT OVERLAP" in text
    assert side.to_json()["rows"][0]["cells"]
    assert read_run(second).verdict is not None


def test_runs_whose_arms_are_other_things_under_one_name_say_so() -> None:
    one = whole_run("custom", a={"seed": 1}, b={"seed": 2})
    changed = replace(BASE, args={**BASE.args, "max-num-seqs": 7})
    plan = make_plan("custom", changed, size="small", rounds=3, a={"seed": 1}, b={"seed": 1, "block-size": 32})
    second = one.paths.run("20260102-000000-custom")
    second.mkdir()
    write_folder(second, one.paths, plan, None)
    side = side_by_side([read_run(second), read_run(one.folder)])
    arms, *_, settings = side.differences
    assert arms.startswith("what the arms are: a → b: ")
    assert "block-size: not set → 32" in arms
    assert settings == "settings of the first arm: max-num-seqs"
