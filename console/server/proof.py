"""Whether one prompt of nearly the whole context was answered with a preset's settings, and what it took; on disk."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console import units
from console.paths import Paths
from console.presets import Preset
from console.server import shapes
from console.server.chain import Link
from console.server.fingerprint import file_name, fingerprint
from console.server.state import SCHEMA, read_json, write_json

LINK = "long prompt"
_THIN_BYTES = 256 * 1024**2
"""A margin below this goes with the next larger desktop."""


@dataclass(frozen=True, slots=True)
class CardPeak:
    """One card while the prompt was read. Bytes."""

    index: int
    peak: int
    total: int | None
    margin: int | None
    """The least that was free."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of the prompt."""

    fingerprint: str
    at: str
    """UTC."""
    version: str | None
    prompt_tokens: int
    max_model_len: int
    seconds: float
    ok: bool
    why: str | None = None
    """What went wrong."""
    cards: tuple[CardPeak, ...] = ()

    @property
    def margin(self) -> int | None:
        """The thinnest of the cards' margins, in bytes."""
        return min((card.margin for card in self.cards if card.margin is not None), default=None)


def proof_file(paths: Paths, preset: str) -> Path:
    """The last proof of this preset."""
    return paths.state / "proofs" / f"{file_name(preset)}.json"


def write_proof(paths: Paths, preset: str, proof: Proof) -> None:
    """Keep it; a disk that does not take it costs the memory of it."""
    path = proof_file(paths, preset)
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_json(path, {"schema": SCHEMA, **asdict(proof)})


def read_proof(paths: Paths, preset: Preset) -> Proof | None:
    """The proof of exactly these settings; `None` when there is none."""
    raw, _ = read_json(proof_file(paths, preset.name))
    if raw is None or raw.get("fingerprint") != fingerprint(preset):
        return None
    try:
        return _proof(raw)
    except shapes.WRONG:
        return None


def _proof(raw: Mapping[str, Any]) -> Proof:
    return Proof(
        fingerprint=str(raw["fingerprint"]),
        at=str(raw["at"]),
        version=shapes.optional(shapes.text, raw["version"]),
        prompt_tokens=shapes.whole(raw["prompt_tokens"]),
        max_model_len=shapes.whole(raw["max_model_len"]),
        seconds=shapes.number(raw["seconds"]),
        ok=bool(raw["ok"]),
        why=shapes.optional(shapes.text, raw["why"]),
        cards=tuple(_card(card) for card in raw["cards"]),
    )


def _card(raw: Mapping[str, Any]) -> CardPeak:
    known = (shapes.optional(shapes.whole, raw[name]) for name in ("total", "margin"))
    return CardPeak(shapes.whole(raw["index"]), shapes.whole(raw["peak"]), *known)


def proof_link(proof: Proof | None, version: str | None) -> Link:
    """The proof as a link of the execution chain."""
    fix = "`qwen-console up --prove` sends one prompt of nearly the whole context: some settings start and die there"
    if proof is None:
        return Link(LINK, "not proved with these settings", "unknown", "", fix)
    if not proof.ok:
        value = f"failed at {proof.prompt_tokens:,} tokens: {proof.why or units.NA}"
        return Link(LINK, value, "look", f"tried {proof.at}", "smaller --max-num-batched-tokens or --max-model-len")
    value = f"{proof.prompt_tokens:,} tokens in {units.seconds(proof.seconds)}"
    margin = proof.margin
    if margin is not None:
        value += f", {units.gib(margin)} of VRAM left"
    evidence = f"proved {proof.at} on vLLM {proof.version or units.NA}"
    if version and proof.version and version != proof.version:
        return Link(LINK, value, "unknown", f"{evidence}, this is {version}", fix)
    if margin is not None and margin < _THIN_BYTES:
        return Link(
            LINK, value, "look", evidence, "lower --gpu-memory-utilization or --max-num-batched-tokens a little"
        )
    return Link(LINK, value, "ok", evidence)
