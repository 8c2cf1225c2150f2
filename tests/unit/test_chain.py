"""The execution chain: always the same links, each with a verdict that its evidence carries."""

from __future__ import annotations

from typing import Any

import pytest

from console.gpu.sample import CardPair, GpuReport
from console.metrics.reading import CacheFacts
from console.metrics.vllm import Counters
from console.server.chain import Link, chain
from console.server.facts import StartupFacts
from console.server.startup import read_startup
from tests.unit.log_cases import Case, load_cases, read_log

LINKS = (
    "model",
    "weights",
    "nvfp4 kernel",
    "parallel",
    "all-reduce",
    "attention",
    "gdn",
    "compile",
    "cuda graphs",
    "kv cache",
    "scheduler",
    "prefix caching",
    "mtp",
)
MARLIN = "Using MarlinNvFp4LinearKernel for NVFP4 GEMM"
NATIVE = "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM"
WARNING = (
    "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads."
)


def link(name: str, facts: StartupFacts, counters: Counters | None = None) -> Link:
    return next(found for found in chain(facts, counters) if found.link == name)


def said(*lines: str) -> StartupFacts:
    return read_startup(lines).facts


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case.name)
def test_links_and_expected_verdicts(case: Case) -> None:
    found = chain(read_startup(case.lines).facts, None)
    assert tuple(one.link for one in found) == LINKS
    for name, verdict in case.expected.get("chain", {}).items():
        assert next(one.verdict for one in found if one.link == name) == verdict


def test_nothing_known_is_unknown() -> None:
    assert {one.verdict for one in chain(StartupFacts(), None)} == {"unknown"}


@pytest.mark.parametrize("lines", [[MARLIN], [WARNING], [NATIVE, WARNING]], ids=["kernel", "warning", "mixed"])
def test_weight_only_fallback_is_flagged_without_its_wrong_claim(lines: list[str]) -> None:
    found = link("nvfp4 kernel", said(*lines))
    assert found.verdict == "look"
    assert "Marlin" in found.value
    assert "native support" not in f"{found.value} {found.evidence} {found.fix}"
    assert found.fix


def test_recorded_fallback_says_nothing_of_the_card() -> None:
    for found in chain(read_startup(read_log("diagnose/kernel-fallback.log")).facts, None):
        assert "does not have native support" not in f"{found.value} {found.evidence} {found.fix}"


def test_native_kernel_is_fine() -> None:
    found = link("nvfp4 kernel", said("Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM"))
    assert (found.verdict, found.value) == ("ok", "FlashInferCutlassNvFp4LinearKernel")
    assert "NVFP4 GEMM" in found.evidence


def test_custom_all_reduce_that_says_nothing_may_be_on() -> None:
    found = link("all-reduce", said("tensor_parallel_size=2, x", "vLLM is using nccl==2.28.9"))
    assert found.verdict == "look"
    assert "disable-custom-all-reduce" in found.fix
    off = said("tensor_parallel_size=2, disable_custom_all_reduce=True, x", "vLLM is using nccl==2.28.9")
    assert link("all-reduce", off).verdict == "ok"
    assert link("all-reduce", said("tensor_parallel_size=1, x")).verdict == "ok"


def test_cpu_server_is_told_honestly() -> None:
    facts = read_startup(read_log("real/tp2-prefix-cache-ok.log")).facts
    verdicts = {found.link: found.verdict for found in chain(facts, None)}
    assert verdicts["nvfp4 kernel"] == "ok"
    assert verdicts["attention"] == "ok"
    assert verdicts["compile"] == "unknown"
    assert verdicts["cuda graphs"] == "ok"
    assert link("prefix caching", facts).value == "on, align, block 256 tokens"


def test_the_cards_say_whether_the_all_reduce_can_use_p2p() -> None:
    lines = ("tensor_parallel_size=2", "vLLM is using nccl==2.27.5")

    def all_reduce(**pair: Any) -> Link:
        report = GpuReport(0.0, pairs=(CardPair(0, 1, **pair),))
        return next(one for one in chain(said(*lines), None, report) if one.link == "all-reduce")

    without = all_reduce(p2p=False, p2p_status="chipset not supported")
    assert without.verdict == "look"
    assert without.value.endswith("P2P no (chipset not supported)")
    assert "--disable-custom-all-reduce" in without.fix
    assert all_reduce(p2p=True, nvlink=True).verdict == "ok"
    assert all_reduce().value == link("all-reduce", said(*lines)).value


