"""Rules over the cards; thresholds with their units stand here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from console import units
from console.gpu.sample import GpuSample
from console.notices.model import Finding, Look, Past, Severity
from console.server.status import State

MIB = 1024**2
THIN_BYTES, AMPLE_BYTES = 200 * MIB, 320 * MIB
"""Free VRAM that one larger chunk, graph or desktop window uses up."""
FOREIGN_BYTES, SMALL_BYTES = 100 * MIB, 80 * MIB
"""A desktop's small change does not count."""
LOADED = 0.5
"""Utilisation above which a link should run at its full speed."""
LINK_S = 10.0
THROTTLE_S = 5.0
REPLAYS = 10
"""Replayed packets in `REPLAY_S` seconds; single ones are normal."""
REPLAY_S = 60.0
_BRAKES = frozenset({"hw slowdown", "thermal", "hw thermal", "power brake"})
"""What slows a card below its own limits; its power cap is one of them."""
_EIGHT_LANES = re.compile(r"RTX (?:3050|4060|5050|5060)\b")
_LIVE = frozenset({State.STARTING, State.READY, State.STALLED})


def _card(look: Look, index: int) -> GpuSample | None:
    found = [card for card in look.cards.cards if card.index == index] if look.cards else []
    return found[0] if found else None


def _name(card: GpuSample) -> str:
    return f"card {card.index}"


def lost(past: Past, card: GpuSample) -> Iterator[Finding]:
    """A card that cannot be read."""
    if card.problem:
        yield Finding(
            f"card-lost:{card.index}",
            Severity.BAD,
            f"{_name(card)} cannot be read",
            card.problem,
            "its row stays; the console tries again by itself",
        )
    del past


def margin(past: Past, card: GpuSample) -> Iterator[Finding]:
    """Little VRAM left while a server of ours lives."""
    name, free = f"vram-margin:{card.index}", card.margin_bytes
    limit = AMPLE_BYTES if past.stands(name) else THIN_BYTES
    if free is None or free >= limit or past.now.status.state not in _LIVE or card.visible is False:
        return
    desktop = " A display is attached to it: a desktop takes memory as it likes." if card.display else ""
    yield Finding(
        name,
        Severity.WARN,
        f"{_name(card)} has only {free / MIB:,.0f} MiB of VRAM left",
        f"{units.gib(card.vram_used_bytes)} of {units.gib(card.vram_total_bytes)} are in use; a larger prefill chunk "
        f"or another process ends in out-of-memory.{desktop}",
        "`gpu-memory-utilization` lower by 0.01, `kv-cache-memory-bytes` or `max-cudagraph-capture-size` smaller",
    )


def foreign(past: Past, card: GpuSample) -> Iterator[Finding]:
    """Somebody else's process holds memory on a card that our server uses."""
    status = past.now.status
    if card.processes is None or status.state not in _LIVE or card.visible is False:
        return
    name = f"foreign-process:{card.index}"
    limit = SMALL_BYTES if past.stands(name) else FOREIGN_BYTES
    others = [p for p in card.processes if not p.ours and (p.vram_bytes or 0) >= limit]
    # Right after a start the list of our own processes may be a moment old.
    if not others or not any(p.ours for p in card.processes):
        return
    held = sum(p.vram_bytes or 0 for p in others)
    who = ", ".join(f"{_command(p.pid)} (pid {p.pid})" for p in others[:3])
    fix = "end it, or move it to another card (`CUDA_VISIBLE_DEVICES`)"
    if card.display:
        fix = "if it is the desktop: log out and work over SSH, or put the display on another card; else end it"
    yield Finding(
        name,
        Severity.WARN,
        f"somebody else holds {held / MIB:,.0f} MiB on {_name(card)}",
        f"{who}: memory the server cannot have, and time on the card that spoils measurements",
        fix,
    )


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip() or "?"
    except OSError:
        return "?"


def _throttle(look: Look, index: int) -> tuple[str, ...]:
    card = _card(look, index)
    return (card.throttle or ()) if card else ()


