"""The lab's client against a server whose send times are known, beside the barest client and `vllm bench serve`.

    python -m tests.bench.client_table [--repeats 3] [--no-bench] [--out docs/client.md]

One table: how late stamps are, what a chunk costs, and whether awkward streams are told right. A minute; four more are
the starts of `vllm bench serve`, which is left out where the engine is not installed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from console import __version__
from tests.bench.client_cases import CASES, Case, log_of, ms, problems, serving, told
from tests.bench.document import commit, hand_in, listed, refused
from tests.engine.install import Engine, engine

Json = dict[str, Any]
WITHIN = 1.25
"""Our errors over those of the barest client, in the same run."""
CPU_US = 60.0
"""A chunk at most, where chunks come faster than a core falls asleep. Of one stream the wake-up of an idle core is the
most, whoever it wakes: there the barest client's own CPU is the limit."""


@dataclass(frozen=True)
class Load:
    """A schedule under which stamps are compared."""

    title: str
    streams: int
    requests: int
    schedule: Json


LOADS = (
    Load("1 stream, 20 ms", 1, 3, {"first": 100, "gap": 20, "chunks": 100}),
    Load("1 stream x 125 chunks/s", 1, 4, {"first": 100, "gap": 8, "chunks": 250}),
    Load("16 streams x 125 chunks/s", 16, 32, {"first": 100, "gap": 8, "chunks": 250}),
)


