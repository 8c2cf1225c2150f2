"""The execution chain: what really runs, link by link, with the line or metric that proves it.

A started server is not yet the server one wanted. The order is the order in which one optimises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from console.gpu.topology import p2p_of
from console.server.facts import StartupFacts
from console.units import NA, count, number

if TYPE_CHECKING:
    from console.gpu.sample import CardPair, GpuReport
    from console.metrics.vllm import Counters

_PROVES_TOKENS = 16
"""The console's own first request yields one token, for which nothing is drafted."""
_DRAFTS = "vllm:spec_decode_num_drafts_total"
Verdict = Literal["ok", "look", "unknown"]


@dataclass(frozen=True, slots=True)
class Link:
    """One link: what runs, whether that is good, how one knows, and what to do.

    `unknown` means that nothing proves it; `look` that it runs, but not as one would want it.
    """

    link: str
    value: str
    verdict: Verdict
    evidence: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the links are read from."""

    facts: StartupFacts
    counters: Counters | None
    pairs: tuple[CardPair, ...]


def chain(facts: StartupFacts, counters: Counters | None, cards: GpuReport | None = None) -> tuple[Link, ...]:
    """All links, always the same ones in the same order.

    Args:
        facts: what the log of the start said.
        counters: the newest page of metrics.
        cards: the cards, whose P2P status belongs to the all-reduce.
    """
    seen = _Seen(facts, counters, cards.pairs if cards else ())
    return tuple(read(seen) for read in _LINKS)


def _on_cpu(facts: StartupFacts) -> bool:
    return facts.gdn_kernel == "CPU" or "CPU KV cache size" in (facts.line("kv_tokens") or "")


def _cpu_line(facts: StartupFacts) -> str:
    return _line(facts, "kv_tokens", "gdn_kernel")


def _line(facts: StartupFacts, *names: str) -> str:
    """The first of these facts' lines."""
    return next((line for name in names if (line := facts.line(name))), "")


def _model(seen: _Seen) -> Link:
    facts = seen.facts
    parts = [part for part in (facts.model, facts.architecture, facts.quantization) if part]
    value = ", ".join(parts) + (f" on vLLM {facts.version}" if facts.version else "")
    verdict: Verdict = "ok" if facts.architecture else "unknown"
    return Link("model", value or NA, verdict, _line(facts, "architecture", "model"))


def _weights(seen: _Seen) -> Link:
    facts = seen.facts
    took = "" if facts.weights_seconds is None else f"read in {facts.weights_seconds:.1f} s"
    if facts.weights_gib is None:
        return Link("weights", took or NA, "unknown", _line(facts, "weights_seconds"))
    value = f"{facts.weights_gib:.2f} GiB per card" + (f", {took}" if took else "")
    return Link("weights", value, "ok", _line(facts, "weights_gib"))


def _kernel(seen: _Seen) -> Link:
    facts = seen.facts
    fallback = facts.weight_only_fp4 or any("marlin" in kernel.lower() for kernel in facts.kernels)
    native = [kernel for kernel in facts.kernels if "marlin" not in kernel.lower()]
    if not fallback and not native and _on_cpu(facts):
        return Link("nvfp4 kernel", "none needed (CPU)", "ok", _cpu_line(facts))
    if not fallback and not native:
        return Link("nvfp4 kernel", NA, "unknown", "no line names an NVFP4 kernel")
    if not fallback:
        return Link("nvfp4 kernel", " + ".join(native), "ok", _line(facts, "kernels"))
    value = f"{' + '.join(native)}, part of the layers weight-only (Marlin)" if native else "Marlin, weight-only"
    warning = _line(facts, "weight_only_fp4")
    proof = warning[max(warning.find("Weight-only"), 0) :] if native or not facts.kernels else _line(facts, "kernels")
    return Link(
        "nvfp4 kernel",
        value,
        "look",
        proof,
        "these layers keep FP4 weights and compute in 16 bit, which costs prefill speed. The log's sentence about the "
        "card is the same on cards that can compute in FP4: check that FlashInfer and nvcc 12.9 or newer are there, "
        "that this vLLM is built for the card, and what --linear-backend (newer versions) offers",
    )


def _parallel(seen: _Seen) -> Link:
    facts = seen.facts
    if facts.tensor_parallel is None and facts.pipeline_parallel is None:
        return Link("parallel", NA, "unknown")
    value = f"TP {facts.tensor_parallel or 1}, PP {facts.pipeline_parallel or 1}"
    return Link("parallel", value, "ok", _line(facts, "tensor_parallel", "pipeline_parallel"))