def throttled(past: Past, card: GpuSample) -> Iterator[Finding]:
    """Heat or the board holds the clocks down for more than a moment."""
    name = f"throttled:{card.index}"

    def braked(look: Look) -> bool:
        return bool(_BRAKES & set(_throttle(look, card.index)))

    if not (any(map(braked, past.last(THROTTLE_S))) if past.stands(name) else past.held(THROTTLE_S, braked)):
        return
    lately = [word for look in past.last(THROTTLE_S) for word in _throttle(look, card.index)]
    words = ", ".join(word for word in dict.fromkeys(lately) if word in _BRAKES)
    yield Finding(
        name,
        Severity.WARN,
        f"{_name(card)} is held down: {words}",
        f"{units.number(card.temp_c, 0, ' °C')}, {units.number(card.power_w, 0, ' W')} of "
        f"{units.number(card.power_limit_w, 0, ' W')}, {units.number(card.sm_clock_mhz, 0, ' MHz')}",
        "air and fans first; with `power brake` the supply or its cable",
    )


def narrow_link(past: Past, card: GpuSample) -> Iterator[Finding]:
    """Under load the PCIe link runs below what card and slot can do; at idle that is normal."""

    def slow(look: Look, load: float = LOADED) -> bool:
        now = _card(look, card.index)
        return now is not None and (now.util or 0) >= load and _below(now)

    name = f"link-narrow:{card.index}"
    if not (slow(past.now, LOADED / 2) if past.stands(name) else past.held(LINK_S, slow)):
        return
    yield Finding(
        name,
        Severity.WARN,
        f"{_name(card)} runs on PCIe gen {units.number(card.pcie_gen, 0)} x{units.number(card.pcie_width, 0)} under "
        f"load, it can do gen {units.number(card.pcie_gen_max, 0)} x{units.number(_lanes(card), 0)}",
        "with tensor parallelism every layer's all-reduce crosses this link",
        "reseat card and riser, look at the slot's lanes in the board's manual, and at ASPM in its setup",
    )


def _lanes(card: GpuSample) -> int | None:
    """The lanes it can use: some drivers tell 16 for cards on which 8 are wired."""
    told = card.pcie_width_max
    return min(told, 8) if told is not None and _EIGHT_LANES.search(card.name or "") else told


def _below(card: GpuSample) -> bool:
    lanes = _lanes(card)
    narrower = card.pcie_width is not None and lanes is not None and card.pcie_width < lanes
    slower = card.pcie_gen is not None and card.pcie_gen_max is not None and card.pcie_gen < card.pcie_gen_max
    return narrower or slower


def replays(past: Past, card: GpuSample) -> Iterator[Finding]:
    """Packets are sent again: the link has errors."""
    then = _card(past.last(REPLAY_S)[0], card.index)
    if card.pcie_replays is None or then is None or then.pcie_replays is None:
        return
    risen = card.pcie_replays - then.pcie_replays
    name = f"pcie-replays:{card.index}"
    if risen < (1 if past.stands(name) else REPLAYS):
        return
    yield Finding(
        name,
        Severity.WARN,
        f"{_name(card)} had {risen} PCIe packets sent again within {REPLAY_S:.0f} s",
        f"{card.pcie_replays} since the driver started: the link has errors, often a riser or a dirty slot",
        "reseat card and riser; a generation lower in the board's setup is slower, but stable",
    )


def unreadable(past: Past) -> Iterator[Finding]:
    """The driver as a whole does not answer although it did."""
    cards, name = past.now.cards, "cards-unreadable"
    did = past.stands(name) or any(look.cards and not look.cards.problem for look in past.looks)
    if cards is not None and cards.problem and did:
        yield Finding(name, Severity.WARN, "the cards cannot be read any more", cards.problem, "it is tried again")


RULES: tuple[Callable[[Past, GpuSample], Iterator[Finding]], ...] = (
    lost,
    margin,
    foreign,
    throttled,
    narrow_link,
    replays,
)


def every(past: Past) -> Iterator[Finding]:
    """All rules over all cards; a lost card has no other finding."""
    yield from unreadable(past)
    # Where the driver as a whole is gone, that is the one cause of what every card lacks.
    for card in past.now.cards.cards if past.now.cards and not past.now.cards.problem else ():
        for rule in RULES[:1] if card.problem else RULES:
            yield from rule(past, card)
