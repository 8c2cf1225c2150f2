"""What a start's log says about the server that is coming up: the facts, and the sentences that carry them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StartupFacts:
    """Facts read from a log; None means that no line said so. Sizes in GiB as vLLM prints them, times in seconds."""

    version: str | None = None
    model: str | None = None
    served_name: str | None = None
    args: str | None = None
    """The non-default arguments as printed, keys masked."""
    architecture: str | None = None
    max_model_len: int | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    tensor_parallel: int | None = None
    pipeline_parallel: int | None = None

    weights_seconds: float | None = None
    """The slowest rank's."""
    download_seconds: float | None = None
    """What the weights' download took, where this start downloaded them."""
    weights_gib: float | None = None
    """Resident per card after loading; the largest rank's."""

    kernels: tuple[str, ...] = ()
    """Linear kernels chosen for NVFP4, each once, in order."""
    weight_only_fp4: bool = False
    """The warning that (some) layers run FP4 weights through the Marlin kernel."""
    attention_backend: str | None = None
    gdn_kernel: str | None = None
    gdn_decode_kernel: str | None = None
    nccl: str | None = None
    distributed_backend: str | None = None
    custom_all_reduce_off: str | None = None
    """Why the custom all-reduce is off, in vLLM's words; it prints nothing where it is on."""
    custom_all_reduce_disabled: bool | None = None
    """The setting `disable_custom_all_reduce`."""

    chunk_budget: int | None = None
    """`max_num_batched_tokens`."""
    max_num_scheduled_tokens: int | None = None
    """The effective budget where speculation takes a part of it."""
    max_num_seqs: int | None = None
    block_tokens: int | None = None
    """Attention block of a hybrid model: the floor below which no prefix can hit."""
    mamba_padding: float | None = None
    """Share of a mamba page that is padding, 0..1 and above."""
    mamba_mode: str | None = None
    prefix_caching: bool | None = None
    async_scheduling: bool | None = None

    speculative_method: str | None = None
    speculative_tokens: int | None = None

    enforce_eager: bool | None = None
    compile_seconds: float | None = None
    """torch.compile of the slowest rank, all models of that rank together."""
    compile_cached: bool | None = None
    compile_cache: str | None = None
    graph_mode: str | None = None
    graphs: tuple[str, ...] = ()
    """Kinds of CUDA graphs captured, such as `mixed prefill-decode, PIECEWISE`."""
    graphs_seconds: float | None = None
    graphs_gib: float | None = None
    graphs_estimated_gib: float | None = None

    available_kv_gib: float | None = None
    """Per card; the smallest rank's."""
    kv_pinned: bool = False
    """The KV cache has a fixed size: memory utilisation is ignored."""
    kv_tokens: int | None = None
    """As printed; on some hybrids wrong: see `kv_tokens_usable`."""
    concurrency: float | None = None
    concurrency_length: int | None = None

    init_seconds: float | None = None
    address: str | None = None
    startup_complete: bool = False

    evidence: tuple[tuple[str, str], ...] = ()
    """(fact, the line that says it), bounded."""

    @property
    def kv_tokens_usable(self) -> int | None:
        """Concurrency times length where both are known: right also where the printed token count is not."""
        if self.concurrency is not None and self.concurrency_length is not None:
            return round(self.concurrency * self.concurrency_length)
        return self.kv_tokens

    def line(self, fact: str) -> str | None:
        """The line that carries a fact."""
        return next((line for name, line in self.evidence if name == fact), None)


def whole(text: str) -> int:
    """`102,400` → 102400."""
    return int(text.replace(",", ""))


def percent(text: str) -> float:
    """`85.51` → 0.8551."""
    return round(float(text) / 100, 6)


def truth(text: str) -> bool:
    """A word for on or off → bool."""
    return text in ("True", "enabled")


def unquoted(text: str) -> str:
    """`'x'` → x."""
    return text.strip("'\" ")


