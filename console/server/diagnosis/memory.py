"""Rules about memory: not enough for the weights, the KV cache, the graphs, or the first long prompt."""

from __future__ import annotations

import re
from math import floor

from console.presets.values import whole
from console.server.diagnosis.rule import Fault, Rule, Words, patterns
from console.server.status import Phase

_TRIED = re.compile(r"Tried to allocate (?P<size>[\d.]+ [KMG]i?B)")
_FREE = re.compile(r"of which (?P<free>[\d.]+ [KMG]i?B|\d+ bytes) is free|(?P<old>[\d.]+ [KMG]i?B) free;")
_CARD = re.compile(r"GPU (?P<card>\d+) has|\(GPU (?P<old>\d+);")
_TOTAL = re.compile(r"total capacity of (?P<size>[\d.]+ GiB)")
_HOLDERS = re.compile(r"Process (?P<pid>\d+) has (?P<size>[\d.]+ [KMG]i?B) memory in use")
_GIB = 1024**3
_REST_GIB = 1.25
"""What a card needs beside weights and cache: the driver's context, activations, buffers, graphs."""
_CACHE_STEP = 256 * 1024**2
"""By how much a pinned cache is made smaller: less is no room for a prompt's activations."""

_CACHE_LAID_OUT = re.compile(r"_allocate_kv_cache|initialize_kv_cache_tensors")
_CAPTURED = re.compile(r"capture_model|_capture_cudagraphs|capture_graph|profile_cudagraph_memory")
_MODEL_RUN = re.compile(r"determine_available_memory|profile_run|_dummy_run")
_WHERE = {
    Phase.LOAD: "while the weights were loaded",
    Phase.COMPILE: "while the model was compiled and its memory measured",
    Phase.KV_CACHE: "while the KV cache was sized and laid out",
    Phase.GRAPH_CAPTURE: "while CUDA graphs were captured",
    Phase.WARM_UP: "while the server warmed up",
    Phase.READY: "while it served a request",
}


def utilization(fault: Fault) -> float | None:
    """The setting `gpu_memory_utilization`, where the log shows it."""
    try:
        return float(fault.story.arg("gpu_memory_utilization") or "")
    except ValueError:
        return None


def _pinned(fault: Fault) -> int | None:
    """Bytes of a cache whose size was given."""
    return whole(fault.story.arg("kv_cache_memory_bytes"))


def lower_utilization(fault: Fault, step: float) -> str:
    """`--gpu-memory-utilization 0.967`, or how far to lower it; a pinned cache ignores it, and says so."""
    if fault.story.facts.kv_pinned or fault.story.arg("kv_cache_memory_bytes"):
        ignored = "with it set, --gpu-memory-utilization is ignored"
        if (pinned := _pinned(fault)) and pinned > _CACHE_STEP:
            if (room := _room_for_cache(fault)) and room < pinned - _CACHE_STEP:
                return (
                    f"set --kv-cache-memory-bytes {room} (now {pinned}, and beside {fault.story.facts.weights_gib:g} "
                    f"GiB of weights about {room / _GIB:.2f} GiB fit; {ignored})"
                )
            return (
                f"set --kv-cache-memory-bytes {pinned - _CACHE_STEP} (now {pinned}: 256 MiB less for the KV cache; "
                f"{ignored})"
            )
        return f"lower --kv-cache-memory-bytes by some hundred MiB ({ignored}; without it, lower that)"
    if (now := utilization(fault)) is None:
        return f"lower --gpu-memory-utilization by {step:g}"
    return f"set --gpu-memory-utilization {round(now - step, 4):g} (now {now:g})"


