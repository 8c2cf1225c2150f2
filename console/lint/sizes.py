"""Rules over sizes: chunk budgets, cache, context, sessions."""

from __future__ import annotations

from collections.abc import Iterator

from console.lint.model import Case, Finding, Rule, Weight

_BIG_BUDGET = 4096
_TAKES_SMALL_BUDGETS = (0, 27)
"""The first vLLM known to start with a budget below a cache block."""
_STARVE = "align mode prefills in whole cache blocks"


def budget_against_block(case: Case) -> Iterator[Finding]:
    """Chunk budgets that run nothing, or another chunk than they say."""
    budget, block = case.number("max-num-batched-tokens"), case.block
    if budget is None or block is None or not case.prefix or not case.hybrid:
        return
    effective = budget // block * block
    source = "" if case.ground.memory else " (as reported for this family)"
    if not effective:
        yield Finding(
            "chunk-below-block",
            Weight.LOOK if case.version >= _TAKES_SMALL_BUDGETS else Weight.BAD,
            "max-num-batched-tokens",
            f"the chunk budget of {budget} is smaller than a cache block of {block} tokens{source}",
            f"{_STARVE}; vLLM up to 0.22 refuses to start, from 0.27 on it runs with other steps",
            f"max-num-batched-tokens: {block + (case.number('max-num-seqs') or 1) * (1 + case.drafts)} or more",
        )
        return
    beside = max(0, budget - 1 - case.drafts) // block * block
    if not beside:
        yield Finding(
            "chunk-starves",
            Weight.LOOK,
            "max-num-batched-tokens",
            f"while one stream decodes, a budget of {budget} leaves no whole block of {block}{source}",
            f"{_STARVE}: prompts wait until nothing decodes",
            f"max-num-batched-tokens: {block + (case.number('max-num-seqs') or 1) * (1 + case.drafts)} or more",
        )
    elif effective != budget:
        yield Finding(
            "chunk-in-blocks",
            Weight.INFO,
            "max-num-batched-tokens",
            f"a budget of {budget} prefills in chunks of {effective}{source}",
            f"{_STARVE} of {block} tokens",
            "nothing to mend; budgets that differ by less than a block are the same in effect",
        )


def big_budget(case: Case) -> Iterator[Finding]:
    """A budget that starts and then dies."""
    budget = case.number("max-num-batched-tokens")
    if budget is not None and budget >= _BIG_BUDGET and not case.on_cpu:
        yield Finding(
            "chunk-too-large",
            Weight.LOOK,
            "max-num-batched-tokens",
            f"a chunk budget of {budget} on cards of 16 GB",
            "reported to start well and to run out of memory at the first real prefill; it also tears longer gaps",
            "2048, or prove it: `qwen-console up PRESET --prove`",
        )


def pinned_and_share(case: Case) -> Iterator[Finding]:
    """Two settings of which one is ignored; or none that holds still."""
    pinned = case.number("kv-cache-memory-bytes")
    if pinned is not None and case.flag("gpu-memory-utilization") is not None:
        yield Finding(
            "utilization-ignored",
            Weight.INFO,
            "gpu-memory-utilization",
            "gpu-memory-utilization has no effect on the KV cache here",
            "kv-cache-memory-bytes pins its size; the share is only checked against free memory at the start",
            "keep one of them",
        )
    if pinned is None and not case.on_cpu:
        yield Finding(
            "kv-not-pinned",
            Weight.LOOK,
            "kv-cache-memory-bytes",
            "the size of the KV cache is left to profiling",
            "with a warm compile cache it is reported to over-allocate (182,248 instead of 122,880 tokens), then to "
            "run out of memory",
            "pin it: kv-cache-memory-bytes: BYTES A CARD",
        )


def does_not_fit(case: Case) -> Iterator[Finding]:
    """One request of the full context is larger than the cache."""
    memory = case.ground.memory
    if memory is None or memory.concurrency is None or memory.concurrency >= 1:
        return
    yield Finding(
        "context-does-not-fit",
        Weight.BAD,
        "max-model-len",
        f"the KV cache holds {memory.kv_tokens:,} tokens, less than one request of the full context",
        "vLLM refuses to start: `To serve at least one request with the model's max seq len …`",
        f"max-model-len: {(memory.kv_tokens or 0) // 1024 * 1024}, or a larger kv-cache-memory-bytes",
    )


def many_seqs(case: Case) -> Iterator[Finding]:
    """Each running request of a hybrid model holds recurrent states."""
    if not case.hybrid:
        return
    seqs, blocks = case.number("max-num-seqs"), case.ground.memory.blocks if case.ground.memory else None
    if seqs is None and not case.on_cpu:
        yield Finding(
            "max-num-seqs-unset",
            Weight.LOOK,
            "max-num-seqs",
            "max-num-seqs is left to vLLM (256 to 1024)",
            "every running request of a hybrid model takes blocks for its state: `max_num_seqs (1024) exceeds "
            "available Mamba cache blocks (939)`",
            "max-num-seqs: as many sessions as you use",
        )
    elif seqs is not None and blocks is not None and seqs > blocks:
        yield Finding(
            "max-num-seqs-too-large",
            Weight.BAD,
            "max-num-seqs",
            f"max-num-seqs {seqs} exceeds the {blocks} cache blocks there will be",
            "every running request of a hybrid model takes at least one block for its state",
            f"max-num-seqs: {max(1, blocks // 8)} or less",
        )


SIZE_RULES: tuple[Rule, ...] = (does_not_fit, budget_against_block, many_seqs, big_budget, pinned_and_share)
