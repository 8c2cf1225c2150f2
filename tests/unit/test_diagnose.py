"""What is a failure and what is not: stops, kills, hangs, slow phases, survived errors, unknown causes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.cli.server import failure
from console.server.diagnose import diagnose
from console.server.diagnosis.rule import as_keys
from console.server.lines import EVIDENCE_LIMIT
from console.server.status import Phase, ServerStatus, State
from tests.unit.log_cases import read_log, text_of
from tests.unit.log_starts import (
    API,
    BANNER,
    BLOCKED,
    COMPILED,
    CORE,
    LOADED,
    NCCL,
    RANK0,
    READY,
    SERVED,
    broke,
    cause,
    raw,
)

STOP = [
    API + "[shutdown] API server: shutdown triggered",
    "(APIServer pid=11) ERROR 02-03 11:00:00 [async_llm.py:1] AsyncLLM output_handler failed.",
    "(APIServer pid=11) ERROR 02-03 11:00:00 [async_llm.py:1] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
    "encountered an issue. See stack trace (above) for the root cause.",
    "INFO:     Shutting down",
]

CLIENT_ERROR = [
    "(APIServer pid=11) ERROR 02-03 10:30:00 [serving.py:1] Error in preprocessing prompt inputs",
    "(APIServer pid=11) ERROR 02-03 10:30:00 [serving.py:1] Traceback (most recent call last):",
    "(APIServer pid=11) ERROR 02-03 10:30:00 [serving.py:1] ValueError: 1 validation error for ChatCompletionRequest",
]


@pytest.mark.parametrize("exit_code", [None, 0, -15, 143, -9, 1])
def test_a_stop_is_no_failure_whatever_breaks_after_it(exit_code: int | None) -> None:
    assert cause([*BANNER, *READY, SERVED, *STOP], exit_code=exit_code) is None


def test_a_stop_while_it_starts_is_no_failure() -> None:
    terminated = ["(EngineCore pid=12) KeyboardInterrupt: terminated"]
    assert cause([*BANNER, *LOADED, *terminated]) is None
    assert cause([*BANNER, *LOADED], exit_code=-15) is None
    assert cause([*BANNER, *LOADED, "RuntimeError: cancelled"], exit_code=-15) is None


def test_the_old_way_to_stop_is_no_failure() -> None:
    old = ["INFO:     Shutting down", RANK0.replace("ERROR", "WARNING") + "WorkerProc was terminated"]
    dead = "ERROR 02-03 11:00:00 [core_client.py:1] Engine core proc EngineCore_DP0 died unexpectedly, shutting down."
    assert cause([*BANNER, *READY, *old, dead]) is None


def test_a_client_error_kills_nobody() -> None:
    assert cause([*BANNER, *READY, *CLIENT_ERROR, SERVED]) is None
    assert cause([*BANNER, *READY, *CLIENT_ERROR, SERVED], alive=True, silent_s=900) is None
    assert cause([*BANNER, *READY, *CLIENT_ERROR, SERVED, *STOP]) is None


def test_what_a_start_survived_is_no_cause() -> None:
    survived = [RANK0 + "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"]
    retried = ["WARNING 02-03 10:00:00 [parallel.py:1] Address already in use. Retrying with a new port."]
    listened = [
        "[W203 10:00:01 socket.cpp:200] [c10d] The socket has failed to bind (errno: 98 - Address already in use)."
    ]
    assert cause([*BANNER, *survived, *retried, *listened, *READY]) is None
    found = diagnose([*BANNER, *survived, *READY], exit_code=-9)
    assert found is not None
    assert found.cause == "unknown"
    assert "nvcc" not in text_of(found)


def test_killed_without_a_word() -> None:
    found = diagnose([*BANNER, *READY, SERVED], exit_code=-9)
    assert found is not None
    assert "SIGKILL" in found.what
    assert "OOM killer" in found.why
    assert "dmesg" in found.fix
    assert found.phase is Phase.READY
    loading = diagnose([*BANNER, *LOADED], exit_code=137)
    assert loading is not None
    assert loading.phase is Phase.LOAD


def test_crash_of_native_code_by_exit_code() -> None:
    found = diagnose([*BANNER, *READY], exit_code=-11)
    assert found is not None
    assert found.cause == "engine-crashed"
    assert "SIGSEGV" in found.what


def test_exit_code_alone() -> None:
    assert cause([*BANNER, *READY], exit_code=0) is None
    found = diagnose([*BANNER], exit_code=3)
    assert found is not None
    assert (found.cause, found.phase) == ("unknown", Phase.START)
    assert "3" in found.what


def test_nothing_known_of_the_end() -> None:
    assert cause([*BANNER, *READY, SERVED]) is None
    assert cause([*BANNER, *LOADED]) == "unknown"
    assert cause([], exit_code=1) == "unknown"


def test_unknown_cause_shows_root_and_end_of_the_chain() -> None:
    said = (
        "KeyError: 'linear_attn.conv1d.weight'\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "Traceback (most recent call last):\nRuntimeError: The checkpoint does not fit the model"
    )
    found = diagnose(broke(said, LOADED, "models/qwen.py"))
    assert found is not None
    assert (found.cause, found.phase) == ("unknown", Phase.LOAD)
    assert "linear_attn.conv1d.weight" in found.why
    assert "does not fit the model" in found.why
    assert any("models/qwen.py" in line for line in found.evidence)
    assert "See root cause above" not in text_of(found)


def test_unknown_cause_of_the_api_server() -> None:
    found = diagnose(raw("LookupError: no such thing"))
    assert found is not None
    assert found.cause == "unknown"
    assert "LookupError: no such thing" in found.why


def test_crash_that_no_rule_knows() -> None:
    found = diagnose(broke("IndexError: list index out of range", [*READY, *CLIENT_ERROR]))
    assert found is not None
    assert (found.cause, found.phase) == ("engine-crashed", Phase.READY)
    assert "IndexError: list index out of range" in found.why
    assert "ChatCompletionRequest" not in text_of(found)


def test_only_the_wrapper_is_left() -> None:
    quoted = (
        CORE
        + "RuntimeError: Worker failed with error 'head size 7', please check the stack trace above for the root cause"
    )
    found = diagnose([*BANNER, *READY, CORE + "EngineCore encountered a fatal error.", quoted])
    assert found is not None
    assert found.cause == "engine-crashed"
    assert "head size 7" in found.why


def test_engine_dead_while_http_answers() -> None:
    found = diagnose(broke("IndexError: list index out of range", READY), alive=True)
    assert found is not None
    assert found.cause == "engine-crashed"


def test_an_api_server_that_fails_late_is_not_a_stop() -> None:
    """Its clean-up makes the engine print that it was told to stop, before the traceback comes."""
    cleanup = [API + "[shutdown] MPClient: start timeout=0s"]
    cleanup += [
        "(EngineCore pid=12) INFO 02-03 10:02:00 [core.py:1] [shutdown] EngineCore: trigger received signal=SIGTERM"
    ]
    found = diagnose(
        [*BANNER, *COMPILED, *cleanup, *raw("ValueError: The supplied chat template (/t.jinja) doesn't exist")[3:]]
    )
    assert found is not None
    assert found.cause == "bad-value"
    assert "/t.jinja" in found.why


def test_prompts_never_reach_the_user() -> None:
    dump = CORE + "Dumping input data for V1 LLM engine (v0.30.1) with config: prompt_token_ids=[5, 6], the secret"
    lines = broke("IndexError: boom", [*READY, dump])
    found = diagnose([*lines, dump])
    assert found is not None
    assert "secret" not in text_of(found)
    received = (
        API + "Received request cmpl-1: prompt: 'ValueError: No available memory for the cache blocks', params: x"
    )
    assert cause([*BANNER, *READY, received], alive=True) is None


def test_keys_never_reach_the_user() -> None:
    found = diagnose(
        ["vllm: error: unrecognized arguments: --api-kee=1 --api-key hush-hush --hf-token=hf_abcdefgh1234"]
    )
    assert found is not None
    assert "hush-hush" not in text_of(found)
    assert "hf_abcdefgh1234" not in text_of(found)
    assert "--api-kee" in found.what


def test_a_log_of_a_million_characters_in_one_line() -> None:
    found = diagnose([*BANNER, *LOADED, RANK0 + "x" * 1_000_000, RANK0 + "ValueError: " + "y " * 500_000], exit_code=1)
    assert found is not None
    assert all(len(line) <= EVIDENCE_LIMIT for line in found.evidence)


_PIECES = st.sampled_from(
    [
        line
        for name in ("diagnose/oom-graph-capture", "diagnose/illegal-address-running", "real/model-not-found")
        for line in read_log(f"{name}.log")
    ]
    + [*STOP, BLOCKED, SERVED, NCCL]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(_PIECES, st.text(max_size=80)), max_size=60),
    st.booleans(),
    st.floats(min_value=0, max_value=1e6),
    st.one_of(st.none(), st.integers(min_value=-70, max_value=300)),
)
def test_any_text_gets_a_bounded_answer(lines: list[str], alive: bool, silent_s: float, exit_code: int | None) -> None:
    found = diagnose(lines, alive=alive, silent_s=silent_s, exit_code=exit_code)
    if found is not None:
        assert len(text_of(found)) < 6000
        assert len(found.evidence) <= 6
        assert "prompt_token_ids" not in text_of(found)


def test_a_pinned_cache_is_what_is_made_smaller_and_the_line_is_said_once() -> None:
    args = "non-default args: {'model_tag': 'm', 'kv_cache_memory_bytes': '2.5g', 'gpu_memory_utilization': 0.92}"
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB."
    lines = [
        f"(APIServer pid=1) INFO 11-29 20:28:42 [utils.py:286] {args}",
        "(Worker_TP0 pid=2) ERROR 11-29 20:28:43 [multiproc_executor.py:1063] WorkerProc hit an exception.",
        f"(Worker_TP0 pid=2) ERROR 11-29 20:28:43 [multiproc_executor.py:1063] {oom}",
    ]
    found = diagnose(lines, exit_code=1)
    assert found is not None
    assert "set --kv-cache-memory-bytes 2231564544 (now 2500000000: 256 MiB less for the KV cache" in found.fix
    assert "more;" not in found.fix
    assert "`args: {kv-cache-memory-bytes: 2231564544}`" in found.fix
    assert "set --gpu-memory-utilization" not in found.fix
    assert str(failure("p", ServerStatus(State.FAILED, diagnosis=found))).count(oom) == 1


def test_a_pinned_cache_far_too_large_gets_a_size_that_fits() -> None:
    oom = (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 536.00 MiB. GPU 0 has a total capacity of 15.48 "
        "GiB of which 128.00 MiB is free."
    )
    lines = [
        "(APIServer pid=1) INFO 11-29 20:28:42 [utils.py:286] non-default args: {'kv_cache_memory_bytes': 9000000000}",
        "(Worker_TP0 pid=2) INFO 11-29 20:28:42 [x.py:1] Model loading took 11.62 GiB memory and 60.000000 seconds",
        "(Worker_TP0 pid=2) ERROR 11-29 20:28:43 [multiproc_executor.py:1063] WorkerProc hit an exception.",
        f"(Worker_TP0 pid=2) ERROR 11-29 20:28:43 [multiproc_executor.py:1063] {oom}",
    ]
    found = diagnose(lines, exit_code=1)
    assert found is not None
    assert "set --kv-cache-memory-bytes 2684354560 (now 9000000000, and beside 11.62 GiB of weights about" in found.fix
    assert "`--set kv-cache-memory-bytes=2684354560`" in found.fix


@pytest.mark.parametrize(
    ("frame", "pinned", "cache"),
    [
        ("_allocate_kv_cache_tensors", "'kv_cache_memory_bytes': 2500000000", True),
        ("_allocate_kv_cache_tensors", "'gpu_memory_utilization': 0.95", True),
        ("run_engine_core", "'kv_cache_memory_bytes': 9000000000", True),
        ("run_engine_core", "'kv_cache_memory_bytes': 2500000000", False),
        ("profile_run", "'kv_cache_memory_bytes': 9000000000", False),
        ("capture_model", "'kv_cache_memory_bytes': 9000000000", False),
    ],
)
def test_where_the_cache_itself_finds_no_room_nothing_else_is_to_be_made_smaller(
    frame: str, pinned: str, cache: bool
) -> None:
    stamp = "(Worker_TP0 pid=2) ERROR 11-29 20:28:43 [multiproc_executor.py:1063]"
    lines = [
        "(APIServer pid=1) INFO 11-29 20:28:42 [utils.py:286] non-default args: {'model_tag': 'm', " + pinned + "}",
        "(Worker_TP0 pid=2) INFO 11-29 20:28:42 [x.py:1] Model loading took 11.62 GiB memory and 60.000000 seconds",
        "(Worker_TP0 pid=2) INFO 11-29 20:28:42 [monitor.py:34] torch.compile takes 40.00 s in total",
        f"{stamp} WorkerProc hit an exception.",
        f'{stamp}   File "/vllm/v1/worker/gpu_model_runner.py", line 6512, in {frame}',
        f"{stamp} torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 536.00 MiB. GPU 0 has a total capacity "
        "of 15.48 GiB of which 128.00 MiB is free.",
    ]
    found = diagnose(lines, exit_code=1)
    assert found is not None
    assert found.cause == "oom"
    assert (found.phase is Phase.KV_CACHE) is cache
    assert (found.fix.startswith(("set --kv-cache-memory-bytes", "set --gpu-memory-utilization"))) is (
        cache or frame == "capture_model"
    )
    assert ("max-num-batched-tokens" in found.fix) is (not cache and frame != "capture_model")


def test_a_fix_with_a_value_names_the_key_of_a_preset_too() -> None:
    fix = "set --max-num-batched-tokens 1024 (now 2048); or set --gpu-memory-utilization 0.9 (now 0.91)"
    assert as_keys(fix) == (
        ". In the preset: `args: {max-num-batched-tokens: 1024}` or `args: {gpu-memory-utilization: 0.9}`; "
        "for one start: `--set max-num-batched-tokens=1024`"
    )
    assert as_keys("set --max-num-batched-tokens to 1600 or more").endswith("`--set max-num-batched-tokens=1600`")
    assert as_keys("set --master-port or VLLM_PORT to a free port; or lower --max-num-seqs") == ""
