"""Each rule on the wordings in which its fault is known; each with a start around it as vLLM prints one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from console.server.diagnose import diagnose
from console.server.diagnosis.rules import RULES, find_fault
from console.server.diagnosis.story import read_story
from tests.unit.log_cases import text_of

API = "(APIServer pid=11) INFO 02-03 10:00:00 [x.py:1] "
CORE = "(EngineCore pid=12) ERROR 02-03 10:01:00 [core.py:1] "
RANK0 = "(Worker_TP0 pid=13) ERROR 02-03 10:01:00 [multiproc_executor.py:9] "
RANK1 = "(Worker_TP1 pid=14) ERROR 02-03 10:01:00 [multiproc_executor.py:9] "

BANNER = [
    API + "  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.30.1",
    API
    + "non-default args: {'model_tag': '/m/q', 'port': 9000, 'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.95}",
    API + "Chunked prefill is enabled with max_num_batched_tokens=4096.",
]
LOADING = [
    "(Worker_TP0 pid=13) INFO 02-03 10:00:20 [gpu_model_runner.py:1] Starting to load model /m/q...",
    "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:03<00:03,  3.1s/it]",
]
LOADED = [
    *LOADING,
    "(Worker_TP0 pid=13) INFO 02-03 10:00:40 [gpu_model_runner.py:1] Model loading took 9.5 GiB memory and 20.1 seconds",
]
COMPILED = [*LOADED, "(Worker_TP0 pid=13) INFO 02-03 10:00:50 [monitor.py:1] torch.compile took 9.12 s in total"]
READY = [
    *COMPILED,
    "(EngineCore pid=12) INFO 02-03 10:00:55 [core.py:1] init engine (profile, create kv cache, warmup model) took 30.0 s",
    "(APIServer pid=11) INFO:     Application startup complete.",
]
WRAPPED = [
    "(APIServer pid=11) Traceback (most recent call last):",
    '(APIServer pid=11)   File "/v/vllm/v1/engine/utils.py", line 9, in wait_for_engine_startup',
    "(APIServer pid=11) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
]


def broke(said: str, before: Sequence[str] = (), frame: str = "core.py") -> list[str]:
    """A start that ends with an exception in both ranks, and its wrappers."""
    lines = [*BANNER, *before]
    for rank in (RANK0, RANK1):
        lines += [
            rank + "WorkerProc hit an exception.",
            rank + "Traceback (most recent call last):",
            rank + f'  File "/v/vllm/{frame}", line 7, in step',
            *(rank + line for line in said.split("\n")),
        ]
    return [*lines, *WRAPPED]


def raw(said: str, before: Sequence[str] = ()) -> list[str]:
    """A start that the API server itself ends with a bare traceback."""
    trace = ["Traceback (most recent call last):", '  File "/v/bin/vllm", line 8, in <module>', "    sys.exit(main())"]
    return [*BANNER, *before, *trace, *said.split("\n")]


@dataclass(frozen=True)
class Told:
    """A log, the rule that must speak, and what it must say."""

    rule: str
    lines: list[str]
    cause: str
    phase: str
    says: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()
    args: dict[str, object] = field(default_factory=dict)


KV_NEW = (
    "ValueError: To serve at least one request with the model's max seq len (262144), (8.20 GiB KV cache is needed, which "
    "is larger than the available KV cache memory (3.11 GiB). Based on the available memory, the estimated maximum model "
    "length is 99328. Try increasing `gpu_memory_utilization` (which also controls CPU memory) or decreasing it."
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.19 GiB. GPU 1 has a total capacity of 15.47 GiB of "
    "which 603.50 MiB is free. Including non-PyTorch memory, this process has 14.87 GiB memory in use."
)
BUSY = (
    "ValueError: Free memory on device cuda:0 (19.77/22.05 GiB) on startup is less than desired GPU memory utilization "
    "(0.9, 19.84 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."
)

TABLE = [
    Told(
        "kv-too-small",
        broke(KV_NEW, COMPILED),
        "kv-too-small",
        "kv cache",
        ("262144", "99328"),
        ("--max-model-len 99328",),
    ),
    Told(
        "kv-too-small",
        raw(
            "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored in "
            "KV cache (7344). Try increasing `gpu_memory_utilization` or decreasing `max_model_len`."
        ),
        "kv-too-small",
        "kv cache",
        ("32768", "7344"),
        ("--max-model-len 7168",),
    ),
    Told(
        "no-kv-memory",
        broke("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.", LOADED),
        "no-kv-memory",
        "kv cache",
        ("9.5 GiB",),
        ("gpu-memory-utilization",),
    ),
    Told("vram-busy", broke(BUSY), "vram-busy", "start", ("cuda:0", "19.77", "19.84"), ("0.89", "other process")),
    Told(
        "vram-busy",
        broke(
            "ValueError: Free memory on device (10.00/15.47 GiB) on startup is less than desired GPU memory utilization "
            "(0.9, 13.92 GiB)."
        ),
        "vram-busy",
        "start",
        ("10.00",),
        ("--gpu-memory-utilization 0.64",),
    ),
    Told(
        "memory-moved",
        broke(
            "AssertionError: Error in memory profiling. Initial free memory 12.1 GiB, current free memory 13.0 GiB. This "
            "happens when other processes release GPU memory.",
            LOADED,
        ),
        "vram-busy",
        "load",
        ("12.1 GiB",),
        ("other process",),
    ),
    Told("oom", broke(OOM, LOADING), "oom", "load", ("GPU 1", "1.19 GiB", "603.50 MiB"), ("tensor-parallel-size",)),
    Told("oom", broke(OOM, COMPILED), "oom", "compile", ("1.19 GiB",), ("--max-num-batched-tokens 2048", "0.94")),
    Told("oom", broke(OOM, READY), "oom", "ready", ("served a request",), ("--max-num-batched-tokens 2048", "4096")),
    Told(
        "oom",
        broke(
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests. Please try lowering "
            "`max_num_seqs` or `gpu_memory_utilization`.",
            COMPILED,
        ),
        "oom",
        "compile",
        ("256",),
        ("max-num-seqs",),
    ),
    Told(
        "oom", broke("RuntimeError: CUDA error: out of memory", LOADED, "v1/worker/gpu_model_runner.py"), "oom", "load"
    ),
    Told(
        "chunk-below-block",
        broke("AssertionError: In Mamba cache align mode, block_size (2096) must be <= max_num_batched_tokens (2048)."),
        "chunk-below-block",
        "start",
        ("2096", "2048"),
        ("max-num-batched-tokens to 2096",),
    ),
    Told(
        "too-many-seqs",
        broke(
            "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (939). Each decode sequence requires one."
        ),
        "too-many-seqs",
        "start",
        ("1024", "939"),
        ("--max-num-seqs 939",),
    ),
    Told(
        "compile-cache",
        broke(
            "RuntimeError: vLLM failed to compile the model. The most likely reason for this is that a previous compilation "
            "failed. We recommend trying to remove /c/vllm/torch_compile_cache and try again.",
            LOADED,
        ),
        "compile-cache",
        "compile",
        (),
        ("mv /c/vllm/torch_compile_cache",),
    ),
    Told(
        "compile-cache-unreadable",
        broke("_pickle.UnpicklingError: pickle data was truncated", LOADED, "vllm/compilation/caching.py"),
        "compile-cache",
        "compile",
        (),
        ("torch_compile_cache",),
    ),
    Told(
        "illegal-access",
        broke(
            "RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be asynchronously "
            "reported",
            READY,
        ),
        "engine-crashed",
        "ready",
        ("illegal memory access",),
        ("no-async-scheduling",),
    ),
    Told(
        "illegal-access",
        broke("torch.AcceleratorError: cudaErrorIllegalAddress", COMPILED),
        "engine-crashed",
        "compile",
    ),
    Told(
        "align-copy",
        broke("TypeError: 'function' object is not subscriptable", READY, "v1/worker/mamba_utils.py"),
        "engine-crashed",
        "ready",
        ("subscriptable",),
        ("--no-enable-prefix-caching",),
    ),
    Told(
        "nccl-error",
        broke("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, unhandled system error"),
        "nccl-stuck",
        "start",
        ("unhandled system error",),
        ("NCCL_P2P_DISABLE",),
    ),
    Told("rpc-timeout", broke("TimeoutError: RPC call to sample_tokens timed out.", READY), "engine-stalled", "ready"),
    Told(
        "start-timeout",
        raw(
            "TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading "
            "for large models. Waited 600s (configured by VLLM_ENGINE_READY_TIMEOUT_S).",
            LOADING,
        ),
        "engine-stalled",
        "load",
        ("600s",),
        ("ready-timeout",),
    ),
    Told(
        "gpu-fault", broke("RuntimeError: CUDA error: device-side assert triggered", READY), "engine-crashed", "ready"
    ),
    Told("native-crash", [*BANNER, *READY, "!!!!!!! Segfault encountered !!!!!!!"], "engine-crashed", "ready"),
    Told(
        "process-died",
        [
            *BANNER,
            *READY,
            CORE + "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor.",
            "(APIServer pid=11) ERROR 02-03 10:09:00 [a.py:1] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered "
            "an issue. See stack trace (above) for the root cause.",
        ],
        "engine-crashed",
        "ready",
        ("-9", "OOM killer"),
    ),
    Told(
        "process-died",
        [
            *BANNER,
            *LOADING,
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
            "{'EngineCore': -9}",
        ],
        "engine-crashed",
        "load",
        ("-9",),
    ),
    Told(
        "port-in-use", raw("OSError: [Errno 98] Address already in use"), "port-in-use", "start", ("9000",), ("port",)
    ),
    Told(
        "port-in-use",
        [
            *BANNER,
            *READY,
            "ERROR:    [Errno 98] error while attempting to bind on address ('127.0.0.1', 8100): address already "
            "in use",
            "INFO:     Waiting for application shutdown.",
        ],
        "port-in-use",
        "warm-up",
        ("8100", "address already in use"),
        ("port",),
    ),
    Told(
        "port-in-use",
        broke(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: "
            "29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
        ),
        "port-in-use",
        "start",
        ("29500",),
        ("port",),
    ),
    Told(
        "unknown-flag",
        ["vllm: error: unrecognized arguments: --max-modle-len 8"],
        "bad-flag",
        "start",
        ("--max-modle-len",),
    ),
    Told("unknown-flag", ["usage: vllm serve [m]", "vllm serve: error: too few arguments"], "bad-flag", "start"),
    Told(
        "unknown-flag",
        ["vllm serve: error: ambiguous option: --kv-cache could match --kv-cache-dtype, --kv-cache-memory-bytes"],
        "bad-flag",
        "start",
        ("--kv-cache",),
    ),
    Told(
        "bad-argument",
        ["vllm serve: error: argument --kv-cache-dtype: invalid choice: 'fp9' (choose from auto, fp8)"],
        "bad-value",
        "start",
        ("fp9",),
        ("--kv-cache-dtype",),
    ),
    Told("bad-argument", ["vllm serve: error: argument --max-num-seqs: expected one argument"], "bad-value", "start"),
    Told(
        "bad-argument",
        ["vllm serve: error: argument --port: invalid int value: 'x'"],
        "bad-value",
        "start",
        ("--port",),
    ),
    Told(
        "bad-value",
        raw(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, User-specified "
            "max_model_len (999999) is greater than the derived max_model_len (262144). [type=value_error, input_value=...]"
        ),
        "bad-value",
        "start",
        ("ModelConfig", "999999"),
        ("--max-model-len",),
    ),
    Told(
        "bad-value",
        raw("ValueError: max_num_batched_tokens (512) must be greater than or equal to max_num_seqs (1024)."),
        "bad-value",
        "start",
        ("512",),
        ("--max-num-batched-tokens", "--max-num-seqs"),
    ),
    Told(
        "too-few-cards",
        broke("ValueError: World size (4) is larger than the number of available GPUs (2) in this node."),
        "bad-value",
        "start",
        ("4",),
        ("tensor-parallel-size",),
    ),
    Told(
        "model-missing",
        raw(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n  Value error, Invalid repository "
            "ID or local directory specified: '/m/gone'. Please verify the following. [type=value_error]"
        ),
        "model-missing",
        "start",
        ("/m/gone",),
        ("/m/gone",),
    ),
    Told(
        "model-missing",
        raw(
            "OSError: acme/nope is not a local folder and is not a valid model identifier listed on 'https://hub/models'\nIf this "
            "is a private repository, pass a token"
        ),
        "model-missing",
        "start",
        ("acme/nope",),
    ),
    Told(
        "model-missing",
        raw("OSError: /m/q does not appear to have a file named config.json. Checkout 'https://hub/m/q' for files."),
        "model-missing",
        "start",
        ("/m/q",),
        ("config.json",),
    ),
    Told(
        "model-missing",
        raw(
            "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the specified "
            "revision on the local disk and outgoing traffic has been disabled."
        ),
        "model-missing",
        "start",
        ("/m/q",),
    ),
    Told(
        "model-missing",
        raw(
            "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://hub/acme/gated.\n401 Client "
            "Error. (Request ID: Root=1)"
        ),
        "model-missing",
        "start",
        ("gated",),
        ("HF_TOKEN",),
    ),
    Told(
        "model-missing",
        broke(
            "FileNotFoundError: [Errno 2] No such file or directory: '/m/q/model-00001-of-00002.safetensors'", LOADING
        ),
        "model-missing",
        "start",
        ("/m/q",),
    ),
    Told(
        "model-http",
        raw(
            "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://hub/api/models/acme/none/tree/main"
        ),
        "model-missing",
        "start",
        ("/m/q",),
    ),
    Told(
        "nvcc-missing",
        broke("RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda'"),
        "nvcc-missing",
        "start",
    ),
    Told(
        "nvcc-missing",
        broke("FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'", COMPILED),
        "nvcc-missing",
        "compile",
        ("nvcc",),
        ("CUDA",),
    ),
    Told(
        "nvcc-missing",
        broke(
            "RuntimeError: Ninja build failed. Ninja output:\nnvcc fatal   : Unsupported gpu architecture 'compute_120a'",
            LOADED,
        ),
        "nvcc-missing",
        "load",
        (),
        ("12.9",),
    ),
    Told(
        "nvcc-missing",
        broke("FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"),
        "nvcc-missing",
        "start",
        ("ninja",),
    ),
    Told(
        "disk-full",
        broke("OSError: [Errno 28] No space left on device: '/c/x.so'", LOADED),
        "disk-full",
        "load",
        (),
        ("free",),
    ),
    Told("no-gpu", broke("RuntimeError: No CUDA GPUs are available"), "no-gpu", "start", (), ("nvidia-smi",)),
]


@pytest.mark.parametrize("told", TABLE, ids=[f"{at}-{told.rule}" for at, told in enumerate(TABLE)])
def test_rule(told: Told) -> None:
    found = diagnose(told.lines)
    fault = find_fault(read_story(told.lines))
    assert fault is not None
    assert fault.rule.id == told.rule
    assert found is not None
    assert (found.cause, found.phase) == (told.cause, told.phase)
    assert [word for word in told.says if word not in text_of(found)] == []
    assert [word for word in told.fix if word not in found.fix] == []


def test_every_rule_has_a_test() -> None:
    assert {told.rule for told in TABLE} == {rule.id for rule in RULES}


def test_rules_are_named_once_and_say_where_they_were_seen() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.seen for rule in RULES)
