"""Facts, phase and progress out of a growing log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.server.facts import StartupFacts
from console.server.lines import EVIDENCE_LIMIT, evidence, parse
from console.server.startup import StartupReader, read_startup
from console.server.status import Phase
from tests.unit.log_cases import VARIANTS, read_log

ORDER = list(Phase)


def fed(*lines: str) -> StartupReader:
    return read_startup(lines)


def progress(*lines: str) -> list[tuple[Phase, str | None]]:
    """Phase and detail after each line."""
    reader = StartupReader()
    seen = []
    for line in lines:
        reader.feed([line])
        seen.append((reader.phase, reader.detail))
    return seen


def test_facts_of_the_real_mtp_server() -> None:
    facts = read_startup(read_log("real/tp2-mtp-ok.log")).facts
    assert (facts.version, facts.model, facts.served_name) == ("0.32.0", "/models/tiny-hybrid", "tiny")
    assert facts.architecture == "Qwen3NextForCausalLM"
    assert (facts.tensor_parallel, facts.pipeline_parallel, facts.distributed_backend) == (2, 1, "gloo")
    assert (facts.chunk_budget, facts.max_num_scheduled_tokens, facts.block_tokens) == (1024, 1024, 256)
    assert (facts.prefix_caching, facts.mamba_padding) == (False, 0.8551)
    assert (facts.speculative_method, facts.speculative_tokens) == ("mtp", 2)
    assert (facts.kv_tokens, facts.concurrency, facts.concurrency_length) == (1_335_418, 40.75, 32_768)
    assert facts.kv_tokens_usable == 1_335_296
    assert (facts.available_kv_gib, facts.kv_pinned, facts.init_seconds) == (1.0, True, 3.21)
    assert (facts.address, facts.startup_complete) == ("http://127.0.0.1:8100", True)
    assert (facts.kernels, facts.weights_gib, facts.compile_seconds) == ((), None, None)


def test_facts_of_the_real_prefix_cache_server() -> None:
    facts = read_startup(read_log("real/tp2-prefix-cache-ok.log")).facts
    assert (facts.prefix_caching, facts.mamba_mode, facts.speculative_method) == (True, "align", None)
    assert (facts.gdn_kernel, facts.mamba_padding) == ("CPU", 0.9104)


@pytest.mark.parametrize("variant", [name for name in VARIANTS if name not in ("one-rank",)])
def test_facts_do_not_hang_on_the_prefix(variant: str) -> None:
    lines = VARIANTS[variant](read_log("diagnose/oom-graph-capture.log"))
    reader = read_startup(lines)
    facts = reader.facts
    assert reader.phase is Phase.GRAPH_CAPTURE
    assert reader.detail == "graphs 1/7 (mixed prefill-decode, PIECEWISE)"
    assert facts.kernels == ("FlashInferCutlassNvFp4LinearKernel",)
    assert (facts.attention_backend, facts.gdn_kernel) == ("FLASH_ATTN", "Triton/FLA")
    assert (facts.weights_gib, facts.weights_seconds, facts.compile_seconds) == (11.62, 24.41, 149.31)
    assert (facts.available_kv_gib, facts.kv_tokens, facts.concurrency) == (2.36, 110_400, 1.08)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        ("INFO 01-02 03:04:05 api_server.py:207] vLLM API server version 0.8.5", "version", "0.8.5"),
        ("Initializing a V1 LLM engine (v0.11.2) with config: model='acme/m', x", "version", "0.11.2"),
        ("Initializing a V1 LLM engine (v0.11.2) with config: model='acme/m', x", "model", "acme/m"),
        ("Loading weights took 3.5 s", "weights_seconds", 3.5),
        ("Model loading took 10.50 GiB and 12.1 seconds", "weights_gib", 10.5),
        ("Model loading took 10.5000 GB and 12.1 seconds", "weights_gib", 10.5),
        ("Using AttentionBackendEnum.FLASHINFER backend.", "attention_backend", "FLASHINFER"),
        ("Using Flash Attention backend on V1 engine.", "attention_backend", "Flash Attention"),
        ("Using FlashInfer GDN prefill kernel (requested=auto)", "gdn_kernel", "FlashInfer"),
        (
            "Custom allreduce is disabled because it's not supported on x",
            "custom_all_reduce_off",
            "because it's not supported on x",
        ),
        ("Chunked prefill is enabled with max_num_batched_tokens=8,192.", "chunk_budget", 8192),
        ("config: 'compile_ranges_endpoints': [2048], 'inductor_compile_config': {}", "chunk_budget", 2048),
        ("config: 'compile_ranges_endpoints': [512, 3202], 'x': 1", "chunk_budget", 3202),
        ("Asynchronous scheduling is disabled.", "async_scheduling", False),
        ("Asynchronous scheduling is enabled.", "async_scheduling", True),
        (
            "reserved 2.25 GiB memory for KV Cache as specified by kv_cache_memory_bytes config",
            "available_kv_gib",
            2.25,
        ),
        ("reserved 2.25 GiB memory for KV Cache as specified by kv_cache_memory_bytes config", "kv_pinned", True),
        ("GPU KV cache size: 123,456 tokens", "kv_tokens", 123_456),
        ("Maximum concurrency for 16,000 tokens per request: 10.17x", "concurrency", 10.17),
        ("Graph capturing finished in 5 secs, took -0.35 GiB", "graphs_gib", -0.35),
        ("Graph capturing finished in 1 sec", "graphs_seconds", 1.0),
        ("Estimated CUDA graph memory: -0.12 GiB total", "graphs_estimated_gib", -0.12),
        ("init engine took 12.5 s", "init_seconds", 12.5),
        ("Starting vLLM API server 0 on http://0.0.0.0:9000", "address", "http://0.0.0.0:9000"),
        ("Uvicorn running on http://0.0.0.0:9000 (Press CTRL+C to quit)", "address", "http://0.0.0.0:9000"),
        ("torch.compile takes 39.60 s in total", "compile_seconds", 39.6),
        (
            "Directly load the compiled graph(s) for compile range (1, 2048) from the cache, took 1.2 s",
            "compile_cached",
            True,
        ),
        ("Compiling a graph for compile range (1, 2048) takes 20.5 s", "compile_cached", False),
        ("Mamba cache mode is set to 'all' for X", "mamba_mode", "all"),
        ("with config: model='m', enforce_eager=True, kv_cache_dtype=fp8_e4m3, seed=0", "enforce_eager", True),
        ("with config: model='m', enforce_eager=True, kv_cache_dtype=fp8_e4m3, seed=0", "kv_cache_dtype", "fp8_e4m3"),
    ],
)
def test_wordings(line: str, field: str, value: object) -> None:
    facts = fed(
        f"(Worker_TP0 pid=9) INFO 01-02 03:04:05 [x.py:1] {line} and whatever a newer version says behind it"
    ).facts
    assert getattr(facts, field) == value or str(getattr(facts, field)).startswith(str(value))
    assert facts.line(field)


def test_ranks_and_drafter_are_summed_and_compared_rightly() -> None:
    reader = fed(
        "(Worker_TP0 pid=1) INFO torch.compile took 30.0 s in total",
        "(Worker_TP1 pid=2) INFO torch.compile took 31.0 s in total",
        "(Worker_TP0 pid=1) INFO torch.compile took 4.0 s in total",
        "(Worker_TP1 pid=2) INFO torch.compile took 5.0 s in total",
        "(Worker_TP0 pid=1) INFO Available KV cache memory: 2.5 GiB",
        "(Worker_TP1 pid=2) INFO Available KV cache memory: 2.4 GiB",
    )
    assert reader.facts.compile_seconds == 36.0
    assert reader.facts.available_kv_gib == 2.4


def test_mixed_kernels_are_all_kept() -> None:
    facts = fed("Using A for NVFP4 GEMM", "Using MarlinX for NVFP4 GEMM", "Using A for NVFP4 GEMM").facts
    assert facts.kernels == ("A", "MarlinX")


def test_progress() -> None:
    bar = "Loading safetensors checkpoint shards: "
    capture = "Capturing CUDA graphs (decode, FULL):  55%|#####5    | 5/9 [00:01<00:01,  4.4it/s]"
    assert progress(
        f"{bar}  0% Completed | 0/4\r{bar} 62% Completed | 2/4",
        "torch.compile took 40.8 s in total",
        "Cache the graph of compile range (1, 2) for later use",
        "Available KV cache memory: 2 GiB",
        capture,
        "init engine (profile, create kv cache, warmup model) took 3 s",
        "INFO:     Application startup complete.",
        "[shutdown] API server: shutdown triggered",
    ) == [
        (Phase.LOAD, "weights 62 %"),
        (Phase.COMPILE, "torch.compile 41 s"),
        (Phase.COMPILE, "torch.compile 41 s cold"),
        (Phase.KV_CACHE, None),
        (Phase.GRAPH_CAPTURE, "graphs 5/9 (decode, FULL)"),
        (Phase.WARM_UP, None),
        (Phase.READY, None),
        (Phase.STOPPING, None),
    ]


def test_download_is_a_phase_and_the_start_goes_on_behind_it() -> None:
    assert progress(
        "Fetching 12 files:  25%|##5       | 3/12 [00:10<00:30,  3.3s/it]",
        "model-00001-of-00005.safetensors:  45%|####5     | 2.1G/4.7G [00:20<00:25, 104MB/s]",
        "Initializing a V1 LLM engine (v0.32.0) with config: model='m'",
        "Starting to load model m...",
    ) == [
        (Phase.DOWNLOAD, "12 files 25 %"),
        (Phase.DOWNLOAD, "model-00001-of-00005.safetensors 45 %"),
        (Phase.START, None),
        (Phase.LOAD, None),
    ]


def test_a_second_start_in_the_same_file_begins_anew() -> None:
    reader = read_startup([*read_log("real/tp2-mtp-ok.log"), *read_log("diagnose/nccl-silence.log")])
    assert reader.phase is Phase.START
    assert (reader.facts.version, reader.facts.speculative_method, reader.facts.startup_complete) == (
        "0.28.0",
        None,
        False,
    )


def test_requests_and_dumps_are_no_facts() -> None:
    facts = fed(
        "Received request a: prompt: 'Model loading took 99 GiB memory and 1 seconds'",
        "Dumping input data for V1 LLM engine (v9.9.9) with config: model='x'",
    ).facts
    assert facts == StartupFacts()


def test_keys_are_masked_in_the_arguments() -> None:
    facts = fed("non-default args: {'model_tag': 'm', 'api_key': ['hush-hush'], 'port': 8000}").facts
    assert facts.args is not None
    assert "hush-hush" not in facts.args
    assert "8000" in facts.args
    assert all("hush-hush" not in line for _, line in facts.evidence)


@pytest.mark.parametrize("name", ["real/tp2-mtp-ok", "real/mtp-prefix-crash", "diagnose/illegal-address-running"])
def test_phase_never_falls_back(name: str) -> None:
    reader = StartupReader()
    seen: list[Phase] = []
    for line in read_log(f"{name}.log"):
        reader.feed([line])
        seen.append(reader.phase)
    assert seen == sorted(seen, key=ORDER.index)


@pytest.mark.parametrize("name", ["real/tp2-mtp-ok", "diagnose/kernel-fallback"])
def test_evidence_is_bounded(name: str) -> None:
    facts = read_startup(read_log(f"{name}.log")).facts
    assert facts.evidence
    assert all(len(line) <= EVIDENCE_LIMIT for _, line in facts.evidence)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(st.text(max_size=60), st.sampled_from(read_log("diagnose/oom-graph-capture.log"))), max_size=40)
)
def test_any_text_is_read(lines: Sequence[str]) -> None:
    reader = read_startup(lines)
    assert isinstance(reader.phase, Phase)


@pytest.mark.parametrize(
    ("line", "process", "level", "text"),
    [
        ("(EngineCore pid=7) ERROR 01-31 12:00:00 [core.py:1] boom", "EngineCore", "ERROR", "boom"),
        ("(VllmWorker rank=1 pid=7) INFO 01-31 12:00:00 [x.py:1]   File", "VllmWorker", "INFO", "  File"),
        ("(Worker pid=7) (Worker_TP1 pid=7) boom", "Worker_TP1", None, "boom"),
        ("(RayWorkerWrapper pid=7, ip=10.0.0.2) boom", "RayWorkerWrapper", None, "boom"),
        ("INFO 02-02 17:59:18 llm_engine.py:232] hello", None, "INFO", "hello"),
        (
            "\x1b[1;36m(EngineCore_DP0 pid=7)\x1b[0;0m ERROR 01-04 04:31:09 [core.py:844] boom",
            "EngineCore_DP0",
            "ERROR",
            "boom",
        ),
        ("vllm_server  | (APIServer pid=302)     next(self.gen)", "APIServer", None, "    next(self.gen)"),
        ("ERROR:    [Errno 98] taken", None, "ERROR", "[Errno 98] taken"),
        ("[rank0]: ValueError: x", "rank0", None, "ValueError: x"),
        ("", None, None, ""),
    ],
)
def test_parse(line: str, process: str | None, level: str | None, text: str) -> None:
    parsed = parse(line)
    assert (parsed.process, parsed.level, parsed.text) == (process, level, text)


def test_evidence_keeps_what_matters_in_sight() -> None:
    shown = evidence("a" * 1000 + " the point " + "b" * 1000, "the point")
    assert "the point" in shown
    assert len(shown) <= EVIDENCE_LIMIT
