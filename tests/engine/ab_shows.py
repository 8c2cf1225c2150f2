"""What A/B runs show on the real engine: each function carries one thing out and says how it went."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, variance
from typing import Any

from console.endpoint import Endpoint
from console.lab.acts import Stage
from console.lab.client import Target
from console.lab.folder import LAB_RECORD
from console.lab.jobs import GREEDY, Act, Job
from console.lab.student import t_factor
from console.lab.trace import Trace
from console.paths import APP, Paths
from console.server.life import Server
from console.server.state import read_server
from tests.console_process import Console, wait_until, write_preset
from tests.engine import truth
from tests.engine.conftest import preset_text
from tests.engine.install import Engine

_RUN_S = 5400.0
_COMPARISONS = 6
"""Three measures at two loads: of so many one is apart by chance more often than one would like."""
Json = dict[str, Any]


@dataclass
class Site:
    """A console with folders of its own, and presets of the real engine."""

    folder: Path
    engine: Engine
    console: Console = field(init=False)

    def __post_init__(self) -> None:
        presets = self.folder / "presets"
        self.console = Console({"XDG_STATE_HOME": str(self.folder / "state"), "QWEN_CONSOLE_PRESETS": str(presets)})
        for name, prefix in (("plain", False), ("cached", True)):
            write_preset(presets, name, preset_text(self.engine, prefix=prefix) + _PREFIX_EXPERIMENT)

    @property
    def paths(self) -> Paths:
        """The console's own folders, seen from here."""
        state = self.folder / "state" / APP
        return Paths(state, self.folder / "config", self.folder / "cache")

    def run(self, *words: str, code: int | None = 0) -> Json:
        """A run to its end; its report."""
        return dict(self.console("ab", *words, "--json", code=code, timeout=_RUN_S).json)

    def begin(self, *words: str) -> str:
        """A run under way; its id."""
        return self.console("ab", *words, "--no-wait", timeout=120).out.strip()

    def events(self, run_id: str) -> list[Json]:
        """The run's journal."""
        text = (self.paths.run(run_id) / "journal.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]

    def state_of(self, run_id: str) -> str:
        """running, done, interrupted or failed."""
        return str(self.console("ab", "show", run_id, "--json").json["state"])

    def until(self, run_id: str, boot: int, event: str) -> None:
        """Wait until a boot has come to an event."""

        def there() -> bool:
            boots = [e["n"] for e in self.events(run_id) if e["event"] == "boot-start"]
            return boots[-1:] == [boot] and any(e["event"] == event and e.get("n") == boot for e in self.events(run_id))

        wait_until(there, timeout=900, every=0.2)


_PREFIX_EXPERIMENT = "  prefix: {enable-prefix-caching: false}\n"


def killed_three_times(site: Site) -> str:
    """A run whose process is killed at three points goes on with its plan; no request is lost or there twice."""
    run_id = site.begin("aa", "--preset", "plain", "--rounds", "2", "--size", "small")
    plan = (site.paths.run(run_id) / "plan.json").read_bytes()
    for boot, event in ((1, "boot-start"), (2, "warm"), (3, "request")):
        site.until(run_id, boot, event)
        record, _ = read_server(site.paths.run(run_id) / LAB_RECORD)
        assert record is not None
        assert record.child is not None
        os.kill(record.child.pid, signal.SIGKILL)
        wait_until(lambda: site.state_of(run_id) == "interrupted", timeout=120, every=0.5)
        wait_until(lambda: not site.console.processes(), timeout=120, every=0.5)
        site.console("ab", "resume", run_id, "--no-wait", timeout=120)
    wait_until(lambda: site.state_of(run_id) != "running", timeout=_RUN_S, every=2)
    report = site.console("ab", "show", run_id, "--json").json
    assert (site.paths.run(run_id) / "plan.json").read_bytes() == plan
    assert report["state"] == "done", report["warnings"]
    assert [boot["valid"] for boot in report["boots"]] == [True] * 4, report["warnings"]
    counts = _requests(site.events(run_id))
    assert all(count == 1 for boot in counts.values() for count in boot.values())
    assert len({frozenset(boot) for boot in counts.values()}) == 1
    each = len(counts[1])
    return (
        "killed (SIGKILL) while boot 1 started, boot 2 was warm and boot 3 was measured; resumed three times: the plan "
        f"is the same to the byte, 4 of 4 boots count, each with its {each} requests once"
    )


def _requests(events: list[Json]) -> dict[int, Counter[str]]:
    found: dict[int, Counter[str]] = {}
    for event in events:
        if event["event"] == "boot-start":
            found[event["n"]] = Counter()
        elif event["event"] == "request" and event["workload"] != "warm-up":
            found[event["n"]][event["key"]] += 1
    return found


def foreign_traffic(site: Site) -> str:
    """One request of somebody else during a round."""
    run_id = site.begin("aa", "--preset", "plain", "--rounds", "1", "--size", "small")
    site.until(run_id, 1, "request")
    wait_until(
        lambda: any(e["event"] == "request" and e["workload"] == "agent" for e in site.events(run_id)), timeout=300
    )
    # Port and key are the run's own: only whoever reads them from the process can get in at all.
    endpoint = Server(site.paths).endpoint()
    assert endpoint is not None
    truth.ask(endpoint.url, "hello", max_tokens=2, key=endpoint.key)
    wait_until(lambda: site.state_of(run_id) != "running", timeout=900, every=1)
    report = site.console("ab", "show", run_id, "--json").json
    first = report["boots"][0]
    assert first["valid"] is False
    assert "foreign traffic" in first["reason"]
    assert report["verdict"]["overall"] == "invalid"
    return f"the boot does not count (“{first['reason']}”), and the run says *{report['verdict']['overall']}*"


def crash_arm(site: Site) -> str:
    """MTP with prefix caching dies on this build at its first request."""
    report = site.run("mtp", "--preset", "cached", "--rounds", "1", "--size", "small", code=1)
    (crashed,) = [boot for boot in report["boots"] if boot["arm"] == "on"]
    assert crashed["crash"]["cause"] == "engine-crashed"
    return f"{report['verdict']['overall']}: {report['verdict']['sentence']}"


def budgets_and_blocks(site: Site) -> str:
    """Chunk budgets of a hybrid model with prefix caching: named before any start, and measured below the block too."""
    plan = site.console("ab", "chunk", "--preset", "cached", "--arms", "128,1x,1.5x,256", "--dry-run").out
    named = [text.strip() for text in plan.splitlines() if text.strip().startswith("note")]
    assert any("below the cache block" in text for text in named), plan
    assert any("equal to" in text for text in named), plan
    assert any("it starves" in text for text in named), plan
    report = site.run("chunk", "--preset", "cached", "--arms", "128,2x", "--rounds", "1", "--size", "small")
    assert [boot["valid"] for boot in report["boots"]] == [True, True], report["warnings"]
    told = "\n".join(f"- {text.removeprefix('note').strip()}" for text in named)
    small, large = (arm["name"] for arm in report["plan"]["arms"])
    return (
        f"Before any start:\n\n{told}\n\nMeasured, one round: the budget of {small} below the block ran (up to "
        f"vLLM 0.22 it would be skipped, with both numbers); {small} against {large}: {report['verdict']['sentence']}"
    )


@dataclass(frozen=True)
class Agreement:
    """One measure by two clients on one server."""

    measure: str
    streams: int
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """Ours over theirs."""
        return fmean(self.ours) / fmean(self.theirs)

    @property
    def half_width(self) -> float:
        """Of the ratio's interval (Welch over the repeats; 95 % for all comparisons together), as a share."""
        a, b = variance(self.ours) / len(self.ours), variance(self.theirs) / len(self.theirs)
        df = (a + b) ** 2 / (a**2 / (len(self.ours) - 1) + b**2 / (len(self.theirs) - 1)) if a + b else 1.0
        return float(t_factor(1 - 0.05 / _COMPARISONS, round(max(df, 1.0), 1)) * (a + b) ** 0.5 / fmean(self.theirs))

    @property
    def agrees(self) -> bool:
        """Whether the two are apart by no more than noise."""
        return abs(self.ratio - 1) <= self.half_width


def agreement(site: Site, repeats: int, requests: int = 12, answer: int = 48) -> list[Agreement]:
    """Both clients in turn on the same server with the same prompts."""
    site.console("up", "plain", timeout=600)
    endpoint = Server(site.paths).endpoint()
    assert endpoint is not None
    found: list[Agreement] = []
    try:
        for streams in (1, 4):
            rows: dict[str, tuple[list[float], list[float]]] = {}
            _ours(endpoint, _prompts(99, requests), streams, answer)
            for i in range(repeats):
                prompts = _prompts(1000 * streams + i, requests)
                for side, seen in enumerate(
                    (
                        _ours(endpoint, prompts, streams, answer),
                        _theirs(site.engine, endpoint, prompts, streams, answer),
                    )
                ):
                    for name, value in seen.items():
                        rows.setdefault(name, ([], []))[side].append(value)
            found += [Agreement(name, streams, *pair) for name, pair in rows.items()]
    finally:
        site.console("down", timeout=120)
    return found


def _prompts(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [truth.prompt(120, rng.randrange(1, 10_000)) for _ in range(count)]


def _ours(endpoint: Endpoint, prompts: list[str], streams: int, answer: int) -> dict[str, float]:
    jobs = tuple(
        Job("decode", GREEDY, str(i), ({"role": "user", "content": text},), None, answer, str(i))
        for i, text in enumerate(prompts)
    )
    begun = time.monotonic()
    pairs = Stage(Target.of(endpoint.url, endpoint.key), "tiny").perform(Act(jobs, streams))
    traces: list[Trace] = [trace for _, trace in pairs]
    assert all(trace.ok for trace in traces)
    ends = [trace.sent + (trace.ended or 0.0) for trace in traces]
    return {
        "TTFT, mean": fmean(trace.ttft_s or 0.0 for trace in traces),
        "TPOT, mean": fmean(trace.tpot_s or 0.0 for trace in traces),
        "output tokens a second": len(traces) * answer / (max(ends) - min(begun, *(t.sent for t in traces))),
    }


def _theirs(engine: Engine, endpoint: Endpoint, prompts: list[str], streams: int, answer: int) -> dict[str, float]:
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
        "TPOT, mean": said["mean_tpot_ms"] / 1e3,
        "output tokens a second": said["output_throughput"],
    }
