"""The stand-in's `/metrics` page against pages recorded from vLLM 0.32."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from console.sim.options import parse
from console.sim.tally import Tally

PAGES = Path(__file__).resolve().parents[1] / "data" / "metrics"
COMMON = ["tiny", "--max-model-len", "32768", "--block-size", "256", "--tensor-parallel-size", "2"]
MTP = ["--no-enable-prefix-caching", "--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}']

Shape = dict[str, tuple[str, frozenset[frozenset[str]], frozenset[str]]]
"""Family → type, sets of label names, and bucket bounds."""


def shape(text: str) -> Shape:
    found: Shape = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith(("vllm:", "process_", "http_requests")):
            names = frozenset(frozenset(sample.labels) for sample in family.samples)
            bounds = frozenset(sample.labels["le"] for sample in family.samples if "le" in sample.labels)
            found[family.name] = (family.type, names, bounds)
    return found


def values(text: str, family: str, label: str) -> set[str]:
    (found,) = [item for item in text_string_to_metric_families(text) if item.name == family]
    return {sample.labels[label] for sample in found.samples}


@pytest.mark.parametrize(("name", "flags"), [("prefix", []), ("mtp", MTP)])
def test_every_family_has_vllms_name_type_labels_and_buckets(name: str, flags: list[str]) -> None:
    recorded = shape((PAGES / f"vllm-0.32-{name}-1.txt").read_text())
    tally = Tally(parse([*COMMON, *flags], {}))
    tally.answered("/v1/chat/completions", "POST", 200)
    ours = shape(tally.page())
    assert {key for key in ours if key.startswith("vllm:")} == {key for key in recorded if key.startswith("vllm:")}
    for family, expected in ours.items():
        assert expected == recorded[family], family


@pytest.mark.parametrize(
    ("family", "label"),
    [
        ("vllm:request_success", "finished_reason"),
        ("vllm:prompt_tokens_by_source", "source"),
        ("vllm:prompt_tokens_cached_by_source", "source"),
        ("vllm:num_requests_waiting_by_reason", "reason"),
        ("vllm:engine_sleep_state", "sleep_state"),
        ("vllm:spec_decode_num_accepted_tokens_per_pos", "position"),
    ],
)
def test_label_values_are_vllms(family: str, label: str) -> None:
    recorded = (PAGES / "vllm-0.32-mtp-1.txt").read_text()
    assert values(Tally(parse([*COMMON, *MTP], {})).page(), family, label) == values(recorded, family, label)


def test_without_speculation_its_series_are_absent() -> None:
    assert "spec_decode" not in Tally(parse(COMMON, {})).page()


def test_the_cache_says_how_it_is_made() -> None:
    text = Tally(parse([*COMMON, "--kv-cache-dtype", "fp8", "--kv-cache-memory-bytes", "2500000000"], {})).page()
    (family,) = [item for item in text_string_to_metric_families(text) if item.name == "vllm:cache_config_info"]
    told = family.samples[0].labels
    assert (told["block_size"], told["enable_prefix_caching"], told["mamba_cache_mode"]) == ("256", "True", "align")
    assert (told["kv_cache_size_tokens"], told["kv_cache_max_concurrency"]) == ("122880", "3.75")
