"""How large the workloads of a run are, and how long they will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

SIZES = ("small", "normal", "full")
BLOCK_TOKENS = 1600
"""The cache block assumed where no server has told its own: that of this model family with FP8 KV."""

# Figures reported for the reference machine; they only make estimates, never a result.
_PREFILL_TOKENS_PER_S = 930.0
_DECODE_TOKENS_PER_S = 33.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Token counts and request counts of one boot's workloads; the same for every arm of a run."""

    conversations: int
    prefix_tokens: int
    """The first turn's whole prompt; turns add to it."""
    turns: int
    """Warm turns of a conversation, after the cold one and its priming repeat."""
    turn_tokens: int
    """What a turn adds: the answer before it and a tool's result."""
    turn_answer_tokens: int
    decodes: int
    decode_prompt_tokens: int
    decode_answer_tokens: int
    tool_probes: int
    schema_probes: int
    warm_up_least: int
    warm_up_most: int
    warm_up_answer_tokens: int

    @property
    def requests(self) -> int:
        """Measured requests of one boot."""
        return self.conversations * (2 + self.turns) + self.decodes

    def to_json(self) -> dict[str, Any]:
        """For plan.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Shape:
        """The inverse of `to_json`."""
        return cls(**raw)


def shape_for(size: str, block_tokens: int, context_tokens: int | None) -> Shape:
    """The shape of a size: a prefix of so many cache blocks, kept below four fifths of the context."""
    blocks, conversations, turns, turn, decodes, answer = {
        "small": (1.25, 1, 2, 96, 3, 48),
        "normal": (3.25, 2, 4, 256, 6, 192),
        "full": (10.25, 3, 8, 512, 10, 512),
    }[size]
    prefix = int(blocks * block_tokens)
    if context_tokens is not None:
        prefix = min(prefix, int(context_tokens * 0.8) - turns * turn)
        answer = min(answer, context_tokens // 8)
    probes = {"small": (1, 1), "normal": (4, 8), "full": (8, 24)}[size]
    return Shape(
        conversations=conversations,
        prefix_tokens=max(prefix, 256),
        turns=turns,
        turn_tokens=turn,
        turn_answer_tokens=8 if size == "small" else 32,
        decodes=decodes,
        decode_prompt_tokens=128,
        decode_answer_tokens=answer,
        tool_probes=probes[0],
        schema_probes=probes[1],
        warm_up_least=2,
        warm_up_most=3 if size == "small" else 6,
        warm_up_answer_tokens=16 if size == "small" else answer,
    )


def boot_seconds(shape: Shape, start_s: float, block_tokens: int) -> float:
    """Roughly how long one boot takes, start and stop included."""
    cold = 2 * shape.conversations + 1
    tokens = cold * shape.prefix_tokens + shape.conversations * shape.turns * min(
        shape.prefix_tokens, block_tokens // 2 + shape.turn_tokens
    )
    answers = (shape.conversations * (2 + shape.turns) + 1) * shape.turn_answer_tokens
    answers += shape.decodes * shape.decode_answer_tokens + shape.warm_up_least * shape.warm_up_answer_tokens
    return start_s + 3.0 + tokens / _PREFILL_TOKENS_PER_S + answers / _DECODE_TOKENS_PER_S
