"""`status`: the server, the cards and the reading, for people and for scripts."""

from __future__ import annotations

import argparse
import json

from console import units
from console.cli.house import House
from console.cli.look import SERVING, Snapshot, look
from console.cli.server import say
from console.errors import Exit
from console.gpu.sample import GpuSample
from console.metrics.reading import Distribution, Reading
from console.server.status import ServerStatus, State


def status(args: argparse.Namespace) -> int:
    """Print the snapshot; always 0 unless the command line itself is wrong."""
    snapshot = look(House.of(args), url=args.url, window_s=args.window, say=say)
    if args.json:
        print(json.dumps(snapshot.to_json(), indent=1))
    else:
        print("\n".join(text(snapshot)))
    return Exit.OK


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
    if server.state in SERVING:
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
    if server.url and server.state in SERVING:
        words.append(server.url)
    if server.version:
        words.append(f"vLLM {server.version}")
    if server.uptime_s is not None and server.state in SERVING:
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
