"""Whether a busy server still moves: the figures that move, and since when they have not.

Kept in a small file, so that a `status` that looks once sees what the one before it saw. Seconds are those of the
monotonic clock, which all processes of one boot share and which stands still while the machine sleeps.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.server import shapes
from console.server.state import SCHEMA, read_json, write_text

if TYPE_CHECKING:
    from console.metrics.vllm import Counters

_LEAST_S = 120.0
_PROVED_LEAST_S = 60.0
_SLOWEST_TOKENS_PER_S = 300.0
"""A prefill slower than this is not expected of any preset: the reference machine does 950."""
_ROOM = 1.5
"""How much longer than the longest known prefill is still slow."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """What was seen of one life."""

    life: str
    moves: tuple[float | None, ...]
    """Token counters, finished requests, KV use: something of it moves while an engine works."""
    since: float
    """Since when nothing of it has moved although requests run or wait."""
    tokens: tuple[float | None, ...]
    tokens_since: float
    """Since when no token has come although requests run."""
    kv: float | None
    """KV use when the last token came."""


@dataclass(frozen=True, slots=True)
class Beat:
    """One look."""

    busy: bool | None
    still_s: float = 0.0
    """For how long nothing has moved; 0 for an idle server."""
    prefill_s: float = 0.0
    """For how long no token has come while KV use has risen: a long prompt is being read."""


def beat(path: Path, life: str, counters: Counters, clock: Callable[[], float] = time.monotonic) -> Beat:
    """Compare this page with what was seen before, and remember it."""
    if not counters.busy:
        # Whatever comes next begins anew.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        return Beat(counters.busy)
    now, old = clock(), _read(path, life)
    tokens = (counters.prompt_tokens, counters.generation_tokens)
    moves = (*tokens, counters.requests_finished, counters.cached_tokens, counters.preemptions, counters.kv_used)
    if old is None or old.since > now:
        old = Pulse(life, moves, now, tokens, now, counters.kv_used)
    same_tokens = tokens == old.tokens
    new = Pulse(
        life=life,
        moves=moves,
        since=old.since if moves == old.moves else now,
        tokens=tokens,
        tokens_since=old.tokens_since if same_tokens else now,
        kv=old.kv if same_tokens else counters.kv_used,
    )
    _keep(path, new)
    rising = counters.kv_used is not None and new.kv is not None and counters.kv_used > new.kv
    prefill_s = now - new.tokens_since if counters.running and rising else 0.0
    return Beat(True, now - new.since, prefill_s)


def stall_limit_s(max_model_len: int | None, proved_s: float | None, counters: Counters) -> float:
    """How long a busy server may stand still before it is called stalled: longer than its longest prefill takes.

    Args:
        max_model_len: the context in tokens.
        proved_s: what a prompt of nearly that length took here, when that was tried.
        counters: the page, whose prefill histogram tells how long this life's prefills were.
    """
    seen_s = _ROOM * _longest(counters)
    if proved_s is not None:
        return max(_PROVED_LEAST_S, _ROOM * proved_s, seen_s)
    return max(_LEAST_S, (max_model_len or 0) / _SLOWEST_TOKENS_PER_S, seen_s)


def _longest(counters: Counters) -> float:
    """Upper bound of the bucket that holds the longest prefill of this life; 0 when there was none."""
    below, longest = 0.0, 0.0
    for bound, count in counters.prefill.buckets if counters.prefill else ():
        if count > below:
            longest = bound if bound != float("inf") else longest
        below = count
    return longest


def _read(path: Path, life: str) -> Pulse | None:
    raw, _ = read_json(path)
    if raw is None or raw.get("life") != life:
        return None
    try:
        return _pulse(raw)
    except shapes.WRONG:
        return None


def _pulse(raw: Mapping[str, Any]) -> Pulse:
    return Pulse(
        life=raw["life"],
        moves=tuple(shapes.optional(shapes.number, one) for one in raw["moves"]),
        since=shapes.number(raw["since"]),
        tokens=tuple(shapes.optional(shapes.number, one) for one in raw["tokens"]),
        tokens_since=shapes.number(raw["tokens_since"]),
        kv=shapes.optional(shapes.number, raw["kv"]),
    )


def _keep(path: Path, pulse: Pulse) -> None:
    """By atomic replace and without waiting for the disk: what is lost is seen again."""
    value = {name: getattr(pulse, name) for name in Pulse.__slots__}
    # What is lost is seen again: the disk need not be waited for.
    with suppress(OSError):
        write_text(path, json.dumps({"schema": SCHEMA, **value}), sync=False)
