"""Rules about the engine itself: blocks and budgets that do not fit, caches that went bad, crashes, hangs."""

from __future__ import annotations

import re

from console.server.diagnosis.rule import Fault, Rule, Words, patterns
from console.server.diagnosis.story import Story
from console.server.status import Phase

P2P_FIX = (
    "set NCCL_P2P_DISABLE=1 in the preset's env and --disable-custom-all-reduce in its args (both are the usual need "
    "of GeForce pairs without peer access); NCCL_DEBUG=INFO shows where it stands"
)
_CACHE = re.compile(r"(?P<path>[~/]\S*?torch_compile_cache)")


def speculates_with_prefix_cache(story: Story) -> bool:
    """Is MTP on together with prefix caching, by the log's own configuration lines?"""
    return story.facts.speculative_method is not None and story.facts.prefix_caching is not False


def _chunk_below_block(fault: Fault) -> Words:
    block, budget = fault.group("block") or "?", fault.group("budget") or "?"
    return Words(
        f"The chunk budget of {budget} tokens is smaller than a cache block of {block} tokens.",
        f"With prefix caching this hybrid model prefills in whole blocks; --max-num-batched-tokens is {budget}, a "
        f"block has {block}. The log says: {fault.quote()}",
        f"set --max-num-batched-tokens to {block} or more (a little above a multiple of {block} leaves room for the "
        "streams that decode); or --no-enable-prefix-caching; vLLM 0.27 and later run with less",
    )


def _too_many_seqs(fault: Fault) -> Words:
    asked, there = fault.group("asked"), fault.group("there")
    return Words(
        f"--max-num-seqs {asked} is more than the {there} state blocks that fit beside the weights.",
        f"Each running request of this hybrid model holds one Mamba block. The log says: {fault.quote()}",
        f"set --max-num-seqs {there} or lower (one workstation rarely needs more than 8); or raise "
        "--gpu-memory-utilization",
    )


def _compile_cache(fault: Fault) -> Words:
    found = _CACHE.search(fault.record.text) or _CACHE.search(fault.story.facts.compile_cache or "")
    path = found["path"] if found else "~/.cache/vllm/torch_compile_cache"
    return Words(
        "The compile cache is damaged: every start will fail on it.",
        f"A compilation that failed or was cut off left a broken entry in {path}. The log says: {fault.quote()}",
        f"move it aside and start again (the next start compiles cold): mv {path} {path}.bad",
    )


def _illegal_access(fault: Fault) -> Words:
    facts = fault.story.facts
    ways = ["start with --no-async-scheduling"]
    if facts.speculative_method:
        n = f" (n is {facts.speculative_tokens}; 5 and more are known to crash)" if facts.speculative_tokens else ""
        ways.append(f"take away --speculative-config or lower num_speculative_tokens{n}")
    if speculates_with_prefix_cache(fault.story):
        ways.append("--no-enable-prefix-caching while speculating")
    both = " MTP with prefix caching and async scheduling is a known trigger." if len(ways) == 3 else ""
    return Words(
        "The engine crashed: a GPU kernel touched memory that is not its own.",
        f"The log says: {fault.quote()}.{both} The kernel log shows an Xid for it (`dmesg | grep -i xid`).",
        "; or ".join(ways),
    )


def _gpu_fault(fault: Fault) -> Words:
    return Words(
        "The engine crashed: a GPU reported an error.",
        f"The log says: {fault.quote()}",
        "look for an Xid in the kernel log (`dmesg | grep -i xid`); a lost card (Xid 79) needs a restart of the "
        "machine; otherwise start again, and once with CUDA_LAUNCH_BLOCKING=1 to find the kernel",
    )


def _align_copy(fault: Fault) -> Words:
    ways = "start with --no-enable-prefix-caching, or without --speculative-config"
    both = speculates_with_prefix_cache(fault.story)
    return Words(
        "The engine crashed at a request: MTP together with prefix caching does not work on this build."
        if both
        else "The engine crashed at a request: its prefix cache needs a kernel that this build does not have.",
        f"The log says: {fault.quote()}. The kernel that copies the hybrid model's state is written in Triton, which "
        "this build does not have.",
        ways,
    )


def _native_crash(fault: Fault) -> Words:
    return Words(
        "A process of the server crashed outside of Python.",
        f"The log says: {fault.quote()}",
        "a `Bus error` means that /dev/shm is too small; otherwise start again with --enforce-eager to see whether a "
        "compiled kernel does it, and check the kernel log (`dmesg`)",
    )


def _process_died(fault: Fault) -> Words:
    code = fault.group("code")
    killed = code in ("-9", "137")
    why = " It was killed (SIGKILL): by the kernel's OOM killer, or by somebody." if killed else ""
    return Words(
        "A process of the engine died" + (f" with exit code {code}." if code else "."),
        f"The log says: {fault.quote()}.{why}",
        "look for the OOM killer in the kernel log (`dmesg | grep -i -e oom -e killed`), free main memory or add swap; "
        "then start again",
    )


def _nccl(fault: Fault) -> Words:
    return Words(
        "NCCL failed: the cards could not talk to each other.",
        f"The log says: {fault.quote()}",
        f"{P2P_FIX}; check that /dev/shm is large enough and both cards are visible",
    )


