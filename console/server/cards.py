"""The cards around a server's life: what was free before it, who holds memory, and when a stop has given it back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from console.gpu.patience import read_within
from console.gpu.sample import GpuProcess, GpuReport, GpuSample, GpuSource
from console.presets import Preset
from console.server import shapes
from console.server.process import read_stat
from console.server.state import SCHEMA, read_json, write_json
from console.units import gib

SLACK_BYTES = 300 * 1024**2
"""A desktop on the card moves by itself; so much less than before counts as given back."""
RELEASE_S = 45.0
"""What the driver may take to give back the memory of processes that have ended."""
_LAG_S = 10.0
"""How long memory may be missing that no process of ours holds: then somebody else has it."""
_LOOK_S = 5.0
"""A driver that hangs must not hang a stop."""
_EVERY_S = 0.25
_USUAL_SHARE = 0.9
"""`gpu-memory-utilization` where the preset does not set it: 0.9 in most versions, 0.92 in the newest."""

OpenCards = Callable[[], GpuSource]
Tell = Callable[[str], None]


def own_cards() -> GpuSource:
    """The machine's own cards."""
    # Imported here: the first frame of the console must not wait for it.
    from console.gpu.source import open_source

    return open_source(None, frozenset)


@dataclass(frozen=True, slots=True)
class Before:
    """One card before a start; free bytes."""

    key: str
    """The card's UUID, else its index: cards may change places."""
    free: int


@dataclass(frozen=True, slots=True)
class Released:
    """What became of the cards' memory after a stop."""

    left: tuple[tuple[int, str], ...] = ()
    """Processes of ours that the driver still counts (pid, why)."""
    notes: tuple[str, ...] = ()
    """What else the next start should know."""


def look(open_cards: OpenCards, within_s: float = _LOOK_S) -> GpuReport | None:
    """One look at the cards; `None` when the driver does not answer in time."""
    try:
        return read_within(open_cards, lambda source: source.read(), within_s)
    except Exception:  # noqa: BLE001 - a start or a stop goes on without its cards
        return None


def used_by(preset: Preset, report: GpuReport) -> tuple[GpuSample, ...]:
    """The cards that a server of this preset runs on, as far as its ranks tell."""
    seen = [card for card in report.cards if card.visible is not False]
    ranks = [preset.args.get(key, 1) for key in ("tensor-parallel-size", "pipeline-parallel-size")]
    count = 1
    for rank in ranks:
        count *= rank if isinstance(rank, int) and rank > 0 else 1
    return tuple(seen[:count])


def wanted_share(preset: Preset) -> float | None:
    """The part of a card that must be free at a start; `None` where the cache's size is pinned instead."""
    if preset.args.get("kv-cache-memory-bytes") or preset.args.get("kv-cache-memory"):
        return None
    share = preset.args.get("gpu-memory-utilization", _USUAL_SHARE)
    return float(share) if isinstance(share, int | float) and 0 < share <= 1 else None


def too_little(preset: Preset, report: GpuReport) -> str | None:
    """That a start of this preset will not find the memory it wants, and who holds it."""
    share = wanted_share(preset)
    if share is None:
        return None
    for card in used_by(preset, report):
        free, total = card.margin_bytes, card.vram_total_bytes
        if free is None or total is None or free >= share * total:
            continue
        told = f"card {card.index} has {gib(free)} free, {gib(share * total)} are wanted"
        who = holders(card)
        return f"{told}; held by {who}" if who else told
    return None


def holders(card: GpuSample, but: Iterable[int] = ()) -> str:
    """Who holds memory on a card, the largest first; empty where the card does not say, or nobody does."""
    others = [process for process in card.processes or () if process.pid not in set(but)]
    others.sort(key=lambda process: process.vram_bytes or 0, reverse=True)
    return ", ".join(_named(process) for process in others[:4])


def _named(process: GpuProcess) -> str:
    stat = read_stat(process.pid)
    size = f" {gib(process.vram_bytes)}" if process.vram_bytes is not None else ""
    return f"{stat.name if stat else 'a process'} (pid {process.pid}){size}"


def on_the_cards(report: GpuReport, ours: frozenset[int]) -> str:
    """Free memory and holders of each card, for a diagnosis; empty without cards."""
    told = []
    for card in report.cards:
        if card.problem or card.margin_bytes is None:
            continue
        who = holders(card, ours)
        told.append(f"card {card.index}: {gib(card.margin_bytes)} free" + (f", held by {who}" if who else ""))
    return "; ".join(told)


