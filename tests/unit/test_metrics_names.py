"""Our table of names against what each release of vLLM defines in its own source (see contract/vllm_names)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from console.metrics.names import (
    BY_SOURCE,
    CACHE_INFO,
    COUNTERS,
    HISTOGRAMS,
    KV_USED,
    PER_POSITION,
    QUANTILES,
    RUNNING,
    WAITING,
)
from tests.contract.vllm_names import DATA
from tests.unit.metrics_pages import counters, page

VERSIONS = tuple(
    sorted(
        (path.stem.removeprefix("names-") for path in DATA.glob("names-*.yaml")),
        key=lambda version: [int(part) for part in version.split(".")],
    )
)
FIRST_WITH = {"tpot": "0.11.0", "prefill_computed": "0.15.0", "prompt_cached": "0.18.0", BY_SOURCE: "0.18.0"}
"""What older releases do not have; everything else is in all of them."""
GAUGES = {"running": RUNNING, "waiting": WAITING, "kv_used": KV_USED, "info": (CACHE_INFO,)}
SINGLE = {BY_SOURCE: (BY_SOURCE,), PER_POSITION: (PER_POSITION,)}


def table(version: str) -> dict[str, Any]:
    found = yaml.safe_load((DATA / f"names-{version}.yaml").read_text())
    assert isinstance(found, dict)
    return found


def on_the_wire(version: str, kind: str) -> dict[str, dict[str, Any]]:
    """The release's metrics of a kind, under the names that stand on its page."""
    suffix = "_total" if kind == "counter" else ""
    return {
        f"vllm:{name.removesuffix('_total') if suffix else name}{suffix}": entry
        for name, entry in table(version).items()
        if entry["kind"] == kind
    }


def test_the_versions_that_must_be_there() -> None:
    assert {"0.8.5", "0.10.2", "0.12.0", "0.18.0", "0.32.0"} <= set(VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_each_figure_has_its_series_in_this_release(version: str) -> None:
    age = VERSIONS.index(version)
    for kind, names in (("counter", {**COUNTERS, **SINGLE}), ("histogram", HISTOGRAMS), ("gauge", GAUGES)):
        known = on_the_wire(version, kind)
        for key, aliases in names.items():
            there = [alias for alias in aliases if alias in known]
            first = FIRST_WITH.get(key)
            wanted = first is None or age >= VERSIONS.index(first)
            assert bool(there) == wanted, (version, key)
    assert "source" in on_the_wire(version, "counter").get(BY_SOURCE, {"labels": ["source"]})["labels"]
    assert "position" in on_the_wire(version, "counter")[PER_POSITION]["labels"]
    assert "finished_reason" in on_the_wire(version, "counter")["vllm:request_success_total"]["labels"]


@pytest.mark.parametrize("version", VERSIONS)
def test_buckets_are_those_of_the_recorded_page(version: str) -> None:
    got = counters(page("mtp", 1))
    for key in QUANTILES:
        name = next((alias for alias in HISTOGRAMS[key] if alias in on_the_wire(version, "histogram")), None)
        if name is None:
            continue
        bounds = on_the_wire(version, "histogram")[name]["buckets"]
        recorded = [bound for bound, _ in getattr(got, key).buckets[:-1]]
        if bounds == "1-2-5 up to the context":
            bounds = [digit * 10**power for power in range(9) for digit in (1, 2, 5)][: len(recorded)]
        assert [float(bound) for bound in bounds] == recorded, (version, key)


def test_the_old_hit_counter_changed_its_unit_and_says_so() -> None:
    assert "blocks" in table("0.8.5")["gpu_prefix_cache_hits"]["about"]
    for version in ("0.10.2", "0.11.0"):
        assert "tokens" in table(version)["gpu_prefix_cache_hits"]["about"]
        assert "prefix_cache_hits" in table(version)


@pytest.mark.parametrize(
    ("about", "cached"),
    [
        ("GPU prefix cache hits, in terms of number of cached blocks.", 100 * 256),
        ("GPU prefix cache hits, in terms of number of cached tokens.", 100),
        ("Hits.", None),
        (None, None),
    ],
)
def test_cached_tokens_from_the_old_counter_by_its_unit(about: str | None, cached: int | None) -> None:
    text = "".join(
        line
        for line in page("prefix", 1).splitlines(True)
        if "prefix_cache_hits" not in line and "prompt_tokens_cached" not in line and "prompt_tokens_by" not in line
    )
    if about is not None:
        text += f"# HELP vllm:gpu_prefix_cache_hits_total {about}\n"
    text += 'vllm:gpu_prefix_cache_hits_total{engine="0",model_name="tiny"} 100.0\n'
    got = counters(text)
    assert (got.prefix_hits, got.cached_tokens) == (100, cached)