def load(kind: str, port: int, streams: int, requests: int, schedule: Json) -> Json:
    """What one client saw."""
    words = [sys.executable, "-m", "tests.bench.client_load", kind, str(port), str(streams), str(requests)]
    done = subprocess.run([*words, json.dumps(schedule)], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


@dataclass
class Errors:
    """How one client's stamps lie beside the truth, seconds."""

    ttft: list[float] = field(default_factory=list)
    delay: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    chunks: int = 0

    def add(self, seen: Json, sent: dict[str, Json]) -> None:
        """One load more."""
        self.cpu_s += seen["cpu_s"]
        for i, request in enumerate(seen["requests"]):
            truth = sent[str(i)]
            writes = [at for kind, _, at in truth["writes"] if kind == "tokens"]
            self.chunks += len(writes)
            self.ttft.append(request["stamps"][0] - (writes[0] - truth["received"]))
            arrivals = [request["sent"] + stamp for stamp in request["stamps"]]
            # Two writes that one read took share its stamp: each write has the first stamp after it.
            at = 0
            for write in writes:
                while at < len(arrivals) - 1 and arrivals[at] < write:
                    at += 1
                self.delay.append(arrivals[at] - write)

    def texts(self) -> list[str]:
        """TTFT error, stamp delay (mean, 99 %), CPU a chunk."""
        delay = sorted(self.delay)
        late = delay[int(0.99 * (len(delay) - 1))]
        shown = f"{median(delay) * 1e3:.2f} / {fmean(delay) * 1e3:.2f} / {late * 1e3:.2f} ms"
        return [f"{median(self.ttft) * 1e3:+.2f} / {fmean(self.ttft) * 1e3:+.2f} ms", shown, f"{self.cpu_us:.0f} µs"]

    @property
    def cpu_us(self) -> float:
        """CPU a chunk, start of the loop included."""
        return self.cpu_s / self.chunks * 1e6


def stamps(each: Load, repeats: int) -> dict[str, Errors]:
    """Both clients in turn, so that whatever else the machine does meets both."""
    found = {"floor": Errors(), "ours": Errors()}
    with serving() as port:
        for _ in range(repeats):
            for kind, errors in found.items():
                errors.add(load(kind, port, each.streams, each.requests, each.schedule), log_of(port))
    return found


def price_of_a_wake_up(schedule: Json) -> float:
    """CPU a chunk of a loop that only blocks in `recv`: what this machine asks of anybody, µs."""
    body = json.dumps({"user": "0", "schedule": schedule}).encode()
    with serving() as port, socket.create_connection(("127.0.0.1", port)) as door:
        door.sendall(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        begun, chunks, data = time.process_time(), 0, b""
        while not data.endswith(b"0\r\n\r\n"):
            data = door.recv(65536)
            chunks += data.count(b"data:")
        return (time.process_time() - begun) / chunks * 1e6


def bench(place: Engine, schedule: Json, streams: int, requests: int, tokens: int) -> tuple[Json, list[Json]]:
    """What `vllm bench serve` says of a schedule, and what the server sent it."""
    with serving(schedule) as port, tempfile.TemporaryDirectory() as folder:
        words = [
            *(str(place.vllm), "bench", "serve", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions"),
            *("--base-url", f"http://127.0.0.1:{port}", "--model", "truth", "--tokenizer", str(place.model)),
            *("--dataset-name", "random", "--random-input-len", "8", "--random-output-len", str(tokens)),
            *("--num-prompts", str(requests), "--max-concurrency", str(streams), "--save-result"),
            *("--result-dir", folder, "--result-filename", "result.json", "--percentile-metrics", "ttft,tpot,itl"),
        ]
        env = os.environ | {"VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "VLLM_CPU_CI_ENV": "1"}
        subprocess.run(words, env=env, capture_output=True, check=True, timeout=300)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/log", timeout=30) as reply:
            # Its first request is a trial.
            sent = json.load(reply)[1:]
        return json.loads((Path(folder) / "result.json").read_text()), sent


class Table:
    """The document, and what did not hold."""

    def __init__(self, place: Engine | None) -> None:
        self.place = place
        self.lines: list[str] = []
        self.failures: list[str] = []

    def add(self, head: Sequence[str], rows: list[list[str]]) -> None:
        """A Markdown table."""
        self.lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(f"| {' | '.join(r)} |" for r in rows), ""]

    def loads(self, repeats: int) -> None:
        """Lateness and price."""
        rows = []
        for each in LOADS:
            found = stamps(each, repeats)
            rows += [[each.title, kind, *errors.texts()] for kind, errors in found.items()]
            ours, floor = found["ours"], found["floor"]
            for name in ("ttft", "delay"):
                ratio = median(getattr(ours, name)) / median(getattr(floor, name))
                self._hold(ratio <= WITHIN, f"{each.title}: {name} error {ratio:.2f} times the floor's")
            most = CPU_US if each.streams > 1 else max(CPU_US, floor.cpu_us)
            self._hold(ours.cpu_us <= most, f"{each.title}: {ours.cpu_us:.0f} µs of CPU a chunk, {most:.0f} at most")
            if self.place is not None:
                rows.append([each.title, "vllm bench", *self._bench_texts(each)])
        self.lines += [
            "Errors are the client's stamp less the server's own: median / mean (/ 99 %). Medians are compared.",
            "",
        ]
        self.add(["load", "client", "TTFT error", "stamp delay", "CPU a chunk"], rows)
        price = price_of_a_wake_up(LOADS[1].schedule)
        self.lines += [
            f"A loop that only blocks in `recv` costs {price:.0f} µs a chunk on this machine (one stream).",
            "",
        ]

    def _bench_texts(self, each: Load) -> list[str]:
        assert self.place is not None
        said, sent = bench(self.place, each.schedule, each.streams, each.requests, each.schedule["chunks"])
        true = fmean(next(at for kind, _, at in one["writes"] if kind == "tokens") - one["received"] for one in sent)
        return [f"{said['mean_ttft_ms'] - true * 1e3:+.2f} ms (mean)", "not kept", "n/a"]

    def cases(self) -> None:
        """Awkward streams."""
        rows = []
        with serving() as port:
            for case in CASES:
                trace, sent = told(port, case)
                found = problems(case, trace, sent)
                for problem in found:
                    self._hold(False, f"{case.title}: {problem}")
                truth = f"{case.outcome}; {ms(sent.ttft)} / {ms(sent.tpot)} / {ms(sent.gap)}"
                ours = f"{trace.outcome}; {ms(trace.ttft_s)} / {ms(trace.tpot_s)} / {ms(trace.gap_s)}"
                rows.append([case.title, truth, ours, self._bench_says(case), "; ".join(found) or "right"])
        self.lines += ["Outcome; TTFT / TPOT / mean gap in ms:", ""]
        self.add(["stream", "truth", "ours", "vllm bench", ""], rows)

    def _bench_says(self, case: Case) -> str:
        if self.place is None or case.outcome == "timeout":
            return "n/a"
        tokens = case.schedule.get("tokens", [1])
        size = sum(tokens[i % len(tokens)] for i in range(case.schedule["chunks"]))
        said, _ = bench(self.place, case.schedule, 1, 2, size)
        counted = "all ok" if said["completed"] == 2 else f"{said['completed']} of 2 ok"
        return f"{counted}; {said['mean_ttft_ms']:.2f} / {said['mean_tpot_ms']:.2f} / {said['mean_itl_ms']:.2f}"

    def _hold(self, good: bool, text: str) -> None:
        if not good:
            self.failures.append(text)


def head(args: argparse.Namespace, place: Engine | None) -> list[str]:
    """What the document says first."""
    busy = os.getloadavg()[0]
    other = f" Beside it other work ran (load average {busy:.1f})." if busy > 1.5 else ""
    vllm = "`vllm bench serve` of vLLM 0.32.0 (CPU build)" if place else "no `vllm bench serve` here"
    return [
        "# The lab's client beside others",
        "",
        f"`python -m tests.bench.client_table --repeats {args.repeats}`, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, "
        f"commit {commit()}, qwen-console {__version__}, Python {platform.python_version()}, {os.cpu_count()} cores; "
        f"{vllm}.{other}",
        "",
        "*floor* is a bare `asyncio.Protocol` that stamps a read and looks for events, nothing else. Limits: stamps",
        f"within {WITHIN} of the floor's error in the same run, {CPU_US:.0f} µs of CPU a chunk under load (of one",
        "stream the wake-up of an idle core is the most of it, so there the floor's own CPU), every stream right.",
        "",
    ]


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-bench", action="store_true", help="without vllm bench serve")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if refused():
        return 2
    place = engine()
    table = Table(place if place.ready and not args.no_bench else None)
    top = head(args, table.place)
    table.loads(args.repeats)
    table.cases()
    held = listed(table.failures, "everything is within its limits")
    lines = [*top, *table.lines, "## Outside the limits", "", *held]
    return hand_in(lines, args.out, table.failures, "outside the limits:")


if __name__ == "__main__":
    sys.exit(main())