def _rpc_timeout(fault: Fault) -> Words:
    return Words(
        "The engine hung: a worker did not answer any more.",
        f"The log says: {fault.quote()}",
        f"start again; if it comes back: {P2P_FIX}; or --no-async-scheduling",
    )


def _start_timeout(fault: Fault) -> Words:
    return Words(
        "vLLM gave up waiting for its engine to start.",
        f"It was in phase {fault.record.phase.value}. The log says: {fault.quote()}",
        "raise ready-timeout in the preset (VLLM_ENGINE_READY_TIMEOUT_S) if it was only slow: a cold start takes "
        f"minutes; if it stood still: {P2P_FIX}",
    )


ENGINE_RULES: tuple[Rule, ...] = (
    Rule(
        "chunk-below-block",
        "chunk-below-block",
        "0.12-0.22",
        patterns(
            r"block_size\b\D{0,3}\(?(?P<block>\d+)\)?\D{1,60}max_num_batched_tokens\D{0,3}\(?(?P<budget>\d+)",
            r"max_num_batched_tokens\D{0,3}\(?(?P<budget>\d+)\)?\D{1,80}block_size\D{0,3}\(?(?P<block>\d+)",
        ),
        _chunk_below_block,
    ),
    Rule(
        "too-many-seqs",
        "too-many-seqs",
        "0.15-0.32",
        patterns(
            r"max_num_seqs \((?P<asked>\d+)\) exceeds (?:the )?(?:available|number of).*?blocks \((?P<there>\d+)\)"
        ),
        _too_many_seqs,
    ),
    Rule(
        "compile-cache",
        "compile-cache",
        "0.9-0.32",
        patterns(r"vLLM failed to compile the model", r"corrupted compilation artifact"),
        _compile_cache,
        phase=Phase.COMPILE,
    ),
    Rule(
        "compile-cache-unreadable",
        "compile-cache",
        "0.9-0.32",
        patterns(
            r"(?:UnpicklingError|EOFError|JSONDecodeError|BadZipFile|zlib\.error)\b",
            r"Bytes object is corrupted|failed finding central directory",
        ),
        _compile_cache,
        phase=Phase.COMPILE,
        tier=1,
        needs=re.compile(
            r"vllm/compilation/\w+\.py|_inductor/\w+\.py|(?:open|file|path|load)\w*\W.*torch_compile_cache"
        ),
    ),
    Rule(
        "illegal-access",
        "engine-crashed",
        "0.10-0.32",
        patterns(
            r"illegal memory access", r"cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS", r"misaligned address"
        ),
        _illegal_access,
        when_ready=True,
    ),
    Rule(
        "align-copy",
        "engine-crashed",
        "0.32 (CPU)",
        patterns(r"TypeError: 'function' object is not subscriptable"),
        _align_copy,
        when_ready=True,
        needs=re.compile(r"mamba|precopy|\[grid\]"),
    ),
    Rule(
        "nccl-error",
        "nccl-stuck",
        "0.8-0.32",
        patterns(
            r"NCCL error|ncclSystemError|ncclUnhandledCudaError|ncclInternalError|DistBackendError",
            r"Watchdog caught collective operation timeout",
        ),
        _nccl,
        when_ready=True,
    ),
    Rule(
        "rpc-timeout",
        "engine-stalled",
        "0.9-0.32",
        patterns(r"RPC call to \w+ timed out", r"execute_model timed out"),
        _rpc_timeout,
        when_ready=True,
        tier=1,
    ),
    Rule(
        "start-timeout",
        "engine-stalled",
        "0.10-0.32",
        patterns(
            r"Timed out waiting for engine core processes to start",
            r"Did not receive response from front-end process within",
        ),
        _start_timeout,
        tier=1,
    ),
    Rule(
        "gpu-fault",
        "engine-crashed",
        "0.8-0.32",
        patterns(
            r"unspecified launch failure|device-side assert|GPU is lost|has fallen off the bus|uncorrectable ECC",
            r"CUBLAS_STATUS_(?:EXECUTION_FAILED|NOT_INITIALIZED|INTERNAL_ERROR)|cudaErrorLaunchFailure",
            r"CUDA error: (?!out of memory)",
        ),
        _gpu_fault,
        when_ready=True,
        tier=1,
    ),
    Rule(
        "native-crash",
        "engine-crashed",
        "any",
        patterns(
            r"Segfault encountered|Segmentation fault|Fatal Python error|terminate called after throwing|Bus error",
            r"core dumped",
        ),
        _native_crash,
        when_ready=True,
        tier=1,
    ),
    Rule(
        "process-died",
        "engine-crashed",
        "0.10-0.32",
        patterns(
            r"Worker proc \S+ died unexpectedly(?: \(exit code: (?P<code>-?\d+)\))?",
            r"[Ee]ngine core proc \S+ died unexpectedly",
            r"engine core exited unexpectedly",
            r"Failed core proc\(s\): \{[^}]*'\S+': (?P<code>-(?!15\b)\d+)",
        ),
        _process_died,
        when_ready=True,
        tier=2,
    ),
)
