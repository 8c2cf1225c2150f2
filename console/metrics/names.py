"""vLLM's metric names over its versions.

They are probed: the first one on the page wins, and nothing is derived from a version.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

COUNTERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "requests_finished": ("vllm:request_success_total",),
        "preemptions": ("vllm:num_preemptions_total",),
        "prompt_tokens": ("vllm:prompt_tokens_total",),
        "generation_tokens": ("vllm:generation_tokens_total",),
        "prompt_cached": ("vllm:prompt_tokens_cached_total",),
        "prefix_queries": ("vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"),
        "prefix_hits": ("vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"),
        "spec_drafts": ("vllm:spec_decode_num_drafts_total",),
        "spec_draft_tokens": ("vllm:spec_decode_num_draft_tokens_total",),
        "spec_accepted_tokens": ("vllm:spec_decode_num_accepted_tokens_total",),
    }
)
"""Sums over engines and labels."""

HISTOGRAMS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ttft": ("vllm:time_to_first_token_seconds",),
        # One sample an engine step, under its present and its former name; never mixed with the time per output token
        # of a whole request.
        "itl": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
        "tpot": ("vllm:request_time_per_output_token_seconds",),
        "e2e": ("vllm:e2e_request_latency_seconds",),
        "queue": ("vllm:request_queue_time_seconds",),
        "prefill": ("vllm:request_prefill_time_seconds",),
        "decode": ("vllm:request_decode_time_seconds",),
        "prefill_computed": ("vllm:request_prefill_kv_computed_tokens",),
        "request_prompt": ("vllm:request_prompt_tokens",),
        "request_generation": ("vllm:request_generation_tokens",),
    }
)

RUNNING = ("vllm:num_requests_running",)
WAITING = ("vllm:num_requests_waiting",)
KV_USED = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
OLD_HITS = "vllm:gpu_prefix_cache_hits_total"
BY_SOURCE = "vllm:prompt_tokens_by_source_total"
PER_POSITION = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
CACHE_INFO = "vllm:cache_config_info"
CREATED = ("vllm:generation_tokens_created", "vllm:prompt_tokens_created")
PROCESS_START = "process_start_time_seconds"
HTTP = "http_requests_total"
"""Counted by the web server in front of the engine, by `status` such as `2xx`."""
QUANTILES = ("ttft", "itl", "tpot", "e2e", "queue", "request_generation")
"""Histograms whose buckets are read; of the others the mean is enough."""

WANTED = frozenset(
    {
        *(name for names in COUNTERS.values() for name in names),
        *(f"{name}{part}" for names in HISTOGRAMS.values() for name in names for part in ("_count", "_sum")),
        *(f"{name}_bucket" for key in QUANTILES for name in HISTOGRAMS[key]),
        *(*RUNNING, *WAITING, *KV_USED, *CREATED),
        *(BY_SOURCE, PER_POSITION, CACHE_INFO, PROCESS_START, HTTP),
    }
)
"""All that is read of a page; the rest of it (more than half) is not parsed."""
