"""States of server, cards and figures, as the fakes tell them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.gpu.sample import CardPair, GpuProcess, GpuReport, GpuSample
from console.metrics.reading import Distribution, LastRequests, Mtp, PrefixCache, Reading
from console.presets import Preset, Problem
from console.presets.source import PresetError
from console.server.status import Diagnosis, Phase, ServerStatus, State

SIZES = [(80, 24), (120, 40)]
sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
GIB = 1024**3

READY = ServerStatus(
    State.READY,
    Phase.READY,
    preset="qwen3.8-27b-nvfp4-100k",
    pid=4711,
    url="http://127.0.0.1:8000",
    model="qwen3.8-27b",
    uptime_s=11_534.0,
    version="0.32.0",
)
STARTING = ServerStatus(
    State.STARTING,
    Phase.COMPILE,
    preset="qwen3.8-27b-nvfp4-100k",
    pid=4711,
    uptime_s=84.0,
    detail="torch.compile 12.3 s",
)
DIAGNOSIS = Diagnosis(
    cause="kv-too-small",
    what="The KV cache is too small for the configured context.",
    why="102,400 tokens were asked for, 63,488 fit into 1.27 GiB.",
    fix="set max-model-len to 61,440, or raise kv-cache-memory-bytes",
    evidence=("(EngineCore pid=7) ERROR 11-29 12:00:00 [core.py:1] ValueError: to serve at least one request",),
    phase=Phase.KV_CACHE,
)
FAILED = ServerStatus(
    State.FAILED,
    preset="qwen3.8-27b-nvfp4-100k",
    diagnosis=DIAGNOSIS,
    failed_at="2026-11-29T12:00:01.250+00:00",
)
CARDS = GpuReport(
    at=0.0,
    cards=tuple(
        GpuSample(
            index=i,
            name="NVIDIA GeForce RTX 5060 Ti",
            vram_used_bytes=int(14.62 * GIB),
            vram_total_bytes=int(15.93 * GIB),
            pcie_tx_bytes_per_s=812.3e6,
            pcie_rx_bytes_per_s=1.21e9,
            pcie_gen=5,
            pcie_width=8,
            util=0.87,
            temp_c=61,
            power_w=142.0,
            power_limit_w=180.0,
        )
        for i in range(2)
    ),
)
BUSY = Reading(
    window_s=30.0,
    running=2,
    waiting=1,
    kv_used=0.412,
    preemptions=0,
    ttft_s=Distribution(5, 0.412, None, None, None, (0.25, 0.5), (1.0, 2.5), (1.0, 2.5)),
    queue_s=Distribution(5, 0.002, None, None, None, (0.0, 0.3), (0.0, 0.3), (0.0, 0.3)),
    itl_s=Distribution(3421, 0.0281, 0.0279, 0.0312, 0.04),
    tpot_s=Distribution(4, 0.0102, 0.01, 0.011, 0.012),
    e2e_s=Distribution(4, 12.4, None, None, None, (10.0, 15.0), (15.0, 20.0), (20.0, None)),
    generation_tokens_per_s=34.2,
    prefill_tokens_per_s=1402.0,
    prefix_cache=PrefixCache(True, 0.924, 0.81, 96_231, 8_120, 1600),
    mtp=Mtp(0.812, 2.62, (0.912, 0.72, 0.551), 1021),
    last=(LastRequests(17.0, 1, 8.32, 97_851, 96_231, 1620), LastRequests(130.0, 2, 0.41, 97_513, 97_001, 512)),
)
IDLE = Reading(
    window_s=30.0,
    running=0,
    waiting=0,
    kv_used=0.0,
    preemptions=0,
    prefix_cache=PrefixCache(True, None, 0.81, 0, 0, 1600),
)
PRESETS = tuple(
    Preset(name, "unsloth/Qwen3.8-27B-NVFP4", about, command=(sys.executable,))
    for name, about in (
        ("qwen3.8-27b-nvfp4-100k", "the default: MTP off, prefix cache on"),
        ("qwen3.8-27b-nvfp4-100k-mtp", "the same with MTP"),
        ("qwen3.8-27b-nvfp4-122k-single", "the public recipe"),
    )
)
BROKEN = Problem(
    "typo", Path("typo.yaml"), PresetError("typo.yaml:4: no flag --max-modle-len", "", "did you mean `max-model-len`?")
)

WHOLE = GpuReport(
    0.0,
    (
        replace(
            CARDS.cards[0],
            uuid="GPU-1",
            pcie_source="counters",
            pcie_gen_max=5,
            pcie_width_max=8,
            pcie_replays=3,
            throttle=("power cap",),
            display=True,
            persistence=False,
            processes=(GpuProcess(4711, 13 * GIB, ours=True), GpuProcess(900, GIB)),
        ),
        replace(CARDS.cards[1], problem="GPU is lost"),
    ),
    driver="575.51",
    cuda="13.0",
    pairs=(CardPair(0, 1, p2p=False, p2p_status="chipset not supported", nvlink=False, path="PHB"),),
)
