"""Each rule finds what it is for, and is silent beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from console.lint import Ground, Weight, lint
from console.lint.check import memory_plan
from console.memory import MemoryPlan, plan, read_shape
from console.paths import data
from console.presets import Preset, ServerOptions, load_catalog
from console.presets.values import plain, value_problem
from tests.unit.test_memory import LARGE

GOOD: dict[str, Any] = {
    "tensor-parallel-size": 2,
    "kv-cache-dtype": "fp8",
    "kv-cache-memory-bytes": 2_500_000_000,
    "max-model-len": 32_768,
    "max-num-seqs": 2,
    "max-num-batched-tokens": 3206,
    "enable-prefix-caching": True,
    "mamba-cache-mode": "align",
    "disable-custom-all-reduce": True,
    "enable-prompt-tokens-details": True,
}
MTP = {"method": "mtp", "num_speculative_tokens": 2}
NET = {"NCCL_P2P_DISABLE": "1"}


def rules(args: dict[str, Any], ground: Ground | None = None, **more: Any) -> dict[str, Weight]:
    known = {key: value for key, value in (GOOD | args).items() if value is not None}
    preset = Preset("p", "org/Qwen3.8-27B-NVFP4", args=known, env=more.pop("env", NET))
    found = lint(replace(preset, **more), ground or Ground())
    assert all(f.what and f.why and f.fix and f.key for f in found)
    return {finding.rule: finding.weight for finding in found if finding.weight is not Weight.INFO}


def test_a_preset_in_order_has_no_finding() -> None:
    assert rules({}) == {}


@pytest.mark.parametrize(
    ("args", "rule", "weight"),
    [
        ({"speculative-config": MTP}, "mtp-prefix-async", Weight.LOOK),
        ({"speculative-config": MTP | {"num_speculative_tokens": 5}}, "mtp-n-too-large", Weight.BAD),
        ({"max-num-batched-tokens": 1024}, "chunk-below-block", Weight.BAD),
        ({"max-num-batched-tokens": 1600}, "chunk-starves", Weight.LOOK),
        ({"max-num-batched-tokens": 4096}, "chunk-too-large", Weight.LOOK),
        ({"kv-cache-memory-bytes": None}, "kv-not-pinned", Weight.LOOK),
        ({"max-num-seqs": None}, "max-num-seqs-unset", Weight.LOOK),
        ({"disable-custom-all-reduce": None}, "custom-all-reduce", Weight.LOOK),
        ({"enforce-eager": True}, "eager", Weight.LOOK),
        ({"disable-log-stats": True}, "no-metrics", Weight.LOOK),
        ({"api-key": "secret"}, "key-in-args", Weight.BAD),
    ],
)
def test_each_known_bad_combination(args: dict[str, Any], rule: str, weight: Weight) -> None:
    assert rules(args).get(rule) == weight


def test_what_makes_a_combination_good_again() -> None:
    assert "mtp-prefix-async" not in rules({"speculative-config": MTP, "async-scheduling": False})
    assert "mtp-prefix-async" not in rules({"speculative-config": MTP, "enable-prefix-caching": False})
    assert "chunk-below-block" not in rules({"max-num-batched-tokens": 1024, "enable-prefix-caching": False})
    assert rules({"tensor-parallel-size": 1, "disable-custom-all-reduce": None}, env={}) == {}


def test_numbers_and_maps_however_they_are_written() -> None:
    assert rules({"kv-cache-memory-bytes": "2.5g", "max-model-len": "32K"}) == {}
    assert rules({"max-num-batched-tokens": "1k"}) == {"chunk-below-block": Weight.BAD}
    assert rules({"tensor-parallel-size": "2"}, env={}) == {"nccl-p2p": Weight.LOOK}
    text = json.dumps(MTP)
    assert rules({"speculative-config": text}) == {"mtp-prefix-async": Weight.LOOK}
    found = lint(Preset("p", "m", args={"speculative-config": text, "max-model-len": "100k"}), Ground())
    assert "mtp-beyond-32k" in {finding.rule for finding in found}


@pytest.mark.parametrize("text", ["2.5G", "2.5", "1e9", "much"])
def test_sizes_that_vllm_refuses(text: str) -> None:
    assert value_problem("kv-cache-memory-bytes", text) is not None
    assert value_problem("kv-cache-memory-bytes", "2.5g") is None


def test_another_drafter_is_no_mtp() -> None:
    ngram = {"method": "ngram", "num_speculative_tokens": 8}
    assert rules({"speculative-config": ngram, "max-model-len": 100_000}) == {}


def test_a_budget_below_the_block_is_bad_where_the_version_refuses_it() -> None:
    small = {"max-num-batched-tokens": 1024}
    assert rules(small, Ground("0.22.1")) == {"chunk-below-block": Weight.BAD}
    assert rules(small, Ground("0.32.0+cu129")) == {"chunk-below-block": Weight.LOOK}
    assert rules(small, Ground("0.9.2")) == {"chunk-below-block": Weight.BAD}


def test_where_it_listens() -> None:
    everywhere = ServerOptions(host="0.0.0.0")
    assert rules({}, server=everywhere) == {"open-without-key": Weight.BAD}
    assert rules({}, server=everywhere, env=NET | {"VLLM_API_KEY": "k"}) == {}
    assert rules({}, server=ServerOptions(host="::1")) == {}


def test_environment_and_command() -> None:
    assert rules({}, env={}) == {"nccl-p2p": Weight.LOOK}
    assert rules({}, env=NET | {"CUDA_VISIBLE_DEVICES": "0,1"}) == {"card-order": Weight.LOOK}
    assert rules({}, command=("docker", "run")) == {"container-command": Weight.BAD}


def test_what_only_a_memory_plan_can_tell() -> None:
    small = MemoryPlan(block_tokens=1600, blocks=20, concurrency=0.9, kv_tokens=29_000)
    assert rules({"max-num-seqs": 64}, Ground(memory=small, hybrid=True)) == {
        "context-does-not-fit": Weight.BAD,
        "max-num-seqs-too-large": Weight.BAD,
    }


def test_flags_of_the_installed_version() -> None:
    known = frozenset(GOOD) | {"enable-flashinfer-autotune", "no-alone"}
    ground = Ground("0.32.0", known)
    assert rules({}, ground) == {}
    assert rules({"kv-cache-memory": 1}, ground) == {"flag-abbreviated": Weight.LOOK}
    assert rules({"enable-flashinfer-autotunes": True}, ground) == {"flag-unknown": Weight.BAD}
    assert rules({"zzz": 1, "alone": False}, ground) == {"flag-unknown": Weight.BAD}
    assert rules({"zzz": 1}) == {}, "without its help nothing is known of its flags"


def test_the_cpu_build_has_other_troubles() -> None:
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1"}
    found = rules({"speculative-config": MTP, "kv-cache-memory-bytes": None}, env=cpu)
    assert found == {"mtp-prefix-cpu": Weight.BAD}


def test_shipped_presets_have_nothing_bad() -> None:
    for preset in load_catalog([data("presets")]).presets.values():
        assert all(finding.weight is Weight.INFO for finding in lint(preset, Ground())), preset.name


def test_shipped_presets_fit_the_cards_they_are_for() -> None:
    for preset in load_catalog([data("presets")]).presets.values():
        if preset.name.startswith("qwen"):
            found = plan(read_shape(LARGE), plain(preset.args))
            assert found.concurrency is not None
            assert found.concurrency >= 1
            heavy = [one for one in lint(preset, Ground("0.27.1", None, found, True)) if one.weight is not Weight.INFO]
            assert heavy == [], preset.name


def test_a_limit_that_a_cold_start_does_not_keep() -> None:
    assert rules({}, server=ServerOptions(ready_timeout=300)) == {"ready-timeout-short": Weight.LOOK}
    assert rules({}, Ground(hybrid=False), server=ServerOptions(ready_timeout=300)) == {}
    cpu = NET | {"VLLM_CPU_KVCACHE_SPACE": "1"}
    assert rules({}, server=ServerOptions(ready_timeout=300), env=cpu) == {}


def test_what_mtp_takes_is_told() -> None:
    found = lint(Preset("p", "Qwen3.8", args=GOOD | {"speculative-config": MTP, "async-scheduling": False}), Ground())
    assert "mtp-and-prefix" in {one.rule for one in found if one.weight is Weight.INFO}


def test_no_files_no_plan() -> None:
    found, hybrid, why = memory_plan(Preset("p", "m"), None)
    assert (found, hybrid) == (None, None)
    assert "config.json" in (why or "")
