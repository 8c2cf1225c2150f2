"""The arithmetic of vLLM's caches (as of 0.32): pages, groups, blocks; pure.

Checked against starts of the real engine with a tiny hybrid model, and against what is reported for two RTX 5060 Ti.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from console.memory.model import ModelShape

_ALIGN_CUDA, _ALIGN_CPU = 16, 128
"""Tokens to a multiple of which a hybrid model's block is rounded up."""
_ONE_BYTE = ("fp8", "fp8_e4m3", "fp8_e5m2", "int8")
_TWO_BYTES = ("auto", "bfloat16", "float16", "half")
_FEW_MORE = 1.5
"""Layers of one kind may be so many times those of the other and still share one group size."""


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """What a preset's caches will be on each card; `None` is not known before a start, and `unknown` says why."""

    block_tokens: int | None = None
    """Tokens a cache block: below it no prefix can hit."""
    kv_bytes_per_token: int | None = None
    """All attention layers on one card."""
    state_bytes_per_request: int | None = None
    """All recurrent layers on one card, for each request that runs."""
    kv_bytes: int | None = None
    """The KV cache on one card."""
    blocks: int | None = None
    concurrency: float | None = None
    """Requests of the full context that fit at once."""
    kv_tokens: int | None = None
    """Concurrency times context."""
    effective_chunk: int | None = None
    """Prompt tokens of one step with nothing else running: whole blocks in align mode."""
    effective_chunk_beside_one: int | None = None
    """The same while one stream decodes."""
    unknown: tuple[str, ...] = ()


def plan(shape: ModelShape, args: Mapping[str, Any], *, cpu: bool = False, kv_bytes: int | None = None) -> MemoryPlan:
    """The caches of `vllm serve` with these flags.

    Args:
        shape: the model.
        args: flags without dashes, values as in a preset.
        cpu: the CPU build, which rounds blocks otherwise.
        kv_bytes: the KV cache of one rank where no flag gives it.
    """
    width = _kv_width(args)
    if width is None:
        return MemoryPlan(unknown=(f"KV cache type {args.get('kv-cache-dtype')}",))
    ranks = int(args.get("tensor-parallel-size") or 1)
    if int(args.get("pipeline-parallel-size") or 1) > 1:
        return MemoryPlan(unknown=("pipeline parallelism",))
    drafts = _drafts(args)
    token = 2 * max(1, shape.kv_heads // ranks) * shape.head_dim * width
    state = _state_bytes(shape, ranks, drafts)
    block = _block(args, token, state, cpu)
    known = MemoryPlan(
        block_tokens=block,
        kv_bytes_per_token=token * (shape.attention_layers + _draft_layers(shape, args)),
        state_bytes_per_request=state * shape.linear.layers if shape.linear else None,
    )
    return _filled(known, shape, args, token, drafts, kv_bytes)


def _drafts(args: Mapping[str, Any]) -> int:
    """Draft tokens a step; an MTP head yields one where the number is left out."""
    spec = args.get("speculative-config")
    return int(spec.get("num_speculative_tokens") or 1) if isinstance(spec, Mapping) else 0


def _draft_layers(shape: ModelShape, args: Mapping[str, Any]) -> int:
    """Layers that a drafter adds to the cache; one that looks its drafts up in the text has none."""
    spec = args.get("speculative-config")
    known = isinstance(spec, Mapping) and spec.get("method") not in ("ngram", "suffix")
    return shape.draft_layers if known else 0


def _length(args: Mapping[str, Any], shape: ModelShape) -> int | None:
    """The context; `None` where vLLM takes what fits."""
    given = args.get("max-model-len")
    if given is None:
        return shape.max_len
    return given if isinstance(given, int) and given > 0 else None


def _kv_width(args: Mapping[str, Any]) -> int | None:
    kind = str(args.get("kv-cache-dtype") or "auto")
    return 1 if kind in _ONE_BYTE else 2 if kind in _TWO_BYTES else None


def _state_bytes(shape: ModelShape, ranks: int, drafts: int) -> int:
    """One recurrent layer's state of one request on one rank: convolution (16 bit) and recurrence."""
    net = shape.linear
    if net is None:
        return 0
    channels = (2 * net.key_dim * net.key_heads + net.value_dim * net.value_heads) // ranks
    return channels * (net.conv - 1 + drafts) * 2 + net.value_heads // ranks * net.value_dim * net.key_dim * (
        net.state_bytes
    )