def _room_for_cache(fault: Fault) -> int | None:
    """Bytes of a pinned cache that fit on a card beside its weights, where the log tells both sizes."""
    weights, total = fault.story.facts.weights_gib, _TOTAL.search(fault.context(80, 150))
    if not weights or not total:
        return None
    steps = int((float(total["size"].removesuffix(" GiB")) - weights - _REST_GIB) * _GIB // _CACHE_STEP)
    return steps * _CACHE_STEP if steps > 0 else None


def _rounded_down(tokens: int) -> int:
    return tokens // 1024 * 1024 if tokens >= 4096 else tokens


def _kv_too_small(fault: Fault) -> Words:
    wanted, need, have = fault.group("wanted"), fault.group("need"), fault.group("have")
    fits = fault.group("fits")
    if fits is None:
        later = re.search(r"estimated maximum model length is (?P<fits>\d+)", fault.context(0, 4))
        fits = later["fits"] if later else None
    ways = []
    if fits and int(fits) > 0:
        ways.append(f"set --max-model-len {_rounded_down(int(fits))} (at most {fits} tokens fit)")
    else:
        ways.append(f"lower --max-model-len below {wanted}")
    ways.append(_more_cache(fault))
    size = f" {need} GiB of KV cache are needed, {have} GiB are there." if need else ""
    estimate = f" About {fits} tokens would fit." if fits else ""
    return Words(
        f"The KV cache is too small for the context length of {wanted} tokens.",
        f"One request of {wanted} tokens must fit.{size}{estimate} The log says: {fault.quote()}",
        "; or ".join(ways),
    )


def _more_cache(fault: Fault) -> str:
    ways = []
    if fault.story.facts.kv_pinned or fault.story.arg("kv_cache_memory_bytes"):
        ways.append("raise --kv-cache-memory-bytes (with it set, --gpu-memory-utilization is ignored)")
    else:
        ways.append("raise --gpu-memory-utilization if the card has room left")
    if "fp8" not in (fault.story.facts.kv_cache_dtype or ""):
        ways.append("use --kv-cache-dtype fp8 (half the size per token)")
    return "; or ".join(ways)


def _no_kv_memory(fault: Fault) -> Words:
    weights = fault.story.facts.weights_gib
    held = f" The weights alone hold {weights:g} GiB per card." if weights else ""
    return Words(
        "No memory is left for the KV cache.",
        f"Weights, activations and CUDA graphs use up all that vLLM may take.{held} The log says: {fault.quote()}",
        "raise --gpu-memory-utilization if the card has room left; or lower --max-num-batched-tokens and "
        "--max-num-seqs (smaller activations); or spread the weights with --tensor-parallel-size",
    )


def _vram_busy(fault: Fault) -> Words:
    device, free, total = fault.group("device"), fault.group("free"), fault.group("total")
    share, want = fault.group("share"), fault.group("want")
    card = device or "a card"
    ways = [
        "stop the other process on it (often the last server, still leaving: wait some seconds and start again; "
        "`nvidia-smi` names the holders; with tensor parallelism all cards count)"
    ]
    if free and total and float(total) > 0:
        fits = floor(float(free) / float(total) * 100) / 100
        ways.append(f"set --gpu-memory-utilization {fits:.2f} (now {share}), which is what is free now")
    else:
        ways.append("lower --gpu-memory-utilization")
    missing = f", {float(want) - float(free):.2f} GiB too little" if want and free else ""
    numbers = f"{free} of {total} GiB are free on {card}, {want} GiB are wanted{missing}. " if free and want else ""
    return Words(
        f"Too little memory is free on {card}: something else holds it.",
        f"{numbers}The log says: {fault.quote()}",
        "; or ".join(ways),
    )


def _memory_moved(fault: Fault) -> Words:
    return Words(
        "Another process freed or took GPU memory while vLLM measured it.",
        f"The measurement is worth nothing then. The log says: {fault.quote()}",
        "wait until the other process on the card is gone (the last server, still leaving?) and start again; or lower "
        "--gpu-memory-utilization",
    )


def oom_phase(fault: Fault) -> Phase:
    """Where the memory ran out: the traceback knows better than the last good line."""
    if fault.record.phase in (Phase.WARM_UP, Phase.READY):
        return fault.record.phase
    above = fault.context(80, 0)
    if _of_the_cache(fault, above):
        return Phase.KV_CACHE
    if _CAPTURED.search(above):
        return Phase.GRAPH_CAPTURE
    if fault.record.phase is Phase.LOAD and _MODEL_RUN.search(above):
        return Phase.KV_CACHE
    return fault.record.phase


def _of_the_cache(fault: Fault, above: str) -> bool:
    """Whether it was the cache itself that found no room: by the traceback, or because it cannot fit."""
    if _CACHE_LAID_OUT.search(above):
        return True
    pinned, room = _pinned(fault), _room_for_cache(fault)
    # Before the cache the model is run once, after it graphs are captured.
    other = (
        fault.record.phase in (Phase.LOAD, Phase.GRAPH_CAPTURE) or _MODEL_RUN.search(above) or _CAPTURED.search(above)
    )
    return pinned is not None and room is not None and pinned > room + _CACHE_STEP and not other


def _oom(fault: Fault) -> Words:
    text = fault.context(0, 6)
    if not _TRIED.search(text):  # a sentence about it may come before or behind the exception with the numbers
        text = fault.context(80, 150)
    tried, free, card, total = (pattern.search(text) for pattern in (_TRIED, _FREE, _CARD, _TOTAL))
    which = f"GPU {card['card'] or card['old']}" if card else "A GPU"
    phase = oom_phase(fault)
    where = _WHERE.get(phase, "during the start")
    parts = []
    if tried:
        parts.append(f"{tried['size']} were asked for")
    if free:
        parts.append(f"{free['free'] or free['old']} were free" + (f" of {total['size']}" if total else ""))
    numbers = ", ".join(parts) + ". " if parts else ""
    return Words(
        f"{which} ran out of memory {where}.",
        f"{numbers}{_foreign_holder(text)}The log says: {fault.quote()}",
        _oom_fix(fault, phase),
    )


def _foreign_holder(text: str) -> str:
    if "this process has" not in text:
        return ""
    held = [f"process {found['pid']} ({found['size']})" for found in _HOLDERS.finditer(text)]
    return f"Other holders on the card: {', '.join(held)}. " if held else ""


def _oom_fix(fault: Fault, phase: Phase) -> str:
    lower = lower_utilization(fault, 0.01)
    if "dummy requests" in fault.context(0, 150):
        return f"lower --max-num-seqs (the warm-up tries that many at once); or {lower}"
    if phase is Phase.GRAPH_CAPTURE:
        return (
            f"{lower}; or lower --max-cudagraph-capture-size (fewer and smaller graphs); "
            "or --enforce-eager to do without graphs (slower)"
        )
    if phase is Phase.LOAD:
        return (
            "the weights do not fit: stop other processes on the cards, spread the model with "
            f"--tensor-parallel-size, or take a smaller quantization; or, if they fit by a hair, {lower}"
        )
    if phase is Phase.KV_CACHE and _of_the_cache(fault, fault.context(80, 0)):
        return lower
    budget = fault.story.facts.chunk_budget
    chunk = f"set --max-num-batched-tokens {budget // 2} (now {budget})" if budget else "lower --max-num-batched-tokens"
    if phase is Phase.READY:
        lower = lower_utilization(fault, 0.02)
        return f"{chunk}: a prompt's chunk of that size needs room that the start did not measure; or {lower}"
    return f"{chunk} (its activations are measured here); or lower --max-num-seqs; or {lower}"


MEMORY_RULES: tuple[Rule, ...] = (
    Rule(
        "kv-too-small",
        "kv-too-small",
        "0.8-0.32",
        patterns(
            r"To serve at least one request with (?:the )?model\S* max(?:imum)? seq\w* len\w* \((?P<wanted>\d+)\)"
            r"(?:.*?(?P<need>-?[\d.]+) GiB KV cache is needed.*?\((?P<have>-?[\d.]+) GiB\))?"
            r"(?:.*?estimated maximum model length is (?P<fits>\d+))?",
            r"max seq len \((?P<wanted>\d+)\) is larger than the maximum number of tokens that can be stored in "
            r"(?:the )?KV cache \((?P<fits>\d+)\)",
        ),
        _kv_too_small,
        phase=Phase.KV_CACHE,
    ),
    Rule(
        "no-kv-memory",
        "no-kv-memory",
        "0.5-0.32",
        patterns(r"No available memory for the cache blocks", r"Available KV cache memory is (?:negative|zero)"),
        _no_kv_memory,
        phase=Phase.KV_CACHE,
    ),
    Rule(
        "vram-busy",
        "vram-busy",
        "0.10-0.32",
        patterns(
            r"Free memory on device ?(?P<device>[\w:]+)? ?\((?P<free>[\d.]+)/(?P<total>[\d.]+) GiB\) on startup "
            r"is less than .*?\((?P<share>[\d.]+), (?P<want>[\d.]+) GiB\)",
            r"Free memory on device ?(?P<device>[\w:]+)? .*is less than",
        ),
        _vram_busy,
        phase=Phase.START,
    ),
    Rule(
        "memory-moved",
        "vram-busy",
        "0.8-0.32",
        patterns(r"Error in memory profiling\. Initial free memory"),
        _memory_moved,
    ),
    Rule(
        "oom",
        "oom",
        "0.5-0.32",
        patterns(
            r"(?:CUDA|HIP|XPU) out of memory",
            r"\bOutOfMemoryError\b",
            r"CUDA error: out of memory|cudaErrorMemoryAllocation|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED",
            r"Failed to load model - not enough GPU memory",
        ),
        _oom,
        when_ready=True,
    ),
)
