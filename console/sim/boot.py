"""A start as vLLM writes it to its log, spread over the seconds that it is given."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from console.sim import log
from console.sim.faults import BootFault, Phase, boot_fault, say_boot_fault
from console.sim.options import Options

VERSION = "0.32.0"
_GIB = 1024**3
_SHARDS = 5
_GRAPHS = 7
_DEFAULT_BUDGET = 2048
"""vLLM's own: with it the line that names the budget is left out."""


class BootFailedError(Exception):
    """The start ended with an exception; the log has said all there is to say."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Something that is written at a share of the whole start."""

    at: float
    write: Callable[[], None]
    phase: Phase | None = None
    """The phase that begins here; its fault strikes before anything is written."""


def boot(options: Options, seconds: float, fault: str | None) -> None:
    """Write a start of `seconds` seconds.

    Raises:
        BootFailedError: the start came to its fault.
    """
    start = time.monotonic()
    strikes = boot_fault(fault, options)
    for beat in _beats(options, seconds, cold=fault == "slow-start", weight_only=fault == "kernel-fallback"):
        time.sleep(max(0.0, start + beat.at * seconds - time.monotonic()))
        _strike(beat, strikes, options)
        beat.write()
        if beat.phase == "nccl" and fault == "hang-at-nccl":
            _hang()


def refuse_model(options: Options) -> None:
    """Write the start that ends because the model's folder is not there."""
    for beat in islice(_server(options), 2):
        beat.write()
    rule = "in the form 'repo_name' or 'namespace/repo_name'"
    if options.model.count("/") < 2:
        rule = "use alphanumeric chars, '-', '_' or '.'. The name cannot start or end with '-' or '.'"
    for text in (
        "Traceback (most recent call last):",
        '  File "/opt/vllm/bin/vllm", line 8, in <module>',
        "    sys.exit(main())",
        '  File "/opt/vllm/lib/python3.12/site-packages/vllm/engine/arg_utils.py", line 914, in __post_init__',
        "    self.model = get_model_path(self.model, self.revision)",
        f"huggingface_hub.errors.HFValidationError: Repo id must {'be ' * rule.startswith('in')}{rule}: "
        f"'{options.model}'. Use `repo_type` argument if needed.",
    ):
        log.raw(text)


