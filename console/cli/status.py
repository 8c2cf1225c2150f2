"""`status`: the server, the cards and the reading at one moment or over a window."""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from console import units
from console.cli.house import House
from console.endpoint import Endpoint, normal_url
from console.errors import ConsoleError, Exit
from console.gpu.sample import GpuReport, GpuSample
from console.gpu.source import read_settled
from console.metrics.exposition import parse
from console.metrics.feed import Feed
from console.metrics.reading import Distribution, Reading
from console.metrics.vllm import Counters, read
from console.metrics.window import lifetime, reading
from console.server.chain import Link, chain
from console.server.facts import StartupFacts
from console.server.foreign import foreign_status
from console.server.status import ServerStatus, State

_SERVING = (State.READY, State.STALLED, State.FOREIGN, State.STARTING)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything `status` tells."""

    server: ServerStatus
    gpus: GpuReport
    reading: Reading
    lifetime: Reading | None
    chain: tuple[Link, ...]
    problem: ConsoleError | None = None
    """Why there is no reading although a server should have one."""

    def to_json(self) -> dict[str, Any]:
        """The contract of `status --json`; absent knowledge is null."""
        server = asdict(self.server)
        server["ours"] = list(self.server.ours)
        whole = asdict(self.reading)
        if self.problem is not None:
            whole["problem"] = {"what": self.problem.what, "why": self.problem.why, "fix": self.problem.fix}
        return {
            "schema": 1,
            "server": server,
            "gpus": [asdict(card) for card in self.gpus.cards],
            "gpus_problem": self.gpus.problem,
            "reading": whole,
            "lifetime": asdict(self.lifetime) if self.lifetime else {},
            "chain": [asdict(link) for link in self.chain],
            "notices": [],
        }


def status(args: argparse.Namespace) -> int:
    """Print the snapshot; always 0 unless the command line itself is wrong."""
    snapshot = look(House.of(args), url=args.url, window_s=args.window)
    if args.json:
        print(json.dumps(snapshot.to_json(), indent=1))
    else:
        print("\n".join(text(snapshot)))
    return Exit.OK


def look(house: House, *, url: str | None = None, window_s: float | None = None) -> Snapshot:
    """One look: server, cards and `/metrics` in parallel, each with a deadline of its own."""
    endpoint = Endpoint(normal_url(url)) if url else house.server.endpoint()
    with ThreadPoolExecutor(max_workers=3) as pool:
        gpus = pool.submit(_cards, house, endpoint)
        pages = pool.submit(_scrapes, endpoint, window_s)
        server = foreign_status(endpoint) if url and endpoint else house.server.status()
        counters, problem = pages.result()
        report = gpus.result()
    base = None if url else _baseline(house)
    serving = server.state in _SERVING and bool(counters)
    return Snapshot(
        server=server,
        gpus=report,
        reading=_reading(counters, window_s) if serving else Reading(),
        lifetime=lifetime(counters[-1], base) if serving else None,
        chain=chain(house.server.facts(), counters[-1] if counters else None)
        if not url
        else chain(StartupFacts(), None),
        problem=problem if server.state in (State.READY, State.STALLED, State.FOREIGN) else None,
    )


def _reading(counters: list[Counters], window_s: float | None) -> Reading:
    if window_s is None or len(counters) < 2:
        return reading(None, counters[-1])
    return reading(counters[0], counters[-1])


def _cards(house: House, endpoint: Endpoint | None) -> GpuReport:
    source = house.gpus(endpoint if house.demo else None)
    try:
        return read_settled(source)
    finally:
        source.close()


def _scrapes(endpoint: Endpoint | None, window_s: float | None) -> tuple[list[Counters], ConsoleError | None]:
    if endpoint is None:
        return [], None
    feed, found = Feed(endpoint), []
    try:
        found.append(feed.scrape())
        if window_s:
            time.sleep(window_s)
            found.append(feed.scrape())
    except ConsoleError as error:
        return found, error
    return found, None


def _baseline(house: House) -> Counters | None:
    page = house.server.baseline()
    if page is None:
        return None
    try:
        return read(parse(page), 0.0)
    except ConsoleError:
        return None


def text(snapshot: Snapshot) -> list[str]:
    """The snapshot for people."""
    server = snapshot.server
    lines = [_headline(server)]
    if server.diagnosis:
        lines += [f"  {server.diagnosis.what}", f"  why: {server.diagnosis.why}", f"  fix: {server.diagnosis.fix}"]
    if server.note:
        lines.append(f"  note: {server.note}")
    lines += [_card_line(card) for card in snapshot.gpus.cards]
    if snapshot.gpus.problem:
        lines.append(f"cards: {snapshot.gpus.problem}")
    if snapshot.problem:
        lines.append("\n".join(snapshot.problem.lines()))
    if server.state in _SERVING:
        lines += _reading_lines(snapshot.reading, snapshot.lifetime)
    return lines


def _headline(server: ServerStatus) -> str:
    words = [f"server: {server.state.value}"]
    if server.simulated:
        words.append("SIMULATED")
    if server.phase and server.state is State.STARTING:
        words.append(f"({server.phase.value}{': ' + server.detail if server.detail else ''})")
    if server.preset:
        words.append(f"preset {server.preset}")
    if server.url and server.state in _SERVING:
        words.append(server.url)
    if server.version:
        words.append(f"vLLM {server.version}")
    if server.uptime_s is not None and server.state in _SERVING:
        words.append(f"up {units.duration(server.uptime_s)}")
    return " · ".join(words)


def _card_line(card: GpuSample) -> str:
    name = f"card {card.index} {card.name or ''}".rstrip()
    if card.problem:
        return f"{name}: {card.problem}"
    link = f"gen{units.number(card.pcie_gen, 0)} x{units.number(card.pcie_width, 0)}"
    parts = [
        f"VRAM {units.gib(card.vram_used_bytes)} of {units.gib(card.vram_total_bytes)}",
        f"PCIe tx {units.rate(card.pcie_tx_bytes_per_s)} rx {units.rate(card.pcie_rx_bytes_per_s)} ({link})",
        units.percent(card.util, 0),
        units.number(card.power_w, 0, " W"),
        units.number(card.temp_c, 0, " °C"),
    ]
    return f"{name}: {' · '.join(parts)}"


def _reading_lines(now: Reading, life: Reading | None) -> list[str]:
    span = f"last {now.window_s:.0f} s" if now.window_s else "since the start"
    shown = now if now.window_s or life is None else life
    cache = shown.prefix_cache
    rate = cache.hit_rate if now.window_s else cache.hit_rate_lifetime
    hit = "off" if cache.enabled is False else units.percent(rate)
    queue = f"running {units.count(now.running)} · waiting {units.count(now.waiting)}"
    lines = [
        f"now: {queue} · KV {units.percent(now.kv_used)}",
        f"{span}: prefix hit rate {hit} · cached {units.count(cache.cached_tokens)}"
        f" · computed {units.count(cache.computed_tokens)} tokens",
        f"  TTFT {_latency(shown.ttft_s)} · gap (ITL) {_latency(shown.itl_s)} · TPOT {_latency(shown.tpot_s)}",
        f"  e2e {_latency(shown.e2e_s)} · queue {_latency(shown.queue_s)}",
    ]
    if now.window_s:
        lines.append(f"  generation {units.per_second(now.generation_tokens_per_s)}")
    if shown.mtp:
        lines.append(
            f"  MTP acceptance {units.percent(shown.mtp.acceptance_rate)}"
            f" · {units.number(shown.mtp.mean_acceptance_length, 2)} tokens a step"
        )
    return lines


def _latency(value: Distribution) -> str:
    return f"{units.seconds(value.mean)} (n={value.n})"
