"""A page of vLLM's metrics, typed: what is absent is `None`, what adds up to nothing certain too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType

from console.metrics.exposition import Sample, Samples
from console.metrics.labels import LIMIT, cache_facts, number, whole
from console.metrics.names import (
    BY_SOURCE,
    CACHE_INFO,
    COUNTERS,
    CREATED,
    HISTOGRAMS,
    HTTP,
    KV_USED,
    OLD_HITS,
    PER_POSITION,
    PROCESS_START,
    RUNNING,
    WAITING,
)
from console.metrics.reading import CacheFacts

_HITS = frozenset(COUNTERS["prefix_hits"])


@dataclass(frozen=True, slots=True)
class Histogram:
    """A cumulative histogram: `buckets` are (upper bound, count of samples up to it), the last bound infinite."""

    buckets: tuple[tuple[float, float], ...]
    count: float
    sum: float


@dataclass(frozen=True, slots=True)
class Counters:
    """One page, typed; tokens, seconds, counts since the server's start. `None`: this version has no such series."""

    at: float
    """Monotonic seconds of the scrape."""
    process_started: float | None = None
    """Unix time at which the server's process began."""
    created: float | None = None
    """Unix time at which the series were made; a change means another process."""
    engines: int = 1
    facts: CacheFacts = field(default_factory=CacheFacts)
    running: int | None = None
    waiting: int | None = None
    kv_used: float | None = None
    preemptions: int | None = None
    requests_finished: int | None = None
    prompt_tokens: int | None = None
    generation_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens taken from the cache, counted with the first token of their request."""
    computed_tokens: int | None = None
    """Prompt tokens that were prefilled, counted likewise."""
    cached_by_hits: bool = False
    """No series of its own tells the cached tokens: they are the hits of lookups."""
    prefix_queries: int | None = None
    """Tokens looked up in the prefix cache (blocks, in versions that say `gpu_prefix_cache_queries`)."""
    prefix_hits: int | None = None
    spec_drafts: int | None = None
    spec_draft_tokens: int | None = None
    spec_accepted_tokens: int | None = None
    spec_accepted_per_pos: tuple[int, ...] | None = None
    ttft: Histogram | None = None
    itl: Histogram | None = None
    tpot: Histogram | None = None
    e2e: Histogram | None = None
    queue: Histogram | None = None
    prefill: Histogram | None = None
    decode: Histogram | None = None
    prefill_computed: Histogram | None = None
    """Tokens a finished request really prefilled."""
    request_prompt: Histogram | None = None
    """Prompt tokens of a finished request."""
    request_generation: Histogram | None = None
    """Generated tokens of a finished request."""
    refused: int | None = None
    """Requests that were sent to be worked on (POST) and answered with HTTP 4xx by the web server."""
    shape: Mapping[str, int] = field(default_factory=dict)
    """Which series each figure sums, as a number that tells them apart, 0 for none; two pages compare only where
    these agree."""
    parts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Figure and engine → what this engine alone counted; empty where a single one reports."""

    @property
    def ttft_count(self) -> int | None:
        """Requests that got their first token."""
        return None if self.ttft is None else int(self.ttft.count)

    @property
    def busy(self) -> bool | None:
        """Whether requests run or wait."""
        if self.running is None or self.waiting is None:
            return None
        return self.running + self.waiting > 0


