"""Streams that are easily told wrong, and what is true of them."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from console.lab.trace import Trace

Json = dict[str, Any]
_TOLERANCE = 0.1


@dataclass(frozen=True)
class Case:
    """A stream that is easily told wrong, and what is true of it; seconds."""

    title: str
    schedule: Json
    outcome: str = "ok"
    ttft: float | None = None
    tpot: float | None = None
    gap: float | None = None
    content: float | None = None
    """When the first content came, where reasoning came before."""


CASES = (
    Case("three tokens a chunk", {"first": 100, "gap": 30, "chunks": 40, "tokens": [3]}, "ok", 0.1, 0.01, 0.03),
    Case("2, 1, 3 tokens a chunk", {"gap": 30, "chunks": 42, "tokens": [2, 1, 3]}, "ok", 0.1, 0.015, 0.03),
    Case("role 500 ms before", {"first": 600, "gap": 20, "chunks": 30, "role": 500}, "ok", 0.6, 0.02, 0.02),
    Case("reasoning for 2 s", {"gap": 20, "chunks": 120, "reasoning": 100}, "ok", 0.1, 0.02, 0.02, 2.1),
    Case("reasoning_content", {"gap": 20, "chunks": 40, "reasoning": 9, "field": "reasoning_content"}, "ok", 0.1, 0.02),
    Case("four events a write", {"gap": 10, "chunks": 40, "glue": 4}, "ok", 0.13, 0.01, 0.04),
    Case("usage at the end alone", {"gap": 20, "chunks": 30, "usage": "final"}, "ok", 0.1, 0.02, 0.02),
    Case("no usage at all", {"gap": 20, "chunks": 30, "usage": "none"}, "cut", 0.1),
    Case("error event", {"gap": 20, "chunks": 30, "ending": "event", "broken_at": 10}, "error-event", 0.1),
    Case("clean end, too early", {"gap": 20, "chunks": 30, "ending": "eof", "broken_at": 10}, "cut", 0.1),
    Case("closed within the body", {"gap": 20, "chunks": 30, "ending": "close", "broken_at": 10}, "cut", 0.1),
    Case("reset", {"gap": 20, "chunks": 30, "ending": "reset", "broken_at": 10}, "cut", 0.1),
    Case("says nothing more", {"gap": 20, "chunks": 30, "ending": "stall", "broken_at": 10}, "timeout", 0.1),
)


@contextmanager
def serving(schedule: Json | None = None) -> Iterator[int]:
    """The truth server in a process of its own; its port."""
    words = [sys.executable, "-m", "tests.bench.truth_server", "0", json.dumps(schedule or {})]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@dataclass(frozen=True)
class Truth:
    """What the server really sent, by its own stamps: a busy machine delays it too."""

    ttft: float | None = None
    tpot: float | None = None
    gap: float | None = None
    content: float | None = None
    arrivals: int = 0
    """Writes that brought tokens."""

    @classmethod
    def of(cls, sent: Json, reasoning: int = 0) -> Truth:
        """From an entry of the server's log; so many of its first chunks were reasoning."""
        writes = [(size, at - sent["received"]) for kind, size, at in sent["writes"] if kind == "tokens"]
        if not writes:
            return cls()
        times = sorted({at for _, at in writes})
        span, first = times[-1] - times[0], sum(size for size, at in writes if at == times[0])
        rest = sum(size for size, _ in writes) - first
        content = writes[reasoning][1] if reasoning < len(writes) else None
        gap = span / (len(times) - 1) if len(times) > 1 else None
        return cls(times[0], span / rest if rest else None, gap, content, len(times))


def log_of(port: int) -> dict[str, Json]:
    """What the server sent since it was asked the last time, by the request's name."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/log", timeout=30) as reply:
        return {sent["name"]: sent for sent in json.load(reply)}


def told(port: int, case: Case) -> tuple[Trace, Truth]:
    """Our client on one awkward stream, and what was sent to it."""
    timeout = "1.5" if case.outcome == "timeout" else "30"
    words = [sys.executable, "-m", "tests.bench.client_load", "ours", str(port), "1", "1", json.dumps(case.schedule)]
    done = subprocess.run([*words, timeout], capture_output=True, text=True, check=True)
    truth = Truth.of(log_of(port)["0"], case.schedule.get("reasoning", 0))
    return Trace.from_json(json.loads(done.stdout)["requests"][0]), truth


def problems(case: Case, trace: Trace, truth: Truth) -> list[str]:
    """What of a stream was told wrong; only what the case is about is looked at."""
    found = [] if trace.outcome == case.outcome else [f"outcome {trace.outcome}, not {case.outcome}"]
    rows = (
        ("TTFT", case.ttft, truth.ttft, trace.ttft_s),
        ("TPOT", case.tpot, truth.tpot, trace.tpot_s),
        ("gap", case.gap, truth.gap, trace.gap_s),
        ("first content", case.content, truth.content, trace.content_at),
    )
    # Two writes that one read took, and no running count: how many tokens came first nobody can know.
    merged = trace.completion_tokens is not None and len(trace.stamps) < truth.arrivals
    for name, asked, true, seen in rows:
        if asked is None or true is None or (name == "TPOT" and seen is None and merged):
            continue
        if name == "gap" and merged and seen is not None:
            seen = seen * (len(trace.stamps) - 1) / (truth.arrivals - 1)
        if seen is None or abs(seen - true) > _TOLERANCE * true + 0.005:
            found.append(f"{name} {ms(seen)} ms where {ms(true)} is true")
    return found


def ms(value: float | None) -> str:
    """Seconds as milliseconds."""
    return "n/a" if value is None else f"{value * 1e3:.2f}"
