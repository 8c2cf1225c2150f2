"""Two cards that are not there: what a driver would tell of them while this engine runs."""

from __future__ import annotations

import math
import os
import time
import uuid
from typing import Any

from console.sim.engine import Load
from console.sim.options import RESERVED_BYTES, TOTAL_BYTES, Options

NAME = "NVIDIA GeForce RTX 5060 Ti"
WORKSPACE_BYTES = 1_030 * 1024**2
"""CUDA context, activations and communication buffers of one rank."""
GRAPHS_BYTES = 300 * 1024**2
MARGIN_BYTES = round(0.68 * 1024**3)
"""What stays free on this machine under load, as reported."""
LAYER_BYTES_PER_TOKEN = 64 * 2 * 5120 * 2
"""Two all-reduces in each of 64 layers, of a hidden state of 5,120 half-precision numbers."""
IDLE_W, DECODE_W, PREFILL_W, LIMIT_W = 11.0, 118.0, 171.0, 180.0
_WARMING_S = 25.0
_FULL_PREFILL = 900.0


class Cards:
    """The cards of one engine; temperatures remember."""

    def __init__(self, options: Options) -> None:
        self._ranks = min(2, options.tensor_parallel)
        self._vram = _vram(options)
        self._temps = [36.0, 34.0]
        self._seen = time.monotonic()

    def read(self, load: Load) -> dict[str, Any]:
        """Both cards now, under `load`."""
        now = time.monotonic()
        part = 1 - math.exp(-(now - self._seen) / _WARMING_S)
        self._seen = now
        return {
            "cards": [self._card(index, load if index < self._ranks else Load(), part) for index in (0, 1)],
            "pairs": [{"a": 0, "b": 1, "p2p": False, "p2p_status": "chipset not supported", "path": "PHB"}],
        }

    def _card(self, index: int, load: Load, part: float) -> dict[str, Any]:
        prefill = min(1.0, load.prefill_tokens_per_s / _FULL_PREFILL)
        power = IDLE_W + index * 1.5 + load.busy * (DECODE_W - IDLE_W + prefill * (PREFILL_W - DECODE_W))
        target = 33.0 - index * 2 + power * 0.2
        self._temps[index] += (target - self._temps[index]) * part
        active = index < self._ranks
        traffic = self._traffic(load) if active else 0.0
        return {
            "index": index,
            "name": NAME,
            "uuid": f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'qwen-console.sim.{index}')}",
            "source": "sim",
            "vram_used_bytes": self._vram if active else 3 * 1024**2,
            "vram_total_bytes": TOTAL_BYTES,
            "vram_reserved_bytes": RESERVED_BYTES,
            "pcie_tx_bytes_per_s": traffic * 1.0 + 12_000.0,
            "pcie_rx_bytes_per_s": traffic * 1.03 + 30_000.0,
            "pcie_gen": 5 if load.busy else 1,
            "pcie_gen_max": 5,
            "pcie_width": 8,
            "pcie_width_max": 8,
            "pcie_replays": 0,
            "pcie_source": "counters",
            "util": round(load.busy, 2),
            "mem_util": round(load.busy * (0.92 - 0.5 * prefill), 2),
            "temp_c": round(self._temps[index]),
            "power_w": round(power, 1),
            "power_limit_w": LIMIT_W,
            "sm_clock_mhz": 2_617 - index * 15 if load.busy else 180,
            "throttle": [],
            "processes": [{"pid": os.getpid(), "vram_bytes": self._vram - 60 * 1024**2}] if active else [],
            "problem": None,
            "vram_free_bytes": TOTAL_BYTES - RESERVED_BYTES - (self._vram if active else 3 * 1024**2),
            "mem_clock_mhz": 14_001 if load.busy else 405,
            "persistence": True,
            "display": False,
        }

    def _traffic(self, load: Load) -> float:
        """Bytes a second in each direction: a ring all-reduce over two ranks sends every hidden state once."""
        if self._ranks < 2:
            return 0.0
        return (load.prefill_tokens_per_s + load.decode_tokens_per_s) * LAYER_BYTES_PER_TOKEN


def _vram(options: Options) -> int:
    """Bytes in use on each card of a started engine."""
    cache = round(options.kv_tokens * options.kv_per_token)
    graphs = 0 if options.eager else GRAPHS_BYTES
    return min(options.weights_bytes + cache + WORKSPACE_BYTES + graphs, TOTAL_BYTES - MARGIN_BYTES)