def read(samples: Samples, at: float) -> Counters:
    """The page scraped at monotonic second `at`."""
    engines = _engines(samples)
    sums = {key: _total(samples, names, engines) for key, names in COUNTERS.items()}
    histograms = {key: _histogram(samples, names, engines) for key, names in HISTOGRAMS.items()}
    cached, computed = _prompt_split(samples, engines, sums)
    return Counters(
        at=at,
        process_started=_least(samples.get(PROCESS_START)),
        created=_least(samples.get(samples.first(CREATED) or "")),
        engines=max(1, len(engines)),
        facts=cache_facts(samples.get(CACHE_INFO)),
        running=_total(samples, RUNNING, engines),
        waiting=_total(samples, WAITING, engines),
        kv_used=_mean_fraction(samples, KV_USED, engines),
        cached_tokens=cached,
        computed_tokens=computed,
        cached_by_hits=sums.pop("prompt_cached") is None and not samples.get(BY_SOURCE),
        spec_accepted_per_pos=_per_position(samples.get(PER_POSITION), engines),
        refused=_refused(samples.get(HTTP)),
        shape=_shape(samples),
        parts=_parts(samples) if len(engines) > 1 else {},
        **sums,  # type: ignore[arg-type]
        **histograms,  # type: ignore[arg-type]
    )


def _shape(samples: Samples) -> Mapping[str, int]:
    """Which series stand behind each figure."""
    shape = {key: _identity(samples, names) for key, names in COUNTERS.items()}
    shape |= {key: _identity(samples, tuple(f"{name}_count" for name in names)) for key, names in HISTOGRAMS.items()}
    # Cached and computed tokens are made of several series, by hits where none counts them itself.
    split = (_identity(samples, (BY_SOURCE,)) ^ shape["prompt_cached"] or shape["prefix_hits"]) ^ shape["prompt_tokens"]
    shape |= {"cached_tokens": split, "computed_tokens": split}
    shape["spec_accepted_per_pos"] = _identity(samples, (PER_POSITION,))
    return MappingProxyType(shape)


def _parts(samples: Samples) -> Mapping[tuple[str, str], float]:
    """What each of several engines counted: a sum over all of them hides that one of them began anew."""
    counted = {key: samples.first(names) for key, names in COUNTERS.items()}
    counted |= {key: samples.first(tuple(f"{name}_count" for name in names)) for key, names in HISTOGRAMS.items()}
    parts: dict[tuple[str, str], float] = {}
    for key, name in counted.items():
        for sample in samples.get(name or ""):
            engine = sample.labels.get("engine")
            if engine is not None and sample.value is not None:
                parts[key, engine] = parts.get((key, engine), 0.0) + sample.value
    return MappingProxyType(parts)


def _engines(samples: Samples) -> frozenset[str]:
    """The engines that report on this page."""
    names = (samples.first(aliases) for aliases in (RUNNING, *COUNTERS.values()))
    labels = (sample.labels for name in names if name is not None for sample in samples.get(name))
    return frozenset(found["engine"] for found in labels if "engine" in found)


def _values(found: Iterable[Sample], engines: frozenset[str]) -> list[float] | None:
    """All values of one series; `None` where one is unknown, one is there twice, or an engine's is missing."""
    seen: dict[frozenset[tuple[str, str]], float] = {}
    reporting: set[str] = set()
    for sample in found:
        key = frozenset(sample.labels.items())
        if sample.value is None or not 0 <= sample.value < LIMIT or key in seen:
            return None
        seen[key] = sample.value
        if "engine" in sample.labels:
            reporting.add(sample.labels["engine"])
    if not seen or (reporting and reporting != engines):
        return None
    return list(seen.values())


def _total(samples: Samples, names: tuple[str, ...], engines: frozenset[str]) -> int | None:
    values = _values(samples.get(samples.first(names) or ""), engines)
    return None if values is None else round(sum(values))


def _mean_fraction(samples: Samples, names: tuple[str, ...], engines: frozenset[str]) -> float | None:
    values = _values(samples.get(samples.first(names) or ""), engines)
    if values is None or max(values) > 1:
        return None
    return sum(values) / len(values)


def _identity(samples: Samples, names: tuple[str, ...]) -> int:
    """The same number for the same series of the first of `names`: another model or engine is another series."""
    name = samples.first(names)
    labels = frozenset(frozenset(sample.labels.items()) for sample in samples.get(name or ""))
    return hash((name, labels)) if labels else 0