def _strike(beat: Beat, strikes: BootFault | None, options: Options) -> None:
    if strikes is None or beat.phase != strikes.phase:
        return
    if beat.phase == "graphs":
        log.raw(_bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", 1, _GRAPHS), end="\n")
    say_boot_fault(strikes, options, os.getpid())
    raise BootFailedError


def _hang() -> None:
    while True:
        time.sleep(3600)


def _say(role: log.Role, place: str, text: str, level: log.Level = "INFO") -> Callable[[], None]:
    return partial(log.say, role, place, text, level)


def _each(options: Options, place: str, text: str) -> Callable[[], None]:
    def write() -> None:
        for rank in range(options.tensor_parallel):
            log.say("Worker_TP0" if rank == 0 else "Worker_TP1", place, text)

    return write


def _beats(options: Options, seconds: float, *, cold: bool, weight_only: bool) -> Iterator[Beat]:
    yield from _server(options)
    yield from _workers(options, weight_only=weight_only)
    yield from _loading(options, seconds, weight_only=weight_only)
    yield from _compiling(options, seconds, cold=cold)
    yield from _cache(options)
    yield from _capturing(options, seconds)
    yield from _ready(options, seconds)


def _server(options: Options) -> Iterator[Beat]:
    api = partial(_say, "APIServer")
    yield Beat(0.0, _say("APIServer", "api_utils.py:347", _banner(options)))
    yield Beat(0.01, api("api_utils.py:286", f"non-default args: {_given(options)}"))
    yield Beat(0.04, api("model.py:733", "Resolved architecture: Qwen3_5ForConditionalGeneration"))
    yield Beat(0.05, api("model.py:2152", f"Using max model len {options.max_len}"))
    if options.prefix_caching:
        mode = f"Mamba cache mode is set to '{options.mamba_mode}' for Qwen3_5ForConditionalGeneration by default when "
        yield Beat(0.06, api("config.py:688", f"{mode}prefix caching is enabled"))
    if options.budget != _DEFAULT_BUDGET:
        chunked = f"Chunked prefill is enabled with max_num_batched_tokens={options.budget}."
        yield Beat(0.06, api("scheduler.py:307", chunked))
    state = "enabled" if options.async_scheduling else "disabled"
    yield Beat(0.07, api("vllm.py:1030", f"Asynchronous scheduling is {state}."))
    if options.drafts:
        text = f"max_num_scheduled_tokens is set to {options.budget} based on the speculative decoding settings."
        yield Beat(0.07, api("vllm.py:2276", text, "WARNING"))
    if options.eager:
        text = "Enforce eager set, disabling torch.compile and CUDAGraphs."
        yield Beat(0.07, api("vllm.py:1005", text, "WARNING"))


def _given(options: Options) -> dict[str, object]:
    def plain(name: str, value: object) -> object:
        lone = isinstance(value, list) and len(value) == 1 and name != "served-model-name"
        return value[0] if lone and isinstance(value, list) else value

    flags = {name.replace("-", "_"): plain(name, value) for name, value in options.given.items()}
    return {"model_tag": options.model, **flags}


def _banner(options: Options) -> str:
    return (
        f"\n       █     █     █▄   ▄█\n ▄▄ ▄█ █     █     █ ▀▄▀ █  version {VERSION} SIMULATED (no model, no GPU)\n"
        f"  █▄█▀ █     █     █     █  model   {options.model}\n   ▀▀  ▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀\n"
    )


def _workers(options: Options, *, weight_only: bool) -> Iterator[Beat]:
    speculation = "None"
    if options.drafts:
        speculation = f"SpeculativeConfig(method='mtp', model='{options.model}', num_spec_tokens={options.drafts})"
    config = (
        f"Initializing a V1 LLM engine (v{VERSION}) with config: model='{options.model}', "
        f"speculative_config={speculation}, tokenizer='{options.model}', dtype=torch.bfloat16, "
        f"max_seq_len={options.max_len}, tensor_parallel_size={options.tensor_parallel}, pipeline_parallel_size=1, "
        f"quantization=compressed-tensors, enforce_eager={options.eager}, kv_cache_dtype={options.kv_dtype}, "
        f"enable_prefix_caching={options.prefix_caching}, enable_chunked_prefill=True, "
        f"compilation_config={{'compile_sizes': None, 'compile_ranges_endpoints': [{options.budget}]}}"
    )
    yield Beat(0.12, _say("EngineCore", "core.py:133", config), "start")
    for rank in range(options.tensor_parallel):
        text = f"world_size={options.tensor_parallel} rank={rank} local_rank={rank} backend=nccl"
        yield Beat(0.15, _say("Worker", "parallel_state.py:1906", text))
    if options.tensor_parallel > 1:
        yield Beat(0.16, _say("Worker", "pynccl.py:111", "vLLM is using nccl==2.28.9"), "nccl")
    backends = "['FLASH_ATTN', 'FLASHINFER', 'TRITON_ATTN', 'FLEX_ATTENTION']"
    kernel = "MarlinNvFp4LinearKernel" if weight_only else "FlashInferCutlassNvFp4LinearKernel"
    worker = partial(_say, "Worker_TP0")
    yield Beat(0.18, _each(options, "gpu_model_runner.py:5301", f"Starting to load model {options.model}..."))
    text = f"Using FLASH_ATTN attention backend out of potential backends: {backends}."
    yield Beat(0.19, worker("cuda.py:482", text))
    yield Beat(0.19, worker("__init__.py:1077", f"Using {kernel} for NVFP4 GEMM"))
    text = "Using Triton/FLA GDN prefill kernel (requested=auto, head_k_dim=128)."
    yield Beat(0.20, worker("qwen_gdn_linear_attn.py:228", text))


def _bar(what: str, done: int, total: int, head: str = "") -> str:
    share = done * 100 // total
    return f"{head}{what}: {share:3d}%|{'█' * (share // 10):<10}| {done}/{total}"


def _shard(done: int) -> Callable[[], None]:
    text = f"Loading safetensors checkpoint shards: {done * 100 // _SHARDS:3d}% Completed | {done}/{_SHARDS} "
    end = "\n" if done == _SHARDS else ""
    return partial(log.raw, ("\r" if done else "") + text + f"[00:0{done}<00:0{_SHARDS - done},  1.00s/it]", end)


def _loading(options: Options, seconds: float, *, weight_only: bool) -> Iterator[Beat]:
    for done in range(_SHARDS + 1):
        yield Beat(0.22 + 0.20 * done / _SHARDS, _shard(done), None if done else "load")
    text = f"Loading weights took {0.20 * seconds:.2f} seconds"
    yield Beat(0.43, _say("Worker_TP0", "default_loader.py:397", text))
    text = f"Model loading took {options.weights_bytes / _GIB:.2f} GiB memory and {0.22 * seconds:.6f} seconds"
    yield Beat(0.44, _each(options, "gpu_model_runner.py:5405", text))
    if weight_only:
        text = (
            "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only "
            "FP4 compression will be used leveraging the Marlin kernel. This may degrade performance for "
            "compute-heavy workloads."
        )
        yield Beat(0.44, _say("Worker_TP0", "marlin_utils_fp4.py:226", text, "WARNING"))
    if options.drafts:
        text = "Detected MTP model. Sharing target model embedding weights with the draft model."
        yield Beat(0.44, _say("Worker_TP0", "llm_base_proposer.py:1469", text))
    text = f"Setting attention block size to {options.block} tokens to ensure that attention page size is >= mamba "
    yield Beat(0.45, _say("Worker_TP0", "interface.py:1096", f"{text}page size."))
    text = "Padding mamba page size by 1.26% to ensure that mamba page size and attention page size are exactly equal."
    yield Beat(0.45, _say("Worker_TP0", "interface.py:1120", text))


def _compiling(options: Options, seconds: float, *, cold: bool) -> Iterator[Beat]:
    if options.eager:
        return
    worker = partial(_say, "Worker_TP0")
    text = (
        "Using cache directory: ~/.cache/vllm/torch_compile_cache/9f1c2ab044/rank_0_0/backbone for vLLM's torch.compile"
    )
    yield Beat(0.47, worker("backends.py:1089", text), "compile")
    if cold:
        text = (
            "No available shared memory broadcast block found in 60 seconds. This typically happens when some "
            "processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization)."
        )
        yield Beat(0.60, _say("EngineCore", "shm_broadcast.py:681", text))
        text = f"Cache the graph of compile range (1, {options.budget}) for later use"
        yield Beat(0.62, worker("backends.py:391", text))
        text = f"Compiling a graph for compile range (1, {options.budget}) takes {0.2 * seconds:.2f} s"
        yield Beat(0.70, worker("backends.py:409", text))
    else:
        text = f"Directly load the compiled graph(s) for compile range (1, {options.budget}) from the cache, took "
        yield Beat(0.55, worker("backends.py:300", f"{text}{0.04 * seconds:.3f} s"))
    spent = (0.25 if cold else 0.1) * seconds
    yield Beat(0.72 if cold else 0.58, worker("monitor.py:53", f"torch.compile took {spent:.2f} s in total"))


def _cache(options: Options) -> Iterator[Beat]:
    size = options.kv_tokens * options.kv_per_token / _GIB
    text = f"Available KV cache memory: {size:.2f} GiB"
    if options.kv_bytes is not None:
        text = (
            f"Initial free memory 15.11 GiB, reserved {options.kv_bytes / _GIB:.2f} GiB memory for KV Cache as "
            "specified by kv_cache_memory_bytes config and skipped memory profiling."
        )
    yield Beat(0.75, _each(options, "gpu_worker.py:563", text), "kv")
    text = (
        f"GPU KV cache size: {options.kv_tokens:,} tokens, Maximum concurrency for {options.max_len:,} tokens per "
        f"request: {options.kv_tokens / options.max_len:.2f}x"
    )
    yield Beat(0.76, _say("EngineCore", "kv_cache_utils.py:2327", text))


def _capturing(options: Options, seconds: float) -> Iterator[Beat]:
    if options.eager:
        return
    for done in range(_GRAPHS + 1):
        head, end = ("\r" if done else ""), ("\n" if done == _GRAPHS else "")
        bar = _bar("Capturing CUDA graphs (mixed prefill-decode, PIECEWISE)", done, _GRAPHS, head)
        yield Beat(0.78 + 0.12 * done / _GRAPHS, partial(log.raw, bar, end), None if done else "graphs")
    text = f"Graph capturing finished in {max(1, round(0.12 * seconds))} secs, took 0.29 GiB"
    yield Beat(0.91, _each(options, "gpu_model_runner.py:6370", text))


def _ready(options: Options, seconds: float) -> Iterator[Beat]:
    spent = 0.5 * seconds
    detail = "" if options.eager else f" (compilation: {0.1 * seconds:.2f} s)"
    text = f"init engine (profile, create kv cache, warmup model) took {spent:.2f} s{detail}"
    yield Beat(0.93, _say("EngineCore", "core.py:402", text))
    yield Beat(0.97, _say("APIServer", "entry.py:136", "Supported tasks: ['generate']"))
    text = f"Starting vLLM server on http://{options.host}:{options.port}"
    yield Beat(1.0, _say("APIServer", "entry.py:140", text))
