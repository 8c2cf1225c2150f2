"""Plans: arms, what differs, order, sizes, and that no secret reaches a file."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from console.cli.house import House
from console.cli.lab import known, plan_lines, plan_one_key_run
from console.errors import UsageError
from console.lab.arms import chunk_notes, effective_chunk
from console.lab.order import balanced_order
from console.lab.plan import WORKLOADS, Known, Plan, make_plan
from console.lab.shapes import shape_for
from console.memory import MemoryPlan
from console.paths import Paths
from console.presets import Preset, apply_overrides
from console.server.process import identify
from console.server.state import ServerRecord, write, write_json
from tests.unit.metrics_pages import page

MTP = {"method": "mtp", "num_speculative_tokens": 3}
ARGS: dict[str, Any] = {
    "max-model-len": 102400,
    "max-num-batched-tokens": 2048,
    "max-num-seqs": 2,
    "enable-prefix-caching": True,
}


def _preset(lab: dict[str, Any] | None = None, **args: Any) -> Preset:
    extra = {key.replace("_", "-"): value for key, value in args.items()}
    return Preset("p", "m", args={**ARGS, **extra}, lab=lab or {})


def _overrides(plan: Plan) -> dict[str, dict[str, Any]]:
    return {arm.name: dict(arm.overrides) for arm in plan.arms}


def test_mtp_takes_the_arm_that_the_preset_names() -> None:
    plan = make_plan("mtp", _preset({"mtp": {"speculative-config": MTP}}), seed=1)
    assert _overrides(plan) == {"off": {}, "on": {"speculative-config": MTP}}
    assert plan.differs == ("speculative-config",)
    assert plan.preset_of("on").speculative == MTP
    assert plan.preset_of("off").speculative is None


def test_mtp_on_a_preset_that_speculates_takes_it_away() -> None:
    plan = make_plan("mtp", _preset(speculative_config=MTP), seed=1)
    assert _overrides(plan) == {"off": {"speculative-config": None}, "on": {}}
    assert plan.preset_of("off").speculative is None


def test_mtp_has_a_sensible_arm_without_any_help() -> None:
    plan = make_plan("mtp", _preset(), seed=1)
    assert plan.preset_of("on").speculative == {"method": "mtp", "num_speculative_tokens": 2}


def test_mtp_with_several_depths() -> None:
    plan = make_plan("mtp", _preset({"mtp": {"speculative-config": MTP}}), arms=["1", "n2"], seed=1)
    assert [arm.name for arm in plan.arms] == ["off", "n1", "n2"]
    assert plan.preset_of("n2").speculative == {"method": "mtp", "num_speculative_tokens": 2}


def test_chunk_budgets_as_given_and_in_blocks() -> None:
    assert [arm.name for arm in make_plan("chunk", _preset(), arms=["512", "2048"]).arms] == ["512", "2048"]
    plan = make_plan("chunk", _preset({"chunk": ["1x", "2x"]}), known=Known(block_tokens=1600))
    # k blocks and what all streams decode: 2 streams of one token.
    assert [arm.name for arm in plan.arms] == ["1602", "3202"]
    speculating = make_plan(
        "chunk", _preset({"chunk": ["1x", 4096]}, speculative_config=MTP), known=Known(block_tokens=256)
    )
    assert [arm.name for arm in speculating.arms] == ["264", "4096"]


def test_what_runs_today_is_what_the_other_budgets_have_to_beat() -> None:
    plan = make_plan("chunk", _preset({"chunk": [512, 2048, 4096]}))
    assert [arm.name for arm in plan.arms] == ["2048", "512", "4096"]


def test_an_unknown_block_is_said() -> None:
    assert any("1600" in note for note in make_plan("chunk", _preset(), arms=["512", "2048"]).notes)
    assert not any("no server" in note for note in make_plan("mtp", _preset(), known=Known(block_tokens=256)).notes)


def test_equal_and_starving_budgets_are_named_before_the_start() -> None:
    presets = [_preset(max_num_batched_tokens=budget) for budget in (1600, 2048, 3200)]
    assert [effective_chunk(preset, 1600, 0) for preset in presets] == [1600, 1600, 3200]
    assert [effective_chunk(preset, 1600, 1) for preset in presets] == [0, 1600, 1600]
    notes = list(chunk_notes(presets, 1600))
    assert "starves" in notes[0]
    assert "equal to 1600 in effect" in notes[1]
    off = apply_overrides(presets[0], {"enable-prefix-caching": False})
    assert effective_chunk(off, 1600, 0) is None


def test_aa_has_two_equal_arms() -> None:
    plan = make_plan("aa", _preset(), seed=3)
    assert plan.differs == ()
    assert plan.preset_of("a1") == plan.preset_of("a2")


def test_custom_and_named_experiments() -> None:
    plan = make_plan("custom", _preset(), a={"max-num-seqs": 4}, b={"max-num-seqs": 8, "env.X": "1"})
    assert set(plan.differs) == {"max-num-seqs", "env.X"}
    named = make_plan("graphs", _preset({"graphs": {"enforce-eager": True}}))
    assert _overrides(named) == {"base": {}, "changed": {"enforce-eager": True}}


def test_changes_for_all_arms_do_not_count_as_a_difference() -> None:
    plan = make_plan("mtp", _preset(), changes={"max-num-seqs": 1})
    assert plan.differs == ("speculative-config",)
    assert plan.preset_of("off").args["max-num-seqs"] == 1


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("nonsense", {}, "no experiment"),
        ("custom", {}, "needs its arms"),
        ("mtp", {"size": "huge"}, "size"),
        ("mtp", {"rounds": 0}, "rounds"),
        ("mtp", {"arms": ["x"]}, "no MTP arm"),
        ("chunk", {"arms": ["512"]}, "two or more"),
        ("chunk", {"arms": ["512", "512"]}, "two or more"),
        ("chunk", {"arms": ["big", "2048"]}, "no chunk budget"),
        ("aa", {"arms": ["1"]}, "no --arms"),
        ("custom", {"a": {"max-num-seqs": 2}, "b": {"max-num-seqs": 2}}, "equal"),
        ("mtp", {"a": {}}, "no --a"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_fix(kind: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        make_plan(kind, _preset(), **options)
    assert caught.value.fix


def test_quick_is_one_small_round() -> None:
    plan = make_plan("mtp", _preset(), quick=True, rounds=9, size="full")
    assert (plan.rounds, plan.size, len(plan.order)) == (1, "small", 2)


@pytest.mark.parametrize("arms", [["a", "b"], ["a", "b", "c"]])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_is_balanced_and_mirrored(arms: list[str], seed: int) -> None:
    rounds = 2 * len(arms)
    order = balanced_order(arms, rounds, seed)
    turns = [order[i : i + len(arms)] for i in range(0, len(order), len(arms))]
    assert all(sorted(turn) == arms for turn in turns)
    assert all(turns[i + 1] == turns[i][::-1] for i in range(0, rounds, 2))
    assert set(Counter(turn[0] for turn in turns).values()) == {2}
    assert order == balanced_order(arms, rounds, seed)


def test_both_arms_come_first_for_some_seed() -> None:
    assert {balanced_order(["a", "b"], 1, seed)[0] for seed in range(20)} == {"a", "b"}


def test_a_plan_survives_its_file() -> None:
    plan = make_plan("mtp", _preset({"mtp": {"speculative-config": MTP}}), seed=7)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_no_secret_reaches_the_plans_file() -> None:
    preset = Preset("p", "m", env={"VLLM_API_KEY": "hush-hush"}, secrets=frozenset({"VLLM_API_KEY"}))
    text = json.dumps(make_plan("mtp", preset).to_json())
    assert "hush-hush" not in text
    again = Plan.from_json(json.loads(text), {"VLLM_API_KEY": "hush-hush"})
    assert again.base.api_key == "hush-hush"


def test_a_short_context_shortens_the_prefix() -> None:
    shape = shape_for("full", 1600, [_preset(max_model_len=8192), _preset()])
    assert shape.prefix_tokens + shape.turns * shape.turn_tokens <= 8192 * 0.8
    assert shape_for("full", 1600, [Preset("p", "m")]).prefix_tokens == 16400


def test_the_estimate_grows_with_rounds_and_starts() -> None:
    short, long = (make_plan("mtp", _preset(), rounds=n, known=Known(start_s=10)).estimate_s for n in (1, 4))
    # The long prompt of the probes is sent in the first round alone.
    assert 2.5 * short < long < 4 * short
    slower = make_plan("mtp", _preset(), rounds=1, known=Known(start_s=400)).estimate_s
    assert slower == pytest.approx(short + 2 * 390, abs=0.2)


def test_a_time_budget_chooses_size_and_rounds_and_boots_come_first() -> None:
    short, long = (make_plan("mtp", _preset(), time_budget_s=t, known=Known(start_s=30)) for t in (900, 7200))
    for plan in (short, long):
        assert plan.time_budget_s is not None
        assert plan.estimate_s <= plan.time_budget_s
    assert (short.size, short.rounds >= 3) == ("small", True)
    assert long.size != "small"
    assert long.rounds >= 5
    fixed = make_plan("mtp", _preset(), time_budget_s=7200, size="small", rounds=4, known=Known(start_s=30))
    assert (fixed.size, fixed.rounds) == ("small", 4)
    with pytest.raises(UsageError, match="no run fits") as caught:
        make_plan("mtp", _preset(), time_budget_s=60)
    assert "shortest" in caught.value.why


def test_an_earlier_run_tells_how_long_a_boot_takes() -> None:
    known = Known(start_s=10.0, boot_s={("small", WORKLOADS): 100.0, ("full", WORKLOADS): 9.0})
    plan = make_plan("mtp", _preset(), rounds=2, size="small", known=known)
    assert plan.estimate_s == pytest.approx(4 * 100, rel=0.1)
    fewer = make_plan("mtp", _preset(), rounds=2, size="small", known=known, workloads=["decode"])
    assert fewer.estimate_s < 4 * 80


def test_a_budget_below_the_block_is_skipped_where_vllm_asserts_and_measured_where_it_does_not() -> None:
    words = ["512", "2048", "4096"]
    old = make_plan("chunk", _preset(), arms=words, known=Known(block_tokens=1600, version="0.22.1"))
    assert [arm.name for arm in old.arms] == ["2048", "4096"]
    assert any("512" in note and "1600" in note and "skipped" in note for note in old.notes)
    for version in ("0.27.0", "0.32.0+cpu", None):
        new = make_plan("chunk", _preset(), arms=words, known=Known(block_tokens=1600, version=version))
        assert [arm.name for arm in new.arms] == words
        small = next(note for note in new.notes if "budget 512" in note)
        assert "below the cache block" in small
    with pytest.raises(UsageError, match="no two budgets") as caught:
        make_plan("chunk", _preset(), arms=["512", "2048"], known=Known(block_tokens=1600, version="0.22"))
    assert "1600" in caught.value.why


def test_more_than_the_one_key_that_is_meant_is_said() -> None:
    both = {"speculative-config": MTP, "async-scheduling": False}
    plan = make_plan("mtp", _preset({"mtp": both}))
    assert any("async-scheduling too" in note for note in plan.notes)
    custom = make_plan("custom", _preset(), a={"max-num-seqs": 4, "enforce-eager": True})
    assert any("2 keys" in note for note in custom.notes)
    assert not any("key" in note for note in make_plan("mtp", _preset()).notes)


def test_deep_speculation_is_warned_of() -> None:
    assert any("reported to crash" in note for note in make_plan("mtp", _preset(), arms=["2", "5"]).notes)


def test_workloads_are_chosen_by_name_and_recorded_requests_bring_their_own() -> None:
    assert make_plan("aa", _preset(), workloads=["decode", "agent"]).workloads == ("agent", "decode")
    assert make_plan("aa", _preset(), replays=5).workloads == ("replay",)
    assert make_plan("aa", _preset(), replays=5, workloads=["decode"]).workloads == ("decode", "replay")
    with pytest.raises(UsageError, match="no workload 'sleep'"):
        make_plan("aa", _preset(), workloads=["sleep"])
    with pytest.raises(UsageError, match="replay"):
        make_plan("aa", _preset(), workloads=["replay"])


@pytest.mark.parametrize(("demo", "amount"), [(True, ("small", 2)), (False, ("normal", 3))])
def test_one_key_plans_as_the_verb_does_but_small_in_a_demo(demo: bool, amount: tuple[str, int]) -> None:
    house = House(Paths.from_env(demo=demo))
    plan = plan_one_key_run(house, "mtp", house.preset(None))
    assert (plan.size, plan.rounds) == amount
    assert plan.workloads == (("agent", "decode") if demo else WORKLOADS)
    assert plan_one_key_run(house, "mtp", house.preset(None), 4).rounds == 4
    assert make_plan("mtp", _preset(), size="small").rounds == 3


def test_the_cache_block_comes_from_the_models_files_before_a_server_has_told_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = House(Paths.from_env())
    monkeypatch.setattr("console.lint.check.memory_plan", lambda *_: (MemoryPlan(block_tokens=784), True, None))
    assert known(house, _preset()).block_tokens == 784


def test_the_cache_block_comes_from_the_first_page_of_metrics_where_the_log_does_not_name_it() -> None:
    house, who = House(Paths.from_env()), identify(os.getpid())
    assert who is not None
    house.paths.make()
    began = "2026-01-01T00:00:00+00:00"
    preset = _preset().to_json()
    record = ServerRecord("abc", who, who, ("vllm",), "/x.log", began, preset=preset, host="127.0.0.1", port=8000)
    write(house.paths.server_record, record)
    canary = {"life": "abc", "ok": True, "why": None, "cause": None, "model": "m", "version": "0.32.0"}
    write_json(house.paths.canary, {"schema": 1, **canary, "seconds": 0.1})
    house.paths.baseline.write_text(page("mtp", 0))
    assert known(house, _preset()).block_tokens == 256
    house.paths.baseline.write_text("torn")
    assert known(house, _preset()).block_tokens is None


def test_a_plan_says_from_what_to_what_its_arms_differ_and_counts_one_round_as_one() -> None:
    plan = make_plan("graphs", _preset({"graphs": {"enforce-eager": True, "env.A_KEY": "hidden"}}), rounds=1)
    text = "\n".join(plan_lines(plan))
    assert "base → changed: " in text
    assert "enforce-eager: not set → true" in text
    assert "hidden" not in text
    assert ", 1 round\n" in text


def test_what_is_known_to_go_wrong_with_an_arm_is_said_before_the_run() -> None:
    base = replace(_preset(), args={**_preset().args, "enable-prefix-caching": True})
    notes = [note for note in make_plan("mtp", base, known=Known(version="0.32.0")).notes if note.startswith("arm ")]
    assert len(notes) == 1
    assert notes[0].startswith("arm on: MTP, prefix caching and asynchronous scheduling are on together: reported to")
    assert notes[0].endswith("(instead: async-scheduling: false)")
    safe = replace(base, args={**base.args, "async-scheduling": False})
    assert not any(note.startswith("arm ") for note in make_plan("mtp", safe, known=Known(version="0.32.0")).notes)
