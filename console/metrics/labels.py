"""What vLLM says in labels rather than values."""

from __future__ import annotations

import math

from console.metrics.exposition import Sample
from console.metrics.reading import CacheFacts

LIMIT = 2.0**63
"""Nothing that is counted here gets this far."""


def cache_facts(found: tuple[Sample, ...]) -> CacheFacts:
    """What `cache_config_info` tells; of several engines the first, as they are configured alike."""
    if not found:
        return CacheFacts()
    labels = found[0].labels
    resolved = labels.get("_block_size_resolved") != "False"
    # A hit can end only at this granularity: the alignment where it is told, else the block of full attention, which
    # on a hybrid model in align mode is the block of all its groups. `mamba_block_size` as told here is the default
    # of the front end, not what the engine uses.
    blocks = (
        _size(labels.get("cache_hit_alignment_tokens")),
        _size(labels.get("effective_attention_block_size")),
        _size(labels.get("block_size")) if resolved else None,
    )
    concurrency = number(labels.get("kv_cache_max_concurrency"))
    return CacheFacts(
        block_tokens=next((block for block in blocks if block is not None), None),
        prefix_caching={"True": True, "False": False}.get(labels.get("enable_prefix_caching", "")),
        mamba_mode=_word(labels.get("mamba_cache_mode")),
        kv_tokens=_size(labels.get("kv_cache_size_tokens")),
        max_concurrency=concurrency if concurrency is not None and 0 <= concurrency < math.inf else None,
        dtype=_word(labels.get("cache_dtype")),
        blocks=_size(labels.get("num_gpu_blocks")),
    )


def number(text: str | None) -> float | None:
    """A label as a number; `None` for words, absence and NaN."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value


def whole(text: str | None) -> int | None:
    """A label as a whole number from 0."""
    value = number(text)
    return int(value) if value is not None and 0 <= value < LIMIT and value.is_integer() else None


def _size(text: str | None) -> int | None:
    return whole(text) or None


def _word(text: str | None) -> str | None:
    return None if text in (None, "", "None") else text
