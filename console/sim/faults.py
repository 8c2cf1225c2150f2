"""Faults by name, in vLLM's own words: what goes wrong, when, and what the log then says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from console.sim import log
from console.sim.batch import Step
from console.sim.options import KV_BYTES_PER_TOKEN, RESERVED_BYTES, TOTAL_BYTES, Options

Phase = Literal["start", "nccl", "load", "compile", "kv", "graphs"]
_GIB = 1024**3
_MIB = 1024**2

CRASHES = frozenset({"crash-at-first-request", "crash-at-first-request-with-mtp", "oom-at-first-prefill"})
LASTING = frozenset(
    {
        "hang-at-nccl",
        "hang-at-first-request",
        "ignore-sigterm",
        "lose-first-sigterm",
        "slow-start",
        "mtp-collapse",
        "kernel-fallback",
    }
)


@dataclass(frozen=True, slots=True)
class BootFault:
    """A start that ends with an exception in a worker or in the engine's core."""

    phase: Phase
    where: Literal["core", "workers"]
    exception: str
    frame: str = 'engine/core.py", line 1330, in run_engine_core'
    """The innermost one of its traceback."""


BOOT_FAULTS = {
    "oom": BootFault(
        "graphs",
        "workers",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB. GPU {rank} has a total capacity of "
        "15.48 GiB of which 92.88 MiB is free. Process {pid} has 15.36 GiB memory in use.",
    ),
    "kv-too-small": BootFault("kv", "core", "{kv_too_small}"),
    "vram-busy": BootFault(
        "start",
        "core",
        "ValueError: Free memory on device cuda:1 (14.02/15.48 GiB) on startup is less than desired GPU memory "
        "utilization (0.977, 15.12 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
    ),
    "too-many-seqs": BootFault(
        "kv",
        "core",
        "ValueError: max_num_seqs ({streams}) exceeds available Mamba cache blocks ({blocks}). Each decode sequence "
        "requires one Mamba cache block, so CUDA graph capture cannot proceed. Please lower max_num_seqs to at most "
        "{blocks} or increase gpu_memory_utilization.",
    ),
    "nvcc-missing": BootFault(
        "compile",
        "workers",
        "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist",
    ),
    "compile-cache": BootFault(
        "compile",
        "workers",
        "RuntimeError: vLLM failed to compile the model. The most likely reason for this is that a previous "
        "compilation failed, leading to a corrupted compilation artifact. We recommend trying to remove "
        "~/.cache/vllm/torch_compile_cache and try again to see the real issue.",
    ),
}
NAMES = frozenset(BOOT_FAULTS) | CRASHES | LASTING


def boot_fault(name: str | None, options: Options) -> BootFault | None:
    """What will end this start, if anything: a fault that was asked for, or a cache of a size that cannot be."""
    if name in BOOT_FAULTS:
        return BOOT_FAULTS[name]
    if options.kv_tokens < options.max_len:
        return BOOT_FAULTS["kv-too-small"]
    return None if options.fits else BootFault("kv", "workers", _KV_TOO_LARGE, _CACHE_FRAME)


def say_boot_fault(fault: BootFault, options: Options, pid: int) -> None:
    """Write the root cause, then the wrapper that always follows."""
    room = max(0, TOTAL_BYTES - RESERVED_BYTES - options.weights_bytes)
    tensor = (options.kv_bytes or _CACHE_TENSORS) // _CACHE_TENSORS
    text = fault.exception.format(
        rank=0,
        pid=pid,
        streams=options.streams,
        blocks=options.kv_blocks,
        kv_too_small=_kv_too_small(options),
        asked=tensor / _MIB,
        free=room % tensor / _MIB,
        used=(options.weights_bytes + room - room % tensor) / _GIB,
    )
    trace = f'Traceback (most recent call last):\n  File "{_SITE}/vllm/v1/{fault.frame}\n{text}'
    if fault.where == "workers":
        for role in _ranks(options):
            head = "WorkerProc hit an exception.\n"
            log.say(role, "multiproc_executor.py:1063", head + trace, "ERROR")
    else:
        head = "EngineCore failed to start.\n"
        log.say("EngineCore", "core.py:1330", head + trace, "ERROR")
    _say_wrapper(pid)