def cards_file(state: Path) -> Path:
    """What was free before the life that runs or ran last."""
    return state / "cards.json"


def write_before(path: Path, life: str, report: GpuReport, short: str | None) -> None:
    """Keep what is free before a start; a disk that does not take it costs the comparison only."""
    free = [{"key": _key(card), "free": card.margin_bytes} for card in report.cards if card.margin_bytes is not None]
    with suppress(OSError):
        write_json(path, {"schema": SCHEMA, "life": life, "cards": free, "short": short})


def read_before(path: Path, life: str) -> tuple[tuple[Before, ...], str | None]:
    """What was free before that life, and whether that was too little; empty when it was not seen."""
    raw, _ = read_json(path)
    if raw is None or raw.get("life") != life:
        return (), None
    try:
        cards = tuple(Before(str(card["key"]), shapes.whole(card["free"])) for card in raw["cards"])
        return cards, str(raw["short"]) if raw["short"] else None
    except shapes.WRONG:
        return (), None


def _key(card: GpuSample) -> str:
    return card.uuid or str(card.index)


@dataclass(frozen=True, slots=True)
class Wait:
    """What a stop waits for on the cards.

    Attributes:
        ours: pids of the life that was stopped.
        before: what was free before it.
        share: the part of a card that the next start wants; `None`: as much as before.
    """

    ours: frozenset[int]
    before: tuple[Before, ...] = ()
    share: float | None = None

    def held(self, card: GpuSample) -> tuple[GpuProcess, ...]:
        """Processes of ours that still hold memory on it."""
        return tuple(process for process in card.processes or () if process.pid in self.ours)

    def missing(self, card: GpuSample) -> int | None:
        """Bytes that are less free than the next start needs; `None` when nothing is known to miss.

        Where the card lists its processes, what the next start wants is enough; where it does not, only what was free
        before tells whether ours are gone.
        """
        free = card.margin_bytes
        was = next((one.free for one in self.before if one.key == _key(card)), None)
        if free is None or was is None:
            return None
        need = was - SLACK_BYTES
        if card.processes is not None and self.share and card.vram_total_bytes:
            need = min(need, round(self.share * card.vram_total_bytes))
        return need - free if free < need else None

    def over(self, card: GpuSample) -> bool:
        """Whether this card is ready for the next start."""
        return bool(card.problem) or (not self.held(card) and self.missing(card) is None)


def wait_released(
    open_cards: OpenCards, wait: Wait, tell: Tell = lambda _text: None, limit_s: float = RELEASE_S
) -> Released:
    """Wait until no process of ours holds memory on any card and enough is free; what stays, with its reason."""
    begun = time.monotonic()
    gone_at: float | None = None
    told = False
    while True:
        report = look(open_cards)
        if report is None:
            return Released(notes=("the driver does not answer: whether the cards' memory is free is not known",))
        if all(wait.over(card) for card in report.cards):
            return Released()
        now = time.monotonic()
        held = any(wait.held(card) for card in report.cards)
        gone_at = None if held else (gone_at or now)
        if now - begun > limit_s or (gone_at is not None and now - gone_at > _LAG_S):
            return _what_stays(report, wait)
        if not told:
            told = True
            tell("waiting for the cards' memory")
        time.sleep(_EVERY_S)


def _what_stays(report: GpuReport, wait: Wait) -> Released:
    left, notes = [], []
    for card in report.cards:
        if card.problem:
            continue
        left += [(process.pid, _why_held(process, card)) for process in wait.held(card)]
        missing = wait.missing(card)
        if missing is not None and not wait.held(card):
            who = holders(card)
            text = f"card {card.index} has {gib(card.margin_bytes)} free, {gib(missing)} less than the next start needs"
            notes.append(f"{text}; held by {who}" if who else f"{text}; no process is listed for it")
    return Released(tuple(left), tuple(notes))


def _why_held(process: GpuProcess, card: GpuSample) -> str:
    size = gib(process.vram_bytes) if process.vram_bytes is not None else "memory"
    stat = read_stat(process.pid)
    if stat is None:
        return f"it has ended, but the driver still counts {size} on card {card.index} for it"
    if stat.deaf:
        return f"{stat.name} hangs in the kernel (state D, often a driver) and holds {size} on card {card.index}"
    return f"{stat.name} holds {size} on card {card.index}"
