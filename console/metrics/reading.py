"""What the screens see of `/metrics`. Field names are the JSON contract of `status --json`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """A latency over a window, in seconds.

    `mean` is exact (Δsum / Δcount). Of a quantile a histogram knows the bounds; an estimate within them is given only
    where they are closer than a quarter of it, and is `None` otherwise. One sample is known exactly: no bounds.
    """

    n: int = 0
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p99: float | None = None
    p50_bounds: tuple[float, float | None] | None = None
    p90_bounds: tuple[float, float | None] | None = None
    p99_bounds: tuple[float, float | None] | None = None


@dataclass(frozen=True, slots=True)
class PrefixCache:
    """Prefix caching: *off* is `enabled=False` with no rate, which is not 0 %."""

    enabled: bool | None = None
    hit_rate: float | None = None
    """Cached / (cached + computed) prompt tokens of the window; Δhits / Δqueries where those are not told."""
    hit_rate_lifetime: float | None = None
    cached_tokens: int | None = None
    """Prompt tokens of the window taken from the cache."""
    computed_tokens: int | None = None
    """Prompt tokens of the window that were prefilled."""
    block_tokens: int | None = None
    """Tokens a cache block: below it no prefix can hit."""


@dataclass(frozen=True, slots=True)
class Mtp:
    """Speculative decoding over the window; the whole object is `None` when it is off."""

    acceptance_rate: float | None = None
    """Δaccepted / Δdraft tokens."""
    mean_acceptance_length: float | None = None
    """1 + Δaccepted / Δdrafts: tokens an engine step yields."""
    per_position: tuple[float, ...] | None = None
    """Δaccepted at position i / Δdrafts."""
    drafts: int = 0


@dataclass(frozen=True, slots=True)
class LastRequests:
    """One rise of the TTFT count between two scrapes; `n == 1` is one request, exactly.

    The TTFT is the mean of the `n`; tokens are those of all of them.
    """

    age_s: float
    n: int
    ttft_s: float | None
    prompt_tokens: int | None
    cached_tokens: int | None
    computed_tokens: int | None


@dataclass(frozen=True, slots=True)
class Reading:
    """Figures over a window of `window_s` seconds (`None`: one scrape only, gauges alone are known)."""

    window_s: float | None = None
    running: int | None = None
    waiting: int | None = None
    kv_used: float | None = None
    preemptions: int | None = None
    ttft_s: Distribution = Distribution()
    itl_s: Distribution = Distribution()
    """`inter_token_latency_seconds`: one sample an engine step, so it grows under MTP while text gets faster."""
    tpot_s: Distribution = Distribution()
    """`request_time_per_output_token_seconds`: one sample a finished request."""
    e2e_s: Distribution = Distribution()
    queue_s: Distribution = Distribution()
    prompt_tokens_per_s: float | None = None
    prefill_tokens_per_s: float | None = None
    """Computed prefill tokens / prefill seconds: per request, overlapping prefills count twice."""
    generation_tokens_per_s: float | None = None
    prefix_cache: PrefixCache = PrefixCache()
    mtp: Mtp | None = None
    last: tuple[LastRequests, ...] = ()
    refused_requests: int | None = None
    """Requests answered with HTTP 4xx."""


@dataclass(frozen=True, slots=True)
class CacheFacts:
    """Labels of `cache_config_info`: what the KV cache of this server is."""

    block_tokens: int | None = None
    prefix_caching: bool | None = None
    mamba_mode: str | None = None
    kv_tokens: int | None = None
    max_concurrency: float | None = None
    dtype: str | None = None
    blocks: int | None = None
