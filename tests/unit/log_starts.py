"""Starts as vLLM prints them, up to a point, and the ways in which one breaks; for tests that need many."""

from __future__ import annotations

from collections.abc import Sequence

from console.server.diagnose import diagnose

API = "(APIServer pid=11) INFO 02-03 10:00:00 [x.py:1] "
CORE = "(EngineCore pid=12) ERROR 02-03 10:01:00 [core.py:1] "
RANK0 = "(Worker_TP0 pid=13) ERROR 02-03 10:01:00 [multiproc_executor.py:9] "
RANK1 = "(Worker_TP1 pid=14) ERROR 02-03 10:01:00 [multiproc_executor.py:9] "
_INFO0 = "(Worker_TP0 pid=13) INFO 02-03 10:00:40 [gpu_model_runner.py:1] "

BANNER = [
    API + "  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.30.1",
    API + "non-default args: {'model_tag': '/m/q', 'port': 9000, 'tensor_parallel_size': 2, "
    "'gpu_memory_utilization': 0.95}",
    API + "Chunked prefill is enabled with max_num_batched_tokens=4096.",
]
LOADING = [
    _INFO0 + "Starting to load model /m/q...",
    "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:03<00:03,  3.1s/it]",
]
LOADED = [*LOADING, _INFO0 + "Model loading took 9.5 GiB memory and 20.1 seconds"]
COMPILED = [*LOADED, _INFO0 + "torch.compile took 9.12 s in total"]
READY = [
    *COMPILED,
    "(EngineCore pid=12) INFO 02-03 10:00:55 [core.py:1] init engine (profile, create kv cache) took 30.0 s",
    "(APIServer pid=11) INFO:     Application startup complete.",
]
UP_TO: dict[str, list[str]] = {
    "start": [],
    "loading": LOADING,
    "loaded": LOADED,
    "compiled": COMPILED,
    "ready": READY,
}
WRAPPED = [
    "(APIServer pid=11) Traceback (most recent call last):",
    '(APIServer pid=11)   File "/v/vllm/v1/engine/utils.py", line 9, in wait_for_engine_startup',
    "(APIServer pid=11) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): "
    "{'EngineCore': 1}",
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


def plain(said: str, before: Sequence[str] = ()) -> list[str]:
    """Lines as they stand, behind a start where one had begun."""
    return [*BANNER, *before, *said.split("\n")]


NCCL = "(Worker_TP1 pid=14) INFO 02-03 10:00:10 [pynccl.py:1] vLLM is using nccl==2.28.9"
BLOCKED = (
    "(EngineCore pid=12) INFO 02-03 10:20:00 [shm_broadcast.py:1] No available shared memory broadcast block found in "
    "60 seconds. This typically happens when some processes are hanging or doing some time-consuming work."
)
SERVED = '(APIServer pid=11) INFO:     127.0.0.1:5 - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def cause(lines: list[str], *, alive: bool = False, silent_s: float = 0.0, exit_code: int | None = None) -> str | None:
    found = diagnose(lines, alive=alive, silent_s=silent_s, exit_code=exit_code)
    return found.cause if found else None
