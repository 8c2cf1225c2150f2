"""The rule over the prefix cache: that it hits less than it did, and the likeliest cause."""

from __future__ import annotations

from collections.abc import Iterator

from console import units
from console.metrics.reading import Reading
from console.notices.model import Finding, Look, Past, Severity, Unsure, window

HIT_FELL, HIT_BACK = 0.5, 0.8
"""Parts of the hit rate that was usual before."""
HIT_WORTH = 0.3
"""A hit rate below this had not far to fall."""
LASTING = 3
"""Requests in a row; in align mode the first two of a conversation do not hit."""
KV_EASY = 0.85


def hit_rate_fell(past: Past) -> Iterator[Finding | Unsure]:
    """The window's prefix hit rate far below what it was in this life, with the likeliest cause."""
    name, reading, usual = "prefix-hit-rate-fell", past.now.reading, past.before.hit_rate
    if reading is None or reading.prefix_cache.hit_rate is None or reading.ttft_s.n < 1:
        yield Unsure(name)
        return
    cache = reading.prefix_cache
    limit = HIT_BACK if past.stands(name) else HIT_FELL
    if usual is None or usual < HIT_WORTH or reading.prefix_cache.hit_rate >= limit * usual:
        return
    if cache.computed_tokens is not None and cache.computed_tokens < 2 * (cache.block_tokens or 0):
        yield Unsure(name)
        return
    severity, why, fix = _why_no_hit(past.now, reading, limit * usual)
    requests = f"{reading.ttft_s.n} requests" if reading.ttft_s.n > 1 else "one request"
    yield Finding(
        name,
        severity,
        f"the prefix hit rate fell to {units.percent(cache.hit_rate)}, "
        f"{past.before.words.format(units.percent(usual))}",
        f"{units.count(cache.computed_tokens)} tokens were computed for {requests} in the last {window(reading)}; "
        f"{why}",
        fix,
    )


def _why_no_hit(look: Look, reading: Reading, limit: float) -> tuple[Severity, str, str]:
    cache, n = reading.prefix_cache, reading.ttft_s.n
    tokens = (cache.cached_tokens or 0) + (cache.computed_tokens or 0)
    if cache.block_tokens and tokens and tokens / n < cache.block_tokens:
        return (
            Severity.INFO,
            f"the prompts are shorter than one cache block of {cache.block_tokens} tokens, below which nothing can hit",
            "nothing to mend: short prompts are cheap to compute",
        )
    if (reading.kv_used or 0) > KV_EASY or (reading.preemptions or 0) > 0:
        return (
            Severity.WARN,
            f"the KV cache is {units.percent(reading.kv_used, 0)} full, so older prefixes are evicted",
            "fewer sessions at once (`max-num-seqs`), a shorter context, or more memory for KV",
        )
    hybrid = look.facts is not None and look.facts.mamba_mode == "align"
    if n <= 2 and not cache.cached_tokens and (hybrid or reading.mtp is not None):
        return (
            Severity.INFO,
            "a new prompt is cold; in align mode or under MTP its first repeat does not hit either, only the second",
            "wait for the next turn; `qwen-console probe prefix` tests it",
        )
    if _misses(reading, limit) < LASTING:
        return (
            Severity.INFO,
            "a new conversation begins cold; if it goes on like this, the head of the prompts changes",
            "wait for the next turn; `qwen-console probe prefix` tests the cache",
        )
    return (
        Severity.WARN,
        "the head of the prompts may have changed (a date, reordered tools): `/metrics` cannot tell",
        "compare two successive requests: `qwen-console probe layout A.json B.json`",
    )


def _misses(reading: Reading, limit: float) -> int:
    """How many of the last requests in a row hit less than `limit`, the newest first; of the window where untold."""
    if not reading.last:
        return reading.ttft_s.n
    count = 0
    for one in reading.last:
        tokens = (one.cached_tokens or 0) + (one.computed_tokens or 0)
        if not tokens or (one.cached_tokens or 0) / tokens >= limit:
            break
        count += one.n
    return count