def _block(args: Mapping[str, Any], token: int, state: int, cpu: bool) -> int:
    """The attention block: of a hybrid model so large that its page holds one recurrent state."""
    align = int(args.get("block-size") or (_ALIGN_CPU if cpu else _ALIGN_CUDA))
    return max(align, align * ceil(state / (align * token)))


def _filled(
    known: MemoryPlan, shape: ModelShape, args: Mapping[str, Any], token: int, drafts: int, kv_bytes: int | None
) -> MemoryPlan:
    """The plan with what depends on the size of the cache and on prefix caching."""
    size = _bytes(args.get("kv-cache-memory-bytes")) or kv_bytes
    length = _length(args, shape)
    mode = _mamba_mode(shape, args)
    block = known.block_tokens or 1
    unknown: list[str] = []
    if size is None:
        unknown.append("the size of the KV cache is found by profiling at the start (`kv-cache-memory-bytes` pins it)")
    if length is None:
        unknown.append("the context is what fits, found at the start (`max-model-len` sets it)")
    if shape.hybrid and mode is None:
        unknown.append("whether prefix caching is on is left to vLLM")
    alone, beside = _chunks(args, block, mode, drafts)
    blocks = concurrency = None
    if size is not None and length is not None and (mode is not None or not shape.hybrid):
        attention = shape.attention_layers + _draft_layers(shape, args)
        blocks, needed = _pool(shape, attention, size // (block * token), ceil(length / block), mode, drafts)
        concurrency = blocks / needed
    return MemoryPlan(
        block_tokens=block,
        kv_bytes_per_token=known.kv_bytes_per_token,
        state_bytes_per_request=known.state_bytes_per_request,
        kv_bytes=size,
        blocks=blocks,
        concurrency=concurrency,
        kv_tokens=int(concurrency * length) if concurrency is not None and length else None,
        effective_chunk=alone,
        effective_chunk_beside_one=beside,
        unknown=tuple(unknown),
    )


def _pool(
    shape: ModelShape, attention: int, pages: int, per_request: int, mode: str | None, drafts: int
) -> tuple[int, int]:
    """Blocks of the shared pool, and those that one request of the full context takes.

    Layers of a kind stand in groups of one size; every group draws its blocks from the one pool, and a recurrent
    group holds one state a request, one more in align mode, and one more for each draft token.
    """
    if shape.linear is None:
        return pages // attention, per_request
    few, many = sorted((attention, shape.linear.layers))
    size = many if many < _FEW_MORE * few else few
    states = (2 if mode == "align" else 1) + drafts
    needed = ceil(attention / size) * per_request + ceil(shape.linear.layers / size) * states
    return pages // size, needed


def _mamba_mode(shape: ModelShape, args: Mapping[str, Any]) -> str | None:
    if not shape.hybrid:
        return "none"
    given, prefix = args.get("mamba-cache-mode"), args.get("enable-prefix-caching")
    if given in ("align", "none"):
        return str(given)
    return None if prefix is None or given not in (None, "auto") else "align" if prefix else "none"


def _chunks(args: Mapping[str, Any], block: int, mode: str | None, drafts: int) -> tuple[int | None, int | None]:
    """The prompt tokens of one step, alone and beside one decoding stream."""
    budget = args.get("max-num-batched-tokens")
    if not isinstance(budget, int) or mode is None:
        return None, None
    beside = budget - 1 - drafts
    return (budget, beside) if mode == "none" else (budget // block * block, max(0, beside) // block * block)


def _bytes(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
