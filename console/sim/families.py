"""The metrics of vLLM 0.32: names, labels, kinds and default buckets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from console.sim.exposition import Family, Histogram, Kind, Labels, labels
from console.sim.options import Options

SOURCES = ("local_compute", "local_cache_hit", "external_kv_transfer")
TIERS = ("device", "host", "p2p", "disk", "external_unspecified")
REASONS = ("stop", "length", "abort", "error", "repetition")

_LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
_TTFT = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
_GAP = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80)
_ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
DEFAULT_BUCKETS: dict[str, Sequence[float]] = {
    "request_latency": _LATENCY,
    "time_to_first_token": _TTFT,
    "inter_token_latency": _GAP,
    "iteration_tokens": _ITERATION,
    "request_params_n": (1, 2, 5, 10, 20),
    "request_num_preemptions": (1, 2, 3, 4, 5, 10, 20),
}

# name, kind, what it tells, label names beside engine and model_name with their values
_PLAIN: tuple[tuple[str, Kind, str, str, Sequence[str]], ...] = (
    ("estimated_flops_per_gpu", "counter", "Estimated floating point operations.", "", ()),
    ("estimated_read_bytes_per_gpu", "counter", "Estimated bytes read from memory.", "", ()),
    ("estimated_write_bytes_per_gpu", "counter", "Estimated bytes written to memory.", "", ()),
    ("num_requests_running", "gauge", "Requests in the batch.", "", ()),
    ("num_requests_waiting", "gauge", "Requests in the queue.", "", ()),
    ("num_requests_waiting_by_reason", "gauge", "Requests in the queue by reason.", "reason", ("capacity", "deferred")),
    (
        "engine_sleep_state",
        "gauge",
        "Whether the engine sleeps.",
        "sleep_state",
        ("awake", "weights_offloaded", "discard_all"),
    ),
    ("kv_cache_usage_perc", "gauge", "KV-cache usage, 1 is all of it.", "", ()),
    ("prefix_cache_queries", "counter", "Tokens looked up in the prefix cache.", "", ()),
    ("prefix_cache_hits", "counter", "Tokens found in the prefix cache.", "", ()),
    ("external_prefix_cache_queries", "counter", "Tokens looked up in a shared cache.", "", ()),
    ("external_prefix_cache_hits", "counter", "Tokens found in a shared cache.", "", ()),
    ("mm_cache_queries", "counter", "Multi-modal items looked up.", "", ()),
    ("mm_cache_hits", "counter", "Multi-modal items found.", "", ()),
    ("num_preemptions", "counter", "Requests sent back to the queue.", "", ()),
    ("prompt_tokens", "counter", "Prompt tokens.", "", ()),
    ("prompt_tokens_by_source", "counter", "Prompt tokens by source.", "source", SOURCES),
    ("prompt_tokens_cached", "counter", "Prompt tokens that were cached.", "", ()),
    ("prompt_tokens_cached_by_source", "counter", "Cached prompt tokens by tier.", "source", TIERS),
    ("generation_tokens", "counter", "Generated tokens.", "", ()),
    ("request_success", "counter", "Finished requests by reason.", "finished_reason", REASONS),
)

# name, bucket family, what it tells
_HISTOGRAMS = (
    ("request_prompt_tokens", "request_tokens", "Prompt tokens of a request."),
    ("request_generation_tokens", "request_tokens", "Generated tokens of a request."),
    ("iteration_tokens_total", "iteration_tokens", "Tokens of an engine step."),
    ("request_max_num_generation_tokens", "request_tokens", "Most generated tokens of a request."),
    ("request_params_n", "request_params_n", "Parameter n."),
    ("request_params_max_tokens", "request_tokens", "Parameter max_tokens."),
    ("time_to_first_token_seconds", "time_to_first_token", "Time to first token."),
    ("inter_token_latency_seconds", "inter_token_latency", "Time between outputs, one sample an engine step."),
    ("request_time_per_output_token_seconds", "inter_token_latency", "Decode time a token, per request."),
    ("e2e_request_latency_seconds", "request_latency", "Whole time of a request."),
    ("request_queue_time_seconds", "request_latency", "Time in the queue."),
    ("request_inference_time_seconds", "request_latency", "Time in the batch."),
    ("request_prefill_time_seconds", "request_latency", "Time to the first token in the batch."),
    ("request_decode_time_seconds", "request_latency", "Time from the first token to the last."),
    ("request_num_preemptions", "request_num_preemptions", "Preemptions of a request."),
    ("request_prefill_kv_computed_tokens", "request_tokens", "Prompt tokens computed, cached ones excluded."),
)


def engine_families(options: Options, created: float) -> dict[str, Family]:
    """Every `vllm:` family of one engine, at zero, by its name without the prefix, in the order of the page."""
    model = options.names[0]
    base = labels(engine="0", model_name=model)
    found: dict[str, Family] = {}

    def put(name: str, kind: Kind, about: str, series: Mapping[Labels, float | Histogram]) -> None:
        found[name] = Family(f"vllm:{name}", kind, about, dict(series), created)

    if options.drafts:
        for name, about in _SPECULATION:
            put(name, "counter", about, {base: 0.0})
        positions = [labels(engine="0", model_name=model, position=str(n)) for n in range(options.drafts)]
        put(POSITIONS, "counter", "Accepted tokens per draft position.", dict.fromkeys(positions, 0.0))
    for name, kind, about, key, values in _PLAIN:
        every = [tuple(sorted((*base, (key, value)))) for value in values] if key else [base]
        put(name, kind, about, dict.fromkeys(every, 0.0))
    limits = [labels(model_name=model, reason=reason) for reason in ("max_num_queued_reqs", "max_num_queued_tokens")]
    put("admission_rejections", "counter", "Requests refused by a queue limit.", dict.fromkeys(limits, 0.0))
    for name, family, about in _HISTOGRAMS:
        put(name, "histogram", about, {base: Histogram(bounds(family, options))})
    put("cache_config_info", "gauge", "The cache's configuration.", {_cache_config(options): 1.0})
    return found


POSITIONS = "spec_decode_num_accepted_tokens_per_pos"
_SPECULATION = (
    ("spec_decode_num_drafts", "Drafts."),
    ("spec_decode_num_draft_tokens", "Draft tokens."),
    ("spec_decode_num_accepted_tokens", "Accepted draft tokens."),
)


def bounds(family: str, options: Options) -> Sequence[float]:
    """Bucket bounds of one family: the user's own, else vLLM's."""
    if family in options.buckets:
        return options.buckets[family]
    if family != "request_tokens":
        return DEFAULT_BUCKETS[family]
    steps = [digit * 10**power for power in range(8) for digit in (1, 2, 5)]
    return [step for step in steps if step <= options.max_len]


def _cache_config(options: Options) -> Labels:
    """The labels of `cache_config_info`: everything there is a text."""
    block = str(options.block)
    concurrency = options.kv_tokens / options.max_len
    return labels(
        _block_size_resolved="True",
        block_size=block,
        cache_dtype=options.kv_dtype,
        cache_hit_alignment_tokens="None",
        effective_attention_block_size=block,
        enable_mamba_shared_prefix_checkpoint="False",
        enable_prefix_caching=str(options.prefix_caching),
        engine="0",
        gpu_memory_utilization=str(options.memory_share),
        hash_block_size="None",
        is_attention_free="False",
        kv_cache_dtype_skip_layers="[]",
        kv_cache_layout="None",
        kv_cache_max_concurrency=str(concurrency),
        kv_cache_memory_bytes=str(options.kv_bytes),
        kv_cache_size_tokens=str(options.kv_tokens),
        kv_offloading_backend="native",
        kv_offloading_size="None",
        kv_sharing_fast_prefill="False",
        mamba_block_size=block if options.prefix_caching else str(options.max_len),
        mamba_cache_dtype="auto",
        mamba_cache_mode=options.mamba_mode,
        mamba_page_size_padded="None",
        mamba_ssm_cache_dtype="auto",
        num_cpu_blocks="None",
        num_gpu_blocks=str(options.kv_blocks),
        num_gpu_blocks_override="None",
        prefix_cache_retention_interval="0",
        prefix_caching_hash_algo="sha256",
        prefix_match_unit="None",
        replayssm_buffer_len="16",
        skip_page_size_padded="None",
        sliding_window="None",
        swa_bounded_replay="True",
        use_kda_recoverssm="False",
        use_replayssm="False",
        user_specified_block_size=str("block-size" in options.given),
    )
