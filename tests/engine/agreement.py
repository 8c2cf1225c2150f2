"""Our client and `vllm bench serve` in turn, on one server and with one set of prompts."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, variance

from console.endpoint import Endpoint
from console.lab.acts import Stage
from console.lab.client import Target
from console.lab.jobs import GREEDY, Act, Job
from console.lab.student import t_factor
from console.lab.trace import Trace
from console.server.life import Server
from tests.engine import truth
from tests.engine.ab_shows import Site
from tests.engine.install import Engine

STREAMS = (1, 4)
Seen = dict[str, float]
_COMPARISONS = 5 * len(STREAMS)
"""Five measures a load: of so many one is apart by chance more often than one would like."""


@dataclass(frozen=True)
class Agreement:
    """One measure by two clients on one server: a value a repeat (over its requests)."""

    measure: str
    streams: int
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Ours over theirs, of the geometric means: a repeat that stood still for a second weighs as one of them."""
        return math.exp(self._apart)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the ratio (Welch over the logarithms of the repeats; 95 % for all comparisons together)."""
        a, b = (variance([math.log(value) for value in side]) / len(side) for side in (self.ours, self.theirs))
        df = (a + b) ** 2 / (a**2 / (len(self.ours) - 1) + b**2 / (len(self.theirs) - 1)) if a + b else 1.0
        half = float(t_factor(1 - 0.05 / _COMPARISONS, round(max(df, 1.0), 1)) * (a + b) ** 0.5)
        return math.exp(self._apart - half), math.exp(self._apart + half)

    @property
    def agrees(self) -> bool:
        """Whether the two are apart by no more than noise."""
        low, high = self.interval
        return low <= 1.0 <= high

    @property
    def _apart(self) -> float:
        return fmean(map(math.log, self.ours)) - fmean(map(math.log, self.theirs))


def agreement(site: Site, repeats: int, requests: int = 16, answer: int = 48) -> list[Agreement]:
    """Both clients on the same server with the same prompts; who goes first changes from repeat to repeat."""
    site.console("up", "plain", timeout=600)
    endpoint = Server(site.paths).endpoint()
    assert endpoint is not None
    found: list[Agreement] = []
    try:
        for streams in STREAMS:
            rows: dict[str, tuple[list[float], list[float]]] = {}
            _ours(endpoint, _prompts(99, requests), streams, answer)
            for i in range(repeats):
                for side, seen in _in_turn(
                    site.engine, endpoint, i, streams, _prompts(1000 * streams + i, requests), answer
                ):
                    for name, value in seen.items():
                        rows.setdefault(name, ([], []))[side].append(value)
            found += [Agreement(name, streams, *pair) for name, pair in rows.items()]
    finally:
        site.console("down", timeout=120)
    return found


def _in_turn(
    engine: Engine, endpoint: Endpoint, repeat: int, streams: int, prompts: list[str], answer: int
) -> list[tuple[int, Seen]]:
    sides: list[tuple[int, Callable[[], Seen]]] = [
        (0, lambda: _ours(endpoint, prompts, streams, answer)),
        (1, lambda: _theirs(engine, endpoint, prompts, streams, answer)),
    ]
    return [(side, ask()) for side, ask in (sides if repeat % 2 == 0 else reversed(sides))]


def _prompts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [truth.prompt(120, rng.randrange(1, 10_000)) for _ in range(count)]


def _ours(endpoint: Endpoint, prompts: list[str], streams: int, answer: int) -> Seen:
    jobs = tuple(
        Job("decode", GREEDY, str(i), ({"role": "user", "content": text},), None, answer, str(i))
        for i, text in enumerate(prompts)
    )
    begun = time.monotonic()
    pairs = Stage(Target.of(endpoint.url, endpoint.key), "tiny").perform(Act(jobs, streams))
    traces: list[Trace] = [trace for _, trace in pairs]
    assert all(trace.ok for trace in traces)
    ttft = [trace.ttft_s for trace in traces if trace.ttft_s is not None]
    tpot = [trace.tpot_s for trace in traces if trace.tpot_s is not None]
    # An answer during which this process stood still came in one read: that has no time per token, least of all 0.
    assert len(ttft) == len(prompts)
    assert 4 * len(tpot) >= 3 * len(prompts)
    ends = [trace.sent + (trace.ended or 0.0) for trace in traces]
    return {
        "TTFT, mean": fmean(ttft),
        "TTFT, median": median(ttft),
        "TPOT, mean": fmean(tpot),
        "TPOT, median": median(tpot),
        "output tokens a second": len(traces) * answer / (max(ends) - min(begun, *(t.sent for t in traces))),
    }


def _theirs(engine: Engine, endpoint: Endpoint, prompts: list[str], streams: int, answer: int) -> Seen:
    with tempfile.TemporaryDirectory() as folder:
        # Of its ways to be given prompts the one that needs no further package.
        data = Path(folder) / "prompts.json"
        data.write_text(json.dumps([{"conversations": [{"value": text}, {"value": text}]} for text in prompts]))
        words = [
            *(str(engine.vllm), "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
            *("--base-url", endpoint.url, "--model", "tiny", "--tokenizer", str(engine.model)),
            *("--dataset-name", "sharegpt", "--dataset-path", str(data), "--disable-shuffle"),
            *("--sharegpt-output-len", str(answer), "--num-prompts", str(len(prompts)), "--ignore-eos"),
            *("--max-concurrency", str(streams), "--temperature", "0", "--save-result"),
            *("--result-dir", folder, "--result-filename", "result.json"),
        ]
        env = os.environ | {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_CI_ENV": "1"}
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, f"vllm bench serve ended with {done.returncode}: {done.stderr[-2000:]}"
        said = json.loads((Path(folder) / "result.json").read_text())
    assert said["completed"] == len(prompts), said
    assert said["total_output_tokens"] == len(prompts) * answer, said["total_output_tokens"]
    return {
        "TTFT, mean": said["mean_ttft_ms"] / 1e3,
        "TTFT, median": said["median_ttft_ms"] / 1e3,
        "TPOT, mean": said["mean_tpot_ms"] / 1e3,
        "TPOT, median": said["median_tpot_ms"] / 1e3,
        "output tokens a second": said["output_throughput"],
    }
