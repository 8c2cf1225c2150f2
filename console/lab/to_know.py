"""What a reader of a run's numbers has to know beside them."""

from __future__ import annotations

from console.lab.plan import BLOCK_UNKNOWN
from console.lab.results import Results

LATENESS_LIMIT_S = 0.005
"""Above this the client's own event loop was late enough to colour stamps."""
_EQUAL = {
    "vllm": "vLLM's version",
    "driver": "the driver",
    "block_tokens": "the cache block",
    "kernel": "the NVFP4 kernel",
}
"""Facts of a boot that are the same for all boots of a run that compares."""


def warnings_of(results: Results) -> tuple[str, ...]:
    """Everything that a reader of the numbers has to know, each once."""
    found = [*_notes(results), *_size(results)]
    if results.plan.quick or results.plan.rounds == 1:
        found.append("one round only suggests: no interval here comes from repeated starts")
    found += [str(event["text"]) for event in results.events if event["event"] == "warning"]
    for boot in results.boots:
        if not boot.valid:
            found.append(f"boot {boot.n} ({boot.arm}) does not count: {boot.reason}")
        found += [f"boot {boot.n} ({boot.arm}): {text}" for text in boot.warnings]
        late = boot.env.get("client_lateness_s")
        if late is not None and late > LATENESS_LIMIT_S:
            found.append(f"boot {boot.n} ({boot.arm}): the client itself ran up to {late * 1000:.1f} ms late (p99)")
    found += [*_uncacheable(results), *_environment(results), *_outcomes(results), *_ends(results), *_clocks(results)]
    return tuple(dict.fromkeys(found))


def _blocks(results: Results, arm: str | None = None) -> list[int]:
    """Cache blocks as the servers told them, of one arm or of all."""
    boots = [boot for boot in results.boots if boot.valid and arm in (None, boot.arm)]
    return sorted({int(block) for boot in boots if (block := boot.env.get("block_tokens"))})


def _notes(results: Results) -> list[str]:
    """The plan's notes; that the cache block was not known is one only until a server has told it."""
    plan, told = results.plan, _blocks(results)
    if not told:
        return list(plan.notes)
    found = [note for note in plan.notes if not note.startswith(BLOCK_UNKNOWN)]
    if plan.block_tokens not in told:
        theirs = " and ".join(f"{block:,}" for block in told)
        found.append(
            f"workloads were cut for cache blocks of {plan.block_tokens:,} tokens, the server's have {theirs}: "
            "the next run knows"
        )
    return found


def _size(results: Results) -> list[str]:
    """What the smallest size cannot tell."""
    shape = results.plan.shape
    if results.plan.size != "small":
        return []
    return [
        f"size small: a prefix of {shape.prefix_tokens:,} tokens, answers of {shape.decode_answer_tokens}: it shows "
        "that the arms work and where they differ; decide on --size normal, whose prompts are more like an agent's"
    ]


def _uncacheable(results: Results) -> list[str]:
    """What speculation costs in a warm turn, and arms in which the prefix is too short for the cache to show at all."""
    found = []
    drafts = {arm.name: results.plan.preset_of(arm.name).speculative is not None for arm in results.plan.arms}
    for arm in results.plan.arms:
        blocks = _blocks(results, arm.name)
        if results.plan.preset_of(arm.name).args.get("enable-prefix-caching") is False or not blocks:
            continue
        # Under speculation the last block that matches is computed again.
        needed, block, prefix = 2 if drafts[arm.name] else 1, max(blocks), results.plan.shape.prefix_tokens
        if drafts[arm.name] and not all(drafts.values()):
            found.append(
                f"{arm.name}: under speculation vLLM computes the last cached block again in every warm turn, "
                f"{block:,} tokens however long the prefix is; whether faster text makes up for the later start, the "
                "length of your answers decides"
            )
        if prefix < needed * block:
            found.append(
                f"{arm.name}: {needed} cache block{'s' if needed > 1 else ''} of {block} tokens would be needed before "
                f"anything is taken from the cache; the agent's prefix has {prefix}: this size cannot show cached "
                "tokens there; a larger --size has more"
            )
    return found


def _environment(results: Results) -> list[str]:
    """Facts that should be equal over all boots, and are not."""
    found = []
    for key, title in _EQUAL.items():
        seen = {str(boot.env.get(key)): boot for boot in results.boots if boot.valid and boot.env.get(key) is not None}
        if len(seen) > 1:
            found.append(f"{title} differs between boots: " + ", ".join(f"{v} ({b.arm})" for v, b in seen.items()))
    caches = {boot.env.get("compile_cache") for boot in results.boots if boot.valid} - {None}
    if len(caches) > 1:
        found.append("some boots compiled anew and some from the cache: their starts do not compare")
    return found


def _outcomes(results: Results) -> list[str]:
    """Requests that did not end well, by outcome; their boots do not count."""
    sums: dict[str, int] = {}
    for boot in results.boots:
        for outcome, count in boot.outcomes.items():
            sums[outcome] = sums.get(outcome, 0) + count
    bad = [f"{count} {outcome}" for outcome, count in sorted(sums.items()) if outcome != "ok"]
    return [f"of {sum(sums.values())} measured requests: {', '.join(bad)}"] if bad else []


def _ends(results: Results) -> list[str]:
    """Answers that ran past their own end."""
    past = sum(boot.past_natural for boot in results.boots if boot.valid)
    return [f"{past} tokens came after an answer's own end; no measure and no acceptance counts them"] if past else []


def _clocks(results: Results) -> list[str]:
    """Cards whose clocks were held down while they were measured."""
    found = []
    for boot in results.boots:
        for card in boot.env.get("cards") or ():
            reasons = [word for word in card.get("throttle") or () if word not in ("idle", "gpu_idle")]
            if boot.valid and reasons:
                found.append(f"boot {boot.n} ({boot.arm}): card {card['index']} was held down ({', '.join(reasons)})")
    return found
