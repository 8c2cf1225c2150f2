"""`history`: what the servers of the last days did, by boot, from what was recorded by the minute."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict, fields
from datetime import UTC, datetime
from typing import Any

from console import units
from console.cli.house import House
from console.cli.voice import say, show, show_json
from console.errors import Exit
from console.server.history import LEFT_OUT, RUNNING, BootHistory, read_history, with_ends
from console.server.lives import RUNS, seen_lives
from console.server.minutes import CardMinute, Minute, history_path
from console.server.state import read_json, recorder_path


def history(args: argparse.Namespace) -> int:
    """Boots on stdout, the newest first."""
    house = House.of(args)
    since = time.time() - args.since
    found = with_ends(read_history(history_path(house.paths.state), since), seen_lives(house.paths), since)
    note = "; ".join(text for text in (found.note, _note(house)) if text) or None
    if args.json:
        whole = {"schema": 1, "since": _utc(since), "problem": found.problem, "note": note}
        show_json(whole | {"boots": [_boot_json(boot) for boot in found.boots]})
        return Exit.OK
    for text in (found.problem, note, LEFT_OUT):
        if text:
            say(text)
    if not found.boots and not found.problem:
        say(f"nothing was recorded in the last {units.duration(args.since)}")
    show(line for boot in found.boots for line in _boot_text(boot))
    return Exit.OK


def _note(house: House) -> str | None:
    """What became of the recorder of the server on record, where something did."""
    raw, _ = read_json(recorder_path(house.paths.server_record))
    record = house.server.record()
    return str(raw.get("note")) if raw and record and raw.get("life") == record.life else None


def _utc(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def _boot_json(found: BootHistory) -> dict[str, Any]:
    end = found.end
    boot = asdict(found.boot) | {"started": _utc(found.boot.started), "simulated": bool(found.boot.simulated)}
    return {
        **boot,
        "first": _utc(found.first),
        "last": _utc(found.last),
        "end": {
            "word": end.word,
            "what": end.what,
            "cause": end.cause,
            "at": _utc(end.at) if end.at else None,
        }
        if end
        else None,
        "totals": asdict(found.totals),
        "cards": [asdict(card) for card in found.cards],
        "minutes": _minutes_json(found),
    }


def _minutes_json(found: BootHistory) -> list[dict[str, Any]]:
    cards: dict[int, list[dict[str, Any]]] = {}
    for card in found.card_rows:
        cards.setdefault(card.at, []).append(_figures(card))
    return [{"at": _utc(row.at), **_figures(row), "cards": cards.get(row.at, [])} for row in found.rows]


def _figures(row: Minute | CardMinute) -> dict[str, Any]:
    return {field.name: getattr(row, field.name) for field in fields(row) if field.name not in ("life", "at")}


def _boot_text(found: BootHistory) -> list[str]:
    total, boot = found.totals, found.boot
    name = f"{boot.preset or units.NA}{' SIMULATED' if boot.simulated else ''} · vLLM {boot.version or units.NA}"
    span = f"{units.local_minute(found.first)} to {units.local_minute(found.until)}"
    how = found.end.text if found.end else "how it ended is not on record"
    if not found.rows:
        return [f"{span} · {boot.preset or units.NA}{' SIMULATED' if boot.simulated else ''}", f"  {how}"]
    head = f"{span} · {name} · {units.duration(found.covered_s)} · boot {boot.life[:8]}"
    lines = [
        head,
        f"  {'; '.join(text for text in (how if how != RUNS else RUNNING, found.uncounted) if text)}",
        f"  requests ended {units.count(total.requests)} · TTFT {units.seconds(total.ttft_s)} · TPOT "
        f"{units.seconds(total.tpot_s)} · gap {units.seconds(total.itl_s)} · best minute's "
        f"mean {units.per_second(total.generation_tokens_per_s)}",
        f"  prefix hit rate {units.percent(total.prefix_hit_rate)} · cached {units.count(total.cached_tokens)} · "
        f"computed {units.count(total.computed_tokens)} · generated {units.count(total.generation_tokens)} tokens",
    ]
    if total.acceptance_rate is not None:
        lines[-1] += f" · MTP acceptance {units.percent(total.acceptance_rate)}"
    lines += [
        f"  card {card.card}: VRAM peak {units.gib(card.vram_peak_bytes)} · "
        f"{units.number(card.temp_max_c, 0, ' °C')} at most · best minutes' means, of a few looks each: "
        f"PCIe tx {units.rate(card.pcie_tx_bytes_per_s)} rx {units.rate(card.pcie_rx_bytes_per_s)}, "
        f"{units.number(card.power_w, 0, ' W')}"
        for card in found.cards
    ]
    return lines