def _histogram(samples: Samples, names: tuple[str, ...], engines: frozenset[str]) -> Histogram | None:
    counts = samples.first(tuple(f"{name}_count" for name in names))
    if counts is None:
        return None
    name = counts.removesuffix("_count")
    count = _values(samples.get(counts), engines)
    total = _values(samples.get(f"{name}_sum"), engines)
    if count is None or total is None:
        return None
    return Histogram(_buckets(samples.get(f"{name}_bucket"), len(count), sum(count)), sum(count), sum(total))


def _buckets(found: tuple[Sample, ...], series: int, count: float) -> tuple[tuple[float, float], ...]:
    """Cumulative buckets over all series; empty where they do not add up to the count."""
    heights: dict[float, list[float]] = {}
    for sample in found:
        bound = number(sample.labels.get("le"))
        if bound is None or sample.value is None:
            return ()
        heights.setdefault(bound, []).append(sample.value)
    buckets = tuple((bound, sum(values)) for bound, values in sorted(heights.items()))
    whole = all(len(values) == series for values in heights.values())
    rising = all(low[1] <= high[1] for low, high in pairwise(buckets))
    closed = bool(buckets) and math.isinf(buckets[-1][0]) and buckets[-1][1] == count
    return buckets if whole and rising and closed else ()


def _prompt_split(
    samples: Samples, engines: frozenset[str], sums: Mapping[str, int | None]
) -> tuple[int | None, int | None]:
    """Cached and computed prompt tokens, from the best series that this version has."""
    by_source = samples.get(BY_SOURCE)
    hits = _values([s for s in by_source if s.labels.get("source") != "local_compute"], engines)
    work = _values([s for s in by_source if s.labels.get("source") == "local_compute"], engines)
    cached = sums["prompt_cached"] if hits is None else round(sum(hits))
    if cached is None:
        # Counted when a request is admitted, so a moment before its prompt tokens.
        cached = _hit_tokens(samples, sums["prefix_hits"])
    if work is not None:
        return cached, round(sum(work))
    prompt = sums["prompt_tokens"]
    if prompt is None or cached is None or cached > prompt:
        # More from the cache than was asked for: what was admitted is not counted as asked for yet, or never will be.
        return cached, None
    return cached, prompt - cached


def _hit_tokens(samples: Samples, hits: int | None) -> int | None:
    """Hits of the prefix cache in tokens; where the old counter tells no unit, nobody knows."""
    if hits is None or OLD_HITS not in samples.by_name or len(samples.by_name.keys() & _HITS) > 1:
        return hits
    if samples.prefix_unit == "blocks":
        block = cache_facts(samples.get(CACHE_INFO)).block_tokens
        return None if block is None else hits * block
    return hits if samples.prefix_unit == "tokens" else None


def _per_position(found: tuple[Sample, ...], engines: frozenset[str]) -> tuple[int, ...] | None:
    """Accepted tokens at draft position 0, 1, …; `None` where a position is missing."""
    if _values(found, engines) is None:
        return None
    sums: dict[int, float] = {}
    for sample in found:
        position = whole(sample.labels.get("position"))
        if position is None:
            return None
        sums[position] = sums.get(position, 0.0) + (sample.value or 0.0)
    if sorted(sums) != list(range(len(sums))):
        return None
    return tuple(round(sums[position]) for position in range(len(sums)))


def _refused(found: tuple[Sample, ...]) -> int | None:
    """A status has no series before its first request, so no series of it is none.

    What only looks (GET) does not count: consoles, browsers and health checks ask for pages that are not there.
    """
    refused = [
        sample.value
        for sample in found
        if sample.labels.get("status", "").startswith("4") and sample.labels.get("method") in (None, "POST")
    ]
    if not found or any(value is None or not 0 <= value < LIMIT for value in refused):
        return None
    return round(sum(value or 0.0 for value in refused))


def _least(found: tuple[Sample, ...]) -> float | None:
    return min((sample.value for sample in found if sample.value is not None), default=None)
