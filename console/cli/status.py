"""`status`: the server, the cards and the reading, for people and for scripts."""

from __future__ import annotations

import argparse

from console import units
from console.cli.house import House
from console.cli.look import SERVING, Snapshot, look
from console.cli.voice import say, show, show_json
from console.errors import Exit
from console.gpu.sample import GpuReport, GpuSample
from console.metrics.reading import Distribution, Reading
from console.notices import Severity
from console.server.chain import Link
from console.server.status import ServerStatus, State

_PROOF_CHARS = 150
_MARKS = {Severity.BAD: "✖", Severity.WARN: "▲", Severity.INFO: "·"}


def status(args: argparse.Namespace) -> int:
    """Print the snapshot; 0 whatever it tells, except that a server which was named does not answer at all."""
    snapshot = look(House.of(args), url=args.url, window_s=args.window, say=say)
    if args.json:
        show_json(snapshot.to_json())
    else:
        last = None if snapshot.server.state in SERVING else snapshot.started
        show([*text(snapshot), *chain_lines(snapshot.chain, whole=args.chain, last=last)])
    return Exit.FAILED if snapshot.unreachable else Exit.OK


def text(snapshot: Snapshot) -> list[str]:
    """The snapshot for people."""
    server = snapshot.server
    if snapshot.unreachable:
        return [
            f"server: unreachable · {server.url}",
            f"  why: {server.note}",
            "  fix: see that a server runs there and that the address is right; a tunnel (`ssh -L`) may be down",
        ]
    lines = [_headline(server, snapshot.run.arm if snapshot.run else None)]
    lines += [f"  {sentence}" for sentence in snapshot.run.sentences] if snapshot.run else []
    if server.diagnosis:
        lines += [f"  {server.diagnosis.what}", f"  why: {server.diagnosis.why}", f"  fix: {server.diagnosis.fix}"]
    if server.note:
        lines.append(f"  note: {server.note}")
    if server.silence:
        lines.append(f"  {server.silence}")
    if server.prefill_s:
        lines.append(f"  a long prompt is being read, for {units.duration(server.prefill_s)} now")
    lines += card_lines(snapshot.gpus)
    if snapshot.problem:
        lines.append("\n".join(snapshot.problem.lines()))
    if server.state in SERVING:
        lines += _reading_lines(snapshot.reading, snapshot.lifetime)
    for notice in snapshot.notices:
        lines += [f"{_MARKS[notice.severity]} {notice.what}", f"  why: {notice.why}", f"  fix: {notice.fix}"]
    return lines


def chain_lines(links: tuple[Link, ...], *, whole: bool, last: float | None = None) -> list[str]:
    """What really runs: all of it with its proof, or in short what is worth a look.

    Args:
        links: the chain.
        whole: all of it.
        last: unix time of the start it is of, where that server does not run any more.
    """
    of = "" if last is None else f" of the last start, at {units.local_minute(last)}"
    if whole:
        width = max(len(link.link) for link in links)
        lines = [f"what really ran{of}:" if of else "what really runs:"]
        for link in links:
            lines.append(f"  {link.verdict:<7} {link.link:<{width}}  {link.value}")
            lines += [
                f"  {'':<{width + 8}}  {word}"
                for word in (units.clip(link.evidence, _PROOF_CHARS), link.fix and f"fix: {link.fix}")
                if word
            ]
        return lines
    known = [link for link in links if link.verdict != "unknown"]
    if not known:
        return []
    look = [link for link in known if link.verdict == "look"]
    counts = f"{len(known) - len(look)} links ok, {len(look)} to look at, {len(links) - len(known)} not known"
    lines = [f"chain{of}: {counts} (`qwen-console status --chain`)"]
    return lines + [f"  {link.link}: {link.value}" for link in look]


def _headline(server: ServerStatus, arm: str | None) -> str:
    words = [f"server: {server.state.value}"]
    if server.simulated:
        words.append("SIMULATED")
    if server.phase and server.state is State.STARTING:
        words.append(f"({server.phase.value}{': ' + server.detail if server.detail else ''})")
    if server.preset:
        words.append(f"preset {server.preset}" + (f", arm {arm} of an A/B run" if arm else ""))
    if server.url and server.state in SERVING:
        words.append(server.url)
    if server.version:
        words.append(f"vLLM {server.version}")
    if server.uptime_s is not None and server.state in SERVING:
        words.append(f"up {units.duration(server.uptime_s)}")
    if server.failed_at:
        words.append(f"at {units.local_moment(server.failed_at)}")
    if server.restart_in_s:
        words.append(f"starts again in {units.duration(server.restart_in_s)}")
    if server.eta_s is not None:
        words.append(f"about {units.duration(server.eta_s)} left ({units.percent(server.progress, 0)} done)")
    return " · ".join(words)


def card_lines(report: GpuReport) -> list[str]:
    """The cards, what they have in common, and why there are none."""
    lines = [_card_line(card) for card in report.cards]
    lines += [f"  card {card.index}: {card.note}" for card in report.cards if card.note]
    system = [f"driver {report.driver}" if report.driver else "", f"CUDA {report.cuda}" if report.cuda else ""]
    for pair in report.pairs:
        p2p = {True: "yes", False: f"no ({pair.p2p_status})", None: units.NA}[pair.p2p]
        system.append(f"P2P {pair.a}-{pair.b} {p2p}" + (f" over {pair.path}" if pair.path else ""))
    if any(system):
        lines.append(f"cards: {' · '.join(part for part in system if part)}")
    return lines + [f"cards: {text}" for text in (report.note, report.problem) if text]


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
    if card.throttle:
        parts.append(f"held down: {', '.join(card.throttle)}")
    if card.display:
        parts.append("display attached")
    if card.visible is False:
        parts.append("outside CUDA_VISIBLE_DEVICES")
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
    return f"{units.seconds(value.mean)} (n={value.n})" if value.n else units.NA