def crash_reason(name: str | None, options: Options) -> Callable[[Step], str | None]:
    """What a step dies of: an exception's text, or `None` while all is well."""
    if name == "crash-at-first-request" or (name == "crash-at-first-request-with-mtp" and options.drafts):
        return lambda _: "'function' object is not subscriptable"
    if name == "oom-at-first-prefill":
        return lambda step: _OOM if sum(piece.tokens for piece in step.prefill) >= 512 else None
    return lambda _: None


def say_crash(reason: str, options: Options) -> None:
    """Write what an engine says that dies while it serves: the workers' exception first, then everybody's wrapper."""
    kind = "torch.OutOfMemoryError" if reason == _OOM else "TypeError"
    where = f'  File "{_SITE}/vllm/v1/worker/gpu_worker.py", line 1328, in execute_model'
    cause = f"WorkerProc hit an exception.\nTraceback (most recent call last):\n{where}\n{kind}: {reason}"
    for role in _ranks(options):
        log.say(role, "multiproc_executor.py:1063", cause, "ERROR")
    dump = f"Dumping input data for V1 LLM engine (v0.32.0) with config: model='{options.model}', prompt_token_ids=[]"
    log.say("EngineCore", "dump_input.py:72", dump, "ERROR")
    fatal = (
        f'EngineCore encountered a fatal error.\nTraceback (most recent call last):\n  File "{_SITE}/vllm/v1/engine/'
        f"core.py\", line 1496, in run_engine_core\nRuntimeError: Worker failed with error '{reason}', please check "
        "the stack trace above for the root cause"
    )
    log.say("EngineCore", "core.py:1512", fatal, "ERROR")
    log.say("APIServer", "async_llm.py:906", f"AsyncLLM output_handler failed.\n{_DEAD}", "ERROR")


_SITE = "/opt/vllm/lib/python3.12/site-packages"
_OOM = (
    "CUDA out of memory. Tried to allocate 272.00 MiB. GPU 0 has a total capacity of 15.48 GiB of which 61.25 MiB is "
    "free."
)
ENGINE_DEAD = "EngineCore encountered an issue. See stack trace (above) for the root cause."
_DEAD = f"vllm.v1.engine.exceptions.EngineDeadError: {ENGINE_DEAD}"


_CACHE_FRAME = 'worker/gpu_model_runner.py", line 6512, in _allocate_kv_cache_tensors'
_CACHE_TENSORS = 16
"""One for each of the model's attention layers, the recurrent ones between them share it: they are made in turn."""
_KV_TOO_LARGE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked:.2f} MiB. GPU {rank} has a total capacity of "
    "15.48 GiB of which {free:.2f} MiB is free. Process {pid} has {used:.2f} GiB memory in use."
)


def _ranks(options: Options) -> tuple[log.Role, ...]:
    both: tuple[log.Role, ...] = ("Worker_TP0", "Worker_TP1")
    return both[: options.tensor_parallel]


def _say_wrapper(pid: int) -> None:
    core = (
        "Process EngineCore:",
        "Traceback (most recent call last):",
        '  File "/opt/python/lib/python3.12/multiprocessing/process.py", line 314, in _bootstrap',
        "    self.run()",
    )
    server = (
        "Traceback (most recent call last):",
        '  File "/opt/vllm/bin/vllm", line 8, in <module>',
        "    sys.exit(main())",
        f'  File "{_SITE}/vllm/v1/engine/utils.py", line 1431, in wait_for_engine_startup',
        "    raise RuntimeError(",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
    )
    for role, lines in (("EngineCore", core), ("APIServer", server)):
        for text in lines:
            log.raw(f"({role} pid={pid}) {text}")


def _kv_too_small(options: Options) -> str:
    needed = options.max_len * options.kv_per_token / _GIB
    have = options.kv_bytes if options.kv_tokens < options.max_len else options.max_len * KV_BYTES_PER_TOKEN * 0.78
    have_bytes = float(have or 0)
    estimate = int(have_bytes / options.kv_per_token) // 16 * 16
    return (
        f"ValueError: To serve at least one request with the models's max seq len ({options.max_len}), "
        f"({needed:.2f} GiB KV cache is needed, which is larger than the available KV cache memory "
        f"({have_bytes / _GIB:.2f} GiB). Based on the available memory, the estimated maximum model length is "
        f"{estimate}. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the "
        "engine. See https://docs.vllm.ai/en/latest/configuration/conserving_memory/ for more details."
    )