def _all_reduce(seen: _Seen) -> Link:
    facts = seen.facts
    nccl = f"NCCL {facts.nccl}" if facts.nccl else "NCCL"
    if facts.tensor_parallel == 1:
        return Link("all-reduce", "not needed (one rank)", "ok", _line(facts, "tensor_parallel"))
    if facts.distributed_backend == "gloo":
        return Link("all-reduce", "gloo (CPU)", "ok", _line(facts, "distributed_backend"))
    p2p, told = p2p_of(seen.pairs)
    if facts.custom_all_reduce_off:
        value = f"{nccl}; custom all-reduce off {facts.custom_all_reduce_off}{told}"
        return Link("all-reduce", value, "ok", _line(facts, "custom_all_reduce_off"))
    if facts.custom_all_reduce_disabled:
        value = f"{nccl}; custom all-reduce off{told}"
        return Link("all-reduce", value, "ok", _line(facts, "custom_all_reduce_disabled"))
    if facts.nccl is None:
        return Link("all-reduce", NA, "unknown")
    value = f"custom all-reduce may be on, beside {nccl}{told}"
    if p2p:
        return Link("all-reduce", value, "ok", f"{_line(facts, 'nccl')}; NVML: P2P between all cards")
    return Link(
        "all-reduce",
        value,
        "look",
        _line(facts, "nccl"),
        "vLLM prints nothing where it is on; on two cards without NVLink it can hang: --disable-custom-all-reduce",
    )


def _attention(seen: _Seen) -> Link:
    facts = seen.facts
    if facts.attention_backend is None:
        if _on_cpu(facts):
            return Link("attention", "CPU", "ok", _cpu_line(facts))
        return Link("attention", NA, "unknown", "no line names the attention backend")
    return Link("attention", facts.attention_backend, "ok", _line(facts, "attention_backend"))


def _gdn(seen: _Seen) -> Link:
    facts = seen.facts
    if facts.gdn_kernel is None:
        return Link("gdn", NA, "unknown", "no line names a GDN prefill kernel")
    decode = f", speculative decode {facts.gdn_decode_kernel}" if facts.gdn_decode_kernel else ""
    return Link("gdn", f"{facts.gdn_kernel}{decode}", "ok", _line(facts, "gdn_kernel"))


def _compile(seen: _Seen) -> Link:
    facts = seen.facts
    if facts.enforce_eager:
        return Link("compile", "off (eager)", "look", _line(facts, "enforce_eager"), "leave out --enforce-eager")
    cached = {True: "cached", False: "cold", None: ""}[facts.compile_cached]
    took = "" if facts.compile_seconds is None else f"{facts.compile_seconds:.0f} s"
    value = " ".join(part for part in (took, cached) if part)
    if not value:
        return Link("compile", NA, "unknown", "no line tells of torch.compile")
    return Link("compile", value, "ok", _line(facts, "compile_seconds", "compile_cached"))


def _graphs(seen: _Seen) -> Link:
    facts = seen.facts
    if facts.enforce_eager:
        return Link("cuda graphs", "off (eager)", "look", _line(facts, "enforce_eager"), "leave out --enforce-eager")
    if facts.graph_mode == "NONE" and not facts.graphs:
        if _on_cpu(facts):
            return Link("cuda graphs", "none (CPU)", "ok", _cpu_line(facts))
        return Link("cuda graphs", "off", "look", _line(facts, "graph_mode"), "check cudagraph_mode in the settings")
    if not facts.graphs and facts.graphs_seconds is None:
        return Link("cuda graphs", facts.graph_mode or NA, "unknown", "no line tells of a capture")
    parts = list(facts.graphs)
    if facts.graphs_seconds is not None:
        parts.append(f"captured in {facts.graphs_seconds:.0f} s")
    if facts.graphs_gib is not None and facts.graphs_gib >= 0:  # the difference of two readings can be negative
        parts.append(f"{facts.graphs_gib:.2f} GiB")
    done: Verdict = "unknown" if facts.graphs_seconds is None and not facts.startup_complete else "ok"
    return Link("cuda graphs", "; ".join(parts), done, _line(facts, "graphs_seconds", "graphs"))