Reader = Callable[[str], Any]
FIRST, LAST, LARGEST, SMALLEST, EACH = "first", "last", "largest", "smallest", "each"


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence that carries facts.

    Attributes:
        key: a literal that the line must hold; a cheap test before the pattern runs.
        pattern: searched, never anchored to the line's end; each named group is a field of `StartupFacts`.
        read: group text → value.
        keep: which value stays when several lines speak (ranks, drafter and target).
    """

    key: str
    pattern: re.Pattern[str]
    read: Reader = str
    keep: str = FIRST


def _fact(key: str, pattern: str, read: Reader = str, keep: str = FIRST) -> Fact:
    return Fact(key, re.compile(pattern), read, keep)


FACTS: tuple[Fact, ...] = (
    _fact("version", r"█.*\bversion +v?(?P<version>\d\S*)"),
    _fact("API server version", r"API server version (?P<version>\d\S*)"),
    _fact("LLM engine (v", r"LLM engine \(v(?P<version>[^)\s]+)\)"),
    _fact("model", r"█ +model +(?P<model>\S.*?)\s*$"),
    _fact("LLM engine (v", r"config: model=(?P<model>'[^']*'|\"[^\"]*\")", unquoted),
    _fact("served_model_name", r"'served_model_name': \[?(?P<served_name>'[^']*')", unquoted),
    _fact("served_model_name=", r"served_model_name=(?P<served_name>[^,]+)", unquoted),
    _fact("non-default args", r"non-default args: (?P<args>\{.*)"),
    _fact("API server", r"API server.*? args: (?P<args>Namespace\(.*)"),
    _fact("Resolved architecture", r"Resolved architecture: (?P<architecture>\w+)"),
    _fact("Using max model len", r"Using max model len (?P<max_model_len>[\d,]+)", whole),
    _fact("max_seq_len=", r"\bmax_seq_len=(?P<max_model_len>\d+)", whole),
    _fact("quantization=", r"\bquantization=(?!None)(?P<quantization>[\w-]+)"),
    _fact("kv_cache_dtype", r"\bkv_cache_dtype['\"]?(?:=|: )(?P<kv_cache_dtype>'?[\w.-]+'?)", unquoted),
    _fact("tensor_parallel_size", r"tensor_parallel_size['\"]?(?:=|: )(?P<tensor_parallel>\d+)", int),
    _fact("pipeline_parallel_size", r"pipeline_parallel_size['\"]?(?:=|: )(?P<pipeline_parallel>\d+)", int),
    _fact(
        "downloading weights", r"Time spent downloading weights for \S+: (?P<download_seconds>[\d.]+) s", float, LARGEST
    ),
    _fact("Loading weights took", r"Loading weights took (?P<weights_seconds>[\d.]+) s", float, LARGEST),
    _fact("Model loading took", r"Model loading took (?P<weights_gib>[\d.]+) Gi?B", float, LARGEST),
    _fact("NVFP4 GEMM", r"Using (?P<kernels>\S+) for NVFP4 GEMM", str, EACH),
    _fact("Weight-only FP4", r"Weight-only FP4 compression will (?P<weight_only_fp4>be) used", bool),
    _fact(
        "backend",
        r"Using (?:AttentionBackendEnum\.)?(?P<attention_backend>(?!NCCL|GLOO|MPI)[A-Z][A-Z0-9_]+)"
        r"(?: attention)? backend\b(?! for MM)",
    ),
    _fact("lash Attention backend", r"Using (?P<attention_backend>Flash Attention) backend"),
    _fact("GDN prefill kernel", r"Using (?P<gdn_kernel>\S.*?) GDN prefill kernel"),
    _fact("GDN spec decode kernel", r"GDN spec decode kernel: (?P<gdn_decode_kernel>[^\s,]+)"),
    _fact("using nccl==", r"vLLM is using nccl==(?P<nccl>\S+)"),
    _fact("backend=", r"world_size=\d+ .*\bbackend=(?P<distributed_backend>\w+)"),
    _fact(
        "ustom allreduce is disabled", r"ustom allreduce is disabled (?P<custom_all_reduce_off>(?:because|due)[^.]*)"
    ),
    _fact(
        "disable_custom_all_reduce",
        r"disable_custom_all_reduce['\"]?(?:=|: )(?P<custom_all_reduce_disabled>True|False)",
        truth,
    ),
    _fact("hunked prefill is enabled", r"max_num_batched_tokens=(?P<chunk_budget>[\d,]+)", whole),
    # 0.32 leaves that line out where the budget is its own default, 2048; the compile ranges end with the budget.
    _fact("compile_ranges_endpoints", r"'compile_ranges_endpoints': \[(?:\d+, )*(?P<chunk_budget>\d+)\]", int),
    _fact(
        "max_num_scheduled_tokens is set to",
        r"max_num_scheduled_tokens is set to (?P<max_num_scheduled_tokens>\d+) based on the speculative",
        int,
    ),
    _fact("max_num_seqs", r"'max_num_seqs': (?P<max_num_seqs>\d+)", int),
    _fact("attention block size to", r"Setting attention block size to (?P<block_tokens>[\d,]+) tokens", whole),
    _fact("Padding mamba page", r"Padding mamba page size by (?P<mamba_padding>[\d.]+)%", percent),
    _fact("amba cache mode is set", r"amba cache mode is set to '(?P<mamba_mode>\w+)'", str, LAST),
    _fact("enable_prefix_caching", r"\benable_prefix_caching['\"]?(?:=|: )(?P<prefix_caching>True|False)", truth),
    _fact("synchronous scheduling", r"synchronous scheduling is (?P<async_scheduling>enabled|disabled)", truth, LAST),
    _fact("speculative", r"SpeculativeConfig\(method='(?P<speculative_method>[\w-]+)'"),
    _fact("speculative", r"SpeculativeConfig\(.*?num_spec_tokens=(?P<speculative_tokens>\d+)", int),
    _fact("speculative", r"'speculative_config': .*?'method': '(?P<speculative_method>[\w-]+)'"),
    _fact("speculative", r"'speculative_config': .*?'num_speculative_tokens': (?P<speculative_tokens>\d+)", int),
    _fact("enforce_eager", r"\benforce_eager['\"]?(?:=|: )(?P<enforce_eager>True|False)", truth),
    _fact("cudagraph_mode", r"'cudagraph_mode': <CUDAGraphMode\.(?P<graph_mode>\w+)"),
    _fact("Using cache directory", r"Using cache directory: (?P<compile_cache>\S*torch_compile_cache\S*)"),
    _fact("Graph capturing finished", r"Graph capturing finished in (?P<graphs_seconds>\d+) sec", float, LARGEST),
    _fact("Graph capturing finished", r"Graph capturing finished.*?took (?P<graphs_gib>-?[\d.]+) GiB", float, LARGEST),
    _fact("CUDA graph memory", r"Estimated CUDA graph memory: (?P<graphs_estimated_gib>-?[\d.]+) GiB", float, LARGEST),
    _fact("KV cache memory", r"Available KV cache memory: (?P<available_kv_gib>-?[\d.]+) GiB", float, SMALLEST),
    _fact("for KV", r"reserved (?P<available_kv_gib>[\d.]+) GiB memory for KV Cache as specified", float, SMALLEST),
    _fact("for KV", r"(?:\breserved [\d.]+ GiB memory|Explicitly) ?(?P<kv_pinned>.)", bool),
    _fact("for KV cache", r"Explicitly set \((?P<available_kv_gib>[\d.]+)/[\d.]+\) GiB for KV cache", float, SMALLEST),
    _fact("KV cache size", r"KV cache size: (?P<kv_tokens>[\d,]+) tokens", whole, SMALLEST),
    _fact("Maximum concurrency", r"for (?P<concurrency_length>[\d,]+) tokens per request", whole),
    _fact("Maximum concurrency", r"tokens per request: (?P<concurrency>[\d.]+)x", float, SMALLEST),
    _fact("init engine", r"init engine (?:\(.*?\) )?took (?P<init_seconds>[\d.]+) s", float),
    _fact("Starting vLLM", r"Starting vLLM (?:API )?server(?: \d+)? on (?P<address>\S+)"),
    _fact("Uvicorn running on", r"Uvicorn running on (?P<address>\S+)"),
    _fact("Application startup complete", r"Application startup (?P<startup_complete>complete)", bool),
)