def test_the_page_tells_the_size_of_the_cache_with_more_digits_than_the_log() -> None:
    facts = said("GPU KV cache size: 182,248 tokens, Maximum concurrency for 32,768 tokens per request: 3.75x")
    page = Counters(at=0.0, facts=CacheFacts(max_concurrency=3.7501))
    found = link("kv cache", facts, page)
    assert "122,883 tokens" in found.value
    assert "182,248 tokens are wrong" in found.value


def test_eager_is_worth_a_look() -> None:
    facts = said("non-default args: {'enforce_eager': True}")
    assert (link("compile", facts).verdict, link("cuda graphs", facts).verdict) == ("look", "look")


def test_negative_graph_memory_is_not_shown() -> None:
    facts = said(
        "Capturing CUDA graphs (decode, FULL): 100%|##| 9/9", "Graph capturing finished in 5 secs, took -0.35 GiB"
    )
    found = link("cuda graphs", facts)
    assert found.verdict == "ok"
    assert "GiB" not in found.value


def test_kv_trusts_concurrency_over_the_printed_tokens() -> None:
    line = "GPU KV cache size: 999,999 tokens, Maximum concurrency for 100,000 tokens per request: 1.50x"
    assert "150,000 tokens" in link("kv cache", said(line)).value
    short = said("GPU KV cache size: 9 tokens, Maximum concurrency for 100,000 tokens per request: 0.90x")
    assert link("kv cache", short).verdict == "look"


def test_chunks_in_whole_blocks() -> None:
    align = ("Mamba cache mode is set to 'align'", "Setting attention block size to 1600 tokens")
    whole = link("scheduler", said("Chunked prefill is enabled with max_num_batched_tokens=2048.", *align))
    assert whole.verdict == "ok"
    assert "run in 1600" in whole.value
    small = link("scheduler", said("Chunked prefill is enabled with max_num_batched_tokens=1024.", *align))
    assert small.verdict == "look"
    assert "1600" in small.fix


def test_metrics_fill_what_the_log_left_out() -> None:
    page = CacheFacts(
        block_tokens=256, prefix_caching=True, mamba_mode="align", kv_tokens=5000, max_concurrency=2.0, dtype="fp8"
    )
    counters = Counters(at=0.0, facts=page)
    assert link("prefix caching", StartupFacts(), counters).value == "on, align, block 256 tokens"
    assert "5,000 tokens" in link("kv cache", StartupFacts(), counters).value


def test_mtp_is_proved_by_drafts() -> None:
    facts = read_startup(read_log("real/tp2-mtp-ok.log")).facts
    assert link("mtp", facts).verdict == "unknown"
    assert link("mtp", facts, Counters(at=0.0, spec_drafts=0, generation_tokens=0)).verdict == "unknown"
    assert link("mtp", facts, Counters(at=0.0, spec_drafts=120, generation_tokens=300)).verdict == "ok"
    assert link("mtp", facts, Counters(at=0.0, spec_drafts=0, generation_tokens=300)).verdict == "look"
    assert link("mtp", facts, Counters(at=0.0, generation_tokens=300)).verdict == "look"
    off = read_startup(read_log("real/tp2-prefix-cache-ok.log")).facts
    assert (link("mtp", off).value, link("mtp", off).verdict) == ("off", "ok")


def test_mtp_of_a_server_without_a_log_is_told_by_its_page() -> None:
    """Of a server that is not ours there is no log; its series of drafts exist with speculation only."""
    told = [
        link("mtp", StartupFacts(), Counters(at=0.0, spec_drafts=drafts, generation_tokens=generated))
        for drafts, generated in ((5, 9), (0, 9), (None, 9), (None, None))
    ]
    assert [(one.value, one.verdict) for one in told] == [
        ("on, 5 drafts seen", "ok"),
        ("on, not yet proved: no draft seen", "unknown"),
        ("off", "ok"),
        ("n/a", "unknown"),
    ]
    assert all(one.evidence for one in told[:3])
