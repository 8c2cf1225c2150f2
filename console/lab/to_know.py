"""What a reader of a run's numbers has to know beside them."""

from __future__ import annotations

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
    found = list(results.plan.notes)
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


def _uncacheable(results: Results) -> list[str]:
    """Arms in which the agent's prefix is too short for any of it to come from the cache."""
    found = []
    for arm in results.plan.arms:
        preset = results.plan.preset_of(arm.name)
        blocks = [int(block) for boot in results.valid(arm.name) if (block := boot.env.get("block_tokens"))]
        # Under speculation the last block that matches is computed again.
        needed = 2 if preset.speculative is not None else 1
        if preset.args.get("enable-prefix-caching") is False or not blocks:
            continue
        prefix, block = results.plan.shape.prefix_tokens, max(blocks)
        if prefix < needed * block:
            found.append(
                f"{arm.name}: {needed} cache block{'s' if needed > 1 else ''} of {block} tokens would be needed before "
                f"anything is taken from the cache; the agent's prefix has {prefix}: a larger --size has more"
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