def _kv(seen: _Seen) -> Link:
    facts, counters = seen.facts, seen.counters
    page = counters.facts if counters else None
    dtype = facts.kv_cache_dtype or (page.dtype if page else None)
    length = facts.concurrency_length or facts.max_model_len
    # The page has more digits than the log.
    exact = page.max_concurrency if page else None
    times = exact if exact is not None else facts.concurrency
    tokens = int(exact * length) if exact is not None and length else facts.kv_tokens_usable
    tokens = tokens or (page.kv_tokens if page else None)
    if tokens is None:
        return Link("kv cache", dtype or NA, "unknown", _line(facts, "available_kv_gib"))
    parts = [f"{dtype}" if dtype else "", f"{number(tokens, 0)} tokens"]
    if times is not None:
        parts.append(f"{number(times, 2)}x" + (f" at {number(length, 0)}" if length else ""))
    if facts.kv_tokens is not None and abs(facts.kv_tokens - tokens) > 0.01 * tokens:
        parts.append(f"the log's {number(facts.kv_tokens, 0)} tokens are wrong on this kind of model")
    if facts.kv_pinned:
        parts.append("size pinned")
    proof = _line(facts, "concurrency", "kv_tokens") or "vllm:cache_config_info"
    value = ", ".join(part for part in parts if part)
    if times is not None and times < 1:
        return Link("kv cache", value, "look", proof, "one request of the full context does not fit: --max-model-len")
    return Link("kv cache", value, "ok", proof)


def _scheduler(seen: _Seen) -> Link:
    facts = seen.facts
    budget, block = facts.chunk_budget, facts.block_tokens
    if budget is None:
        return Link("scheduler", NA, "unknown")
    parts = [f"chunk budget {budget}"]
    effective = min(budget, facts.max_num_scheduled_tokens or budget)
    if effective < budget:
        parts.append(f"{effective} beside the drafts")
    aligned = facts.mamba_mode == "align" and facts.prefix_caching is not False
    if aligned and block and effective // block * block not in (0, effective):
        parts.append(f"prefills run in {effective // block * block} (whole blocks of {block})")
    if facts.max_num_seqs is not None:
        parts.append(f"max {facts.max_num_seqs} at once")
    if facts.async_scheduling is not None:
        parts.append("async" if facts.async_scheduling else "not async")
    value, proof = ", ".join(parts), _line(facts, "chunk_budget")
    if aligned and block and effective < block:
        fix = f"the budget is smaller than a cache block of {block}: --max-num-batched-tokens {block} or more"
        return Link("scheduler", value, "look", proof, fix)
    return Link("scheduler", value, "ok", proof)


def _prefix(seen: _Seen) -> Link:
    facts, counters = seen.facts, seen.counters
    page = counters.facts if counters else None
    enabled = page.prefix_caching if page and page.prefix_caching is not None else facts.prefix_caching
    mode = facts.mamba_mode or (page.mamba_mode if page else None)
    block = facts.block_tokens or (page.block_tokens if page else None)
    if enabled is None and mode not in ("align", "all"):
        return Link("prefix caching", NA, "unknown")
    proof = _line(facts, "prefix_caching", "mamba_mode") or "vllm:cache_config_info"
    if enabled is False:
        return Link("prefix caching", "off", "ok", proof)
    parts = ["on", mode if mode and mode != "none" else "", f"block {block} tokens" if block else ""]
    return Link("prefix caching", ", ".join(part for part in parts if part), "ok", proof)


def _mtp(seen: _Seen) -> Link:
    facts, counters = seen.facts, seen.counters
    drafts = counters.spec_drafts if counters else None
    if facts.speculative_method is None:
        if drafts is not None:
            value = f"on, {count(drafts)} drafts seen" if drafts else "on, not yet proved: no draft seen"
            return Link("mtp", value, "ok" if drafts else "unknown", _DRAFTS)
        known, proof = facts.args is not None or facts.line("model") is not None, _line(facts, "args")
        if not known and counters is not None and counters.generation_tokens is not None:
            # Its series exist with speculation only.
            known, proof = True, f"no {_DRAFTS} on the page"
        return Link("mtp", "off" if known else NA, "ok" if known else "unknown", proof)
    value = f"{facts.speculative_method}, n={facts.speculative_tokens or '?'}"
    proof = _line(facts, "speculative_method")
    if drafts:
        return Link("mtp", f"{value}, {count(drafts)} drafts seen", "ok", _DRAFTS)
    if counters is None or (drafts is not None and (counters.generation_tokens or 0) < _PROVES_TOKENS):
        return Link("mtp", f"{value}, not yet proved: no draft seen", "unknown", proof)
    fix = "tokens were generated without a draft: does this version speculate with these settings?"
    return Link("mtp", f"{value}, no draft seen", "look", proof, fix)


_LINKS: tuple[Callable[[_Seen], Link], ...] = (
    _model,
    _weights,
    _kernel,
    _parallel,
    _all_reduce,
    _attention,
    _gdn,
    _compile,
    _graphs,
    _kv,
    _scheduler,
    _prefix,
    _mtp,
)
