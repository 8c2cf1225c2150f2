"""Recorded pages of vLLM 0.32, and the same pages under the names of older versions."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from console.metrics import vllm
from console.metrics.exposition import parse
from console.metrics.vllm import Counters

DATA = Path(__file__).parents[1] / "data" / "metrics"
SECONDS = {"prefix": 6.009, "mtp": 8.916}
"""Between the two pages of a case."""

_GONE = {
    "0.18": ("prompt_tokens_cached_by_source", "request_num_preemptions", "admission_rejections"),
    "0.15": ("prompt_tokens_cached", "prompt_tokens_by_source", "num_requests_waiting_by_reason"),
    "0.12": ("request_prefill_kv_computed_tokens",),
    "0.10": ("request_time_per_output_token_seconds",),
    "0.8.5": (),
}
"""What a version does not have yet, beside what the newer ones lack."""
_FORMER = {
    "0.10": {"inter_token_latency_seconds": "time_per_output_token_seconds"},
    "0.8.5": {
        "kv_cache_usage_perc": "gpu_cache_usage_perc",
        "prefix_cache_queries": "gpu_prefix_cache_queries",
        "prefix_cache_hits": "gpu_prefix_cache_hits",
    },
}
VERSIONS = tuple(_GONE)


def page(case: str, which: int) -> str:
    """The text of a recorded page: `prefix` or `mtp`, before (0) or after (1) the load."""
    return (DATA / f"vllm-0.32-{case}-{which}.txt").read_text()


def expected(case: str) -> dict[str, Any]:
    """Independent arithmetic on the two pages."""
    found = json.loads((DATA / f"vllm-0.32-{case}.json").read_text())
    assert isinstance(found, dict)
    return found


def counters(text: str, at: float = 0.0) -> Counters:
    """A page, typed."""
    return vllm.read(parse(text), at)


def as_version(text: str, version: str) -> str:
    """The page as an older vLLM would give it."""
    for name in VERSIONS[: VERSIONS.index(version) + 1]:
        for gone in _GONE[name]:
            text = drop(text, gone)
        for new, old in _FORMER.get(name, {}).items():
            text = re.sub(rf"vllm:{new}(?=[_ {{])", f"vllm:{old}", text)
    return text


def drop(text: str, name: str) -> str:
    """The page without a family."""
    return "".join(line for line in text.splitlines(True) if not re.search(rf"(^|[ ])vllm:{name}(_|\b)", line[:120]))


def with_value(text: str, name: str, value: str) -> str:
    """The page with another value of all series of that name."""
    changed, count = re.subn(rf"(?m)^({re.escape(name)}(?:{{[^}}]*}})?) .*$", rf"\1 {value}", text)
    assert count
    return changed


def add_engine(text: str, engine: str = "1") -> str:
    """The page of a server with another engine that did the same."""
    doubled = []
    for line in text.splitlines(True):
        doubled.append(line)
        if line.startswith("vllm:") and 'engine="0"' in line:
            doubled.append(line.replace('engine="0"', f'engine="{engine}"'))
    return "".join(doubled)
