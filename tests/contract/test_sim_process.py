"""The stand-in's life as a process: start, refusal, faults, end."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import pytest

from tests.contract.sim_process import DEADLINE_S, MODEL, ready, stand_in

ASK = {"model": "q", "messages": [{"role": "user", "content": "hello"}], "stream": True, "max_tokens": 20}
MTP = ("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}')

# What a reader of vLLM's log looks for in a start on CUDA, in its order.
PHASES = (
    r"version 0\.32\.0 SIMULATED",
    r"non-default args: \{",
    r"Chunked prefill is enabled with max_num_batched_tokens=3202",
    r"Initializing a V1 LLM engine \(v0\.32\.0\).*'compile_ranges_endpoints': \[3202\]",
    r"vLLM is using nccl==\S+",
    r"Using FLASH_ATTN attention backend",
    r"Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM",
    r"Using (.+?) GDN prefill kernel",
    r"\rLoading safetensors checkpoint shards: +100%",
    r"Loading weights took ([\d.]+) s",
    r"Model loading took ([\d.]+) GiB memory and ([\d.]+) s",
    r"Setting attention block size to 1600 tokens",
    r"Using cache directory: \S+torch_compile_cache/[0-9a-f]+",
    r"Directly load",
    r"torch\.compile took ([\d.]+) s in total",
    r"Available KV cache memory: ([\d.]+) GiB",
    r"GPU KV cache size: ([\d,]+) tokens, Maximum concurrency for 102,400 tokens per request: ([\d.]+)x",
    r"\rCapturing CUDA graphs \(([^)]*)\): +100%",
    r"Graph capturing finished in (\d+) secs",
    r"init engine \(.*?\) took ([\d.]+) s",
    r"Starting vLLM server on http://127\.0\.0\.1:\d+",
    r"Application startup complete",
)


def test_a_start_is_written_phase_by_phase_and_a_sigterm_ends_it_in_order(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--max-num-batched-tokens", "3202") as stand:
        ready(stand)
        log, at = stand.text(), 0
        for pattern in PHASES:
            found = re.compile(pattern).search(log, at)
            assert found, f"{pattern} does not follow:\n{log[at:]}"
            at = found.start()
        assert f"(EngineCore pid={stand.process.pid})" in log
        stand.process.send_signal(signal.SIGTERM)
        assert stand.wait() == 0
        assert "[shutdown] API server: shutdown triggered" in stand.text()
        assert "Application shutdown complete" in stand.text()


def test_the_port_answers_only_when_the_start_is_over(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_START_S="20") as stand:
        stand.until("Initializing a V1 LLM engine")
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{stand.url}/health", trust_env=False)
        stand.process.send_signal(signal.SIGTERM)
        assert stand.wait() == 0
        assert "Traceback" not in stand.text()


def test_a_running_stream_does_not_hold_a_stop_up(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_SPEED="1") as stand:
        ready(stand)
        with httpx.stream(
            "POST", f"{stand.url}/v1/chat/completions", json=ASK | {"max_tokens": 5000, "ignore_eos": True}, timeout=30
        ) as answer:
            lines = answer.iter_lines()
            next(lines)
            stand.process.send_signal(signal.SIGTERM)
            assert stand.wait() == 0


def test_a_taken_port_ends_the_start(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with stand_in(tmp_path, port=taken.getsockname()[1]) as stand:
            assert stand.wait() == 1
            assert "OSError: [Errno 98] Address already in use" in stand.text()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ((MODEL, "--port", "eight"), "argument --port: invalid int value: 'eight'"),
        ((MODEL, "--speculative-config", "{"), "argument --speculative-config"),
        ((), "the following arguments are required"),
        ((MODEL, "--nonsense-flag", "3", "--port", "0"), "vllm: error: unrecognized arguments: --nonsense-flag 3\n"),
        ((MODEL, "--no-nonsense=1"), "unrecognized arguments: --no-nonsense=1"),
        ((MODEL, "--max-num", "1"), "unrecognized arguments: --max-num 1"),
    ],
)
def test_a_bad_flag_ends_as_argparse_ends(flags: tuple[str, ...], says: str) -> None:
    words = [sys.executable, "-P", "-m", "console.sim", *flags]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert ended.returncode == 2
    assert "vllm: error: " in ended.stderr
    assert says in ended.stderr


@pytest.mark.parametrize("words", [("--help",), ("m", "--help"), ("m", "-h"), ("--help=all",)])
def test_help_is_shown_and_nothing_starts(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-P", "-m", "console", "sim", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: qwen-console sim MODEL" in done.stdout
    assert "QWEN_CONSOLE_SIM_FAULT" in done.stdout


def test_a_key_guards_what_vllm_guards(tmp_path: Path) -> None:
    with stand_in(tmp_path, VLLM_API_KEY="sesame") as stand:
        ready(stand)
        with httpx.Client(base_url=stand.url, trust_env=False) as client:
            assert client.get("/v1/models").status_code == 401
            assert client.get("/v1/models", headers={"authorization": "Bearer wrong"}).status_code == 401
            assert client.get("/v1/models", headers={"authorization": "Bearer sesame"}).status_code == 200
            for path in ("/health", "/metrics", "/version"):
                assert client.get(path).status_code == 200
        assert "sesame" not in stand.text()


@pytest.mark.parametrize(("fault", "flags"), [("crash-at-first-request", ()), ("crash-at-first-request-with-mtp", MTP)])
def test_a_crash_tells_the_client_then_the_log_then_ends(tmp_path: Path, fault: str, flags: tuple[str, ...]) -> None:
    with stand_in(tmp_path, *flags, QWEN_CONSOLE_SIM_FAULT=fault) as stand:
        ready(stand)
        answer = httpx.post(f"{stand.url}/v1/chat/completions", json=ASK, trust_env=False)
        assert answer.status_code == 200
        error, done = (event.removeprefix("data: ") for event in answer.text.strip().split("\n\n"))
        assert json.loads(error)["error"]["code"] == 500
        assert done == "[DONE]"
        assert httpx.get(f"{stand.url}/health", trust_env=False).status_code == 503
        # Like the real server, it ends by the ordinary way: the exit code tells nothing.
        assert stand.wait() == 0
        log = stand.text()
        assert log.index("TypeError: 'function' object is not subscriptable") < log.index("EngineDeadError")


def test_the_first_real_prefill_can_run_out_of_memory(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="oom-at-first-prefill") as stand:
        ready(stand)
        url = f"{stand.url}/v1/completions"
        assert httpx.post(url, json={"prompt": "short"}, trust_env=False).status_code == 200
        assert httpx.post(url, json={"prompt": " word" * 5000}, trust_env=False).status_code == 500
        assert stand.wait() == 0
        assert "torch.OutOfMemoryError: CUDA out of memory" in stand.text()


def test_without_speculation_its_crash_stays_away(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="crash-at-first-request-with-mtp") as stand:
        ready(stand)
        answer = httpx.post(f"{stand.url}/v1/chat/completions", json=ASK, trust_env=False)
        assert '"finish_reason":"length"' in answer.text


@pytest.mark.parametrize(
    ("fault", "says", "not_yet"),
    [
        ("oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 136.00 MiB", "Graph capturing finished"),
        ("kv-too-small", "To serve at least one request with the models's max seq len (102400)", "GPU KV cache size"),
        ("vram-busy", "Free memory on device cuda:1", "Starting to load model"),
        ("too-many-seqs", "exceeds available Mamba cache blocks", "GPU KV cache size"),
        ("nvcc-missing", "Could not find nvcc", "torch.compile took"),
        ("compile-cache", "torch_compile_cache and try again", "torch.compile took"),
    ],
)
def test_a_failed_start_has_its_cause_before_the_wrapper(tmp_path: Path, fault: str, says: str, not_yet: str) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT=fault) as stand:
        assert stand.wait() == 1
        log = stand.text()
        assert log.index(says) < log.index("Engine core initialization failed. See root cause above.")
        assert not_yet not in log


def test_a_cache_that_cannot_hold_one_request_fails_without_a_fault(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--kv-cache-memory-bytes", "1000000000") as stand:
        assert stand.wait() == 1
        assert "(0.93 GiB). Based on the available memory, the estimated maximum model length is 49" in stand.text()


def test_a_cache_that_its_card_cannot_hold_beside_the_weights_fails_too(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--kv-cache-memory-bytes", "6G") as stand:
        assert stand.wait() == 1
        log = stand.text()
        # The cache is made tensor by tensor: it is the one after the last that fits which finds no room.
        assert "Tried to allocate 384.00 MiB. GPU 0 has a total capacity of 15.48 GiB of which 94.12 MiB is free" in log
        assert "in _allocate_kv_cache_tensors" in log
        assert "GPU KV cache size" not in log


def test_a_hang_at_nccl_stays_silent_and_still_minds_a_signal(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="hang-at-nccl") as stand:
        log = stand.until("vLLM is using nccl==")
        assert "nccl" in log.rstrip().splitlines()[-1]
        stand.process.send_signal(signal.SIGTERM)
        assert stand.wait() == 0


def test_a_first_sigterm_may_be_lost_in_the_start(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="lose-first-sigterm", QWEN_CONSOLE_SIM_START_S="2") as stand:
        stand.until("non-default args")
        stand.process.send_signal(signal.SIGTERM)
        ready(stand)
        stand.process.send_signal(signal.SIGTERM)
        assert stand.wait() == 0


def test_a_hung_engine_goes_on_answering_for_its_health(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="hang-at-first-request", QWEN_CONSOLE_SIM_SPEED="200") as stand:
        ready(stand)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{stand.url}/v1/chat/completions", json=ASK, trust_env=False, timeout=0.5)
        stand.until("No available shared memory broadcast block found in 60 seconds")
        assert httpx.get(f"{stand.url}/health", trust_env=False).status_code == 200


def test_with_a_shutdown_timeout_a_running_answer_is_finished(tmp_path: Path) -> None:
    with stand_in(tmp_path, "--shutdown-timeout", "30", QWEN_CONSOLE_SIM_SPEED="5") as stand:
        ready(stand)
        body = ASK | {"max_tokens": 100, "ignore_eos": True}
        with httpx.stream("POST", f"{stand.url}/v1/chat/completions", json=body, trust_env=False) as answer:
            lines = answer.iter_lines()
            next(lines)
            stand.process.send_signal(signal.SIGTERM)
            rest = [line for line in lines if line]
        assert rest[-1] == "data: [DONE]"
        assert '"finish_reason":"length"' in rest[-2]
        assert stand.wait() == 0
        assert "mode=drain timeout=30s" in stand.text()


def test_a_deaf_server_goes_on_after_a_sigterm(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_FAULT="ignore-sigterm") as stand:
        ready(stand)
        stand.process.send_signal(signal.SIGTERM)
        assert httpx.get(f"{stand.url}/health", trust_env=False).status_code == 200
        assert stand.process.poll() is None


def test_sixteen_streams_at_once_are_all_served_and_counted(tmp_path: Path) -> None:
    with stand_in(tmp_path, QWEN_CONSOLE_SIM_SPEED="4") as stand:
        ready(stand)
        body = ASK | {"max_tokens": 60, "ignore_eos": True}
        answers: list[str] = []

        def ask() -> None:
            reply = httpx.post(f"{stand.url}/v1/chat/completions", json=body, trust_env=False, timeout=60)
            answers.append(reply.text)

        threads = [threading.Thread(target=ask) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == 16
        assert all(answer.endswith("data: [DONE]\n\n") for answer in answers)
        page = httpx.get(f"{stand.url}/metrics", trust_env=False).text
        assert 'generation_tokens_total{engine="0",model_name="q"} 960.0' in page
        assert 'inter_token_latency_seconds_count{engine="0",model_name="q"} 944.0' in page


def test_the_stand_in_starts_without_the_console(tmp_path: Path) -> None:
    program = "import sys, console.sim.serve; print(*sorted(name for name in sys.modules if 'console.' in name))"
    words = [sys.executable, "-P", "-c", program]
    ended = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, timeout=DEADLINE_S, check=True)
    assert all(name.startswith("console.sim") for name in ended.stdout.split())
