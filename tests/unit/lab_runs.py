"""Run folders as the lab leaves them, without a server."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.lab.folder import write_folder
from console.lab.journal import Journal
from console.lab.plan import Plan, make_plan
from console.paths import Paths
from console.presets import Preset

MTP = {"speculative-config": {"method": "mtp", "num_speculative_tokens": 2}}
BASE = Preset("small", "m", args={"max-model-len": 8192, "max-num-batched-tokens": 2048}, lab={"mtp": MTP})
CRASH = {
    "cause": "engine-crashed",
    "what": "the engine died: 'function' object is not subscriptable",
    "why": "a kernel is missing",
    "fix": "switch prefix caching off",
    "phase": "ready",
    "evidence": ["TypeError: 'function' object is not subscriptable"],
}


@dataclass
class Speed:
    """How an arm behaves."""

    tpot_s: float = 0.030
    step: int = 1
    """Tokens an arrival."""
    ttft_s: float = 2.0
    spread: float = 0.002
    """Standard deviation from boot to boot."""
    words: int = 100
    """Which words its answers end with."""


@dataclass
class Made:
    """A run folder under construction."""

    paths: Paths
    plan: Plan
    folder: Path
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    def journal(self) -> Journal:
        return Journal(self.folder)

    def boot(self, place: tuple[int, int, str], speed: Speed, **end: Any) -> None:
        """One boot with all its requests."""
        n, round_number, arm = place
        level = 1 + self.rng.gauss(0, speed.spread)
        place_fields = {"n": n, "arm": arm, "round": round_number}
        with self.journal() as journal:
            journal.add("boot-start", **place_fields, port=1)
            journal.add("boot-ready", n=n)
            journal.add("warm", n=n)
            for phase in ("cold", "prime", "warm", "warm"):
                trace = _trace(speed.ttft_s * level / (1 if phase == "cold" else 4), speed, level, 8)
                key = f"agent/0/{phase}/{self.rng.random()}" if phase == "warm" else f"agent/0/{phase}"
                journal.add("request", n=n, workload="agent", phase=phase, key=key, trace=trace)
            for i in range(self.plan.shape.decodes):
                trace = _trace(0.1 * level, speed, level, 48) | {
                    "ids": [*range(40), *range(speed.words, 8 + speed.words)]
                }
                phase = "greedy" if i == 1 else "decode"
                journal.add("request", n=n, workload="decode", phase=phase, key=f"decode/{i}", trace=trace)
            self._clash(journal, n, speed, level)
            for i in range(2):
                trace = _trace(0.2 * level, speed, level, 16)
                journal.add("request", n=n, workload="concurrent", phase="session", key=f"concurrent/{i}", trace=trace)
            journal.add("boot-end", **place_fields, **{**_END, **end})

    def _clash(self, journal: Journal, n: int, speed: Speed, level: float) -> None:
        """A stream that stands still for half a second while a long prompt is read."""
        stream = _trace(0.1 * level, speed, level, 48)
        middle = len(stream["stamps"]) // 2
        stream["stamps"] = [stamp + (0.5 * level if i >= middle else 0.0) for i, stamp in enumerate(stream["stamps"])]
        intruder = _trace(0.6 * level, speed, level, 8) | {"sent": 100.0 + stream["stamps"][middle - 1]}
        for phase, trace in (("stream", stream), ("intruder", intruder)):
            place = {"workload": "interference", "phase": phase, "key": f"interference/0/{phase}"}
            journal.add("request", n=n, **place, trace=trace)

    def end(self, state: str = "done", note: str | None = None) -> None:
        with self.journal() as journal:
            journal.add("restored", preset=None, ok=True, text="nothing ran before, so nothing runs now")
            journal.add("run-end", state=state, note=note)


_END: dict[str, Any] = {
    "valid": True,
    "reason": None,
    "crash": None,
    "env": {
        "vllm": "0.32.0",
        "compile_cache": "cached",
        "block_tokens": 256,
        "kv_tokens": 5000,
        "vram_peak_bytes": None,
        "start_s": 24.0,
        "kernel": None,
        "client_lateness_s": 0.001,
    },
    "drafts": None,
    "prefill_tokens_per_s": 950.0,
    "probes": {},
    "warnings": [],
}


def _trace(ttft_s: float, speed: Speed, level: float, tokens: int) -> dict[str, Any]:
    counts = list(range(speed.step, tokens + 1, speed.step))
    stamps = [ttft_s + i * speed.step * speed.tpot_s * level for i in range(len(counts))]
    return {
        "sent": 100.0,
        "stamps": stamps,
        "tokens": counts,
        "ended": stamps[-1],
        "outcome": "ok",
        "finish": "length",
        "prompt_tokens": 300,
        "completion_tokens": counts[-1],
        "cached_tokens": 256,
    }


def drafts(accepted: int = 80) -> dict[str, Any]:
    """Speculation of one boot: 60 drafts of two tokens."""
    half = {"drafts": 30, "draft_tokens": 60, "accepted": accepted // 2, "per_position": [25, accepted // 2 - 25]}
    return {"start": half, "end": half, "all": {key: _twice(value) for key, value in half.items()}}


def _twice(value: Any) -> Any:
    return [2 * item for item in value] if isinstance(value, list) else 2 * value


def make_run(kind: str = "mtp", base: Preset = BASE, **options: Any) -> Made:
    """A run that has just begun."""
    paths = Paths.from_env()
    paths.make()
    plan = make_plan(kind, base, **{"size": "small", "rounds": 3, "seed": 1, **options})
    folder = paths.run(f"20260101-000000-{kind}")
    folder.mkdir()
    write_folder(folder, paths, plan, None)
    made = Made(paths, plan, folder)
    with made.journal() as journal:
        journal.add("run-start", id=folder.name, kind=kind, preset=base.name)
    return made


def whole_run(kind: str = "mtp", base: Preset = BASE, **options: Any) -> Made:
    """A finished run in which the second arm writes twice as fast, two tokens an arrival, and starts alike."""
    made = make_run(kind, base, **options)
    second = made.plan.arms[1].name
    for place in made.plan.boots():
        arm = place[2]
        fast = kind == "mtp" and arm == second
        speed = Speed(tpot_s=0.015, step=2) if fast else Speed()
        made.boot(place, speed, **({"drafts": drafts()} if fast else {}))
    made.end()
    return made
