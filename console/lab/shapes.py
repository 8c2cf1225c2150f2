"""How large the workloads of a run are: from the size asked for, the cache block, and what the preset allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from console.lab.arms import BUDGET, decode_share, effective_chunk
from console.presets import Preset

SIZES = ("small", "normal", "full")
BLOCK_TOKENS = 1600
"""The cache block assumed where no server has told its own: that of this model family with FP8 KV."""
TRIGGER = 8
"""Arrivals of a stream before a long prompt is sent beside it."""
_MARGIN = 256
"""Tokens below the context that the longest prompt leaves free."""
_SESSIONS = (2, 8)
_DEFAULT_BUDGET = 2048
_STARVED = 512
"""Answer tokens of a stream whose neighbour gets no prefill at all while it decodes."""


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
    clashes: int = 0
    """How often a cold long prompt arrives beside a stream."""
    clash_prompt_tokens: int = 0
    clash_answer_tokens: int = 0
    """Of the stream: enough to outlast the prefill beside it."""
    sessions: int = 0
    session_requests: int = 0
    session_prompt_tokens: int = 0
    session_answer_tokens: int = 0
    recall_tokens: int = 0
    """Length of the prompt that hides a fact near the context's end; 0 asks for none."""
    replays: int = 0
    """Recorded requests of the user's own."""
    warm_up_prefix_tokens: int = 0
    """Of the warm-up's long prompt; 0: as long as the agent's."""
    probe_blocks: int = 2
    """Cache blocks of the prefix cache's own probe; 0 leaves it out."""

    def requests(self, workloads: Sequence[str]) -> int:
        """Measured requests of one boot."""
        counts = {
            "agent": self.conversations * (2 + self.turns),
            "decode": self.decodes,
            "interference": 2 * self.clashes,
            "concurrent": self.sessions * self.session_requests,
            "replay": self.replays,
        }
        return sum(counts[name] for name in workloads)

    def to_json(self) -> dict[str, Any]:
        """For plan.json."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Shape:
        """The inverse of `to_json`."""
        return cls(**raw)


def shape_for(size: str, block_tokens: int, arms: Sequence[Preset], replays: int = 0) -> Shape:
    """The shape of a size: a prefix of so many cache blocks, kept below four fifths of the shortest context."""
    context = min((n for arm in arms if (n := arm.max_model_len) is not None), default=None)
    # Under speculation the last cached block is computed again: a prefix of one block would show nothing cached. Equal
    # for all arms and kinds, so that runs can lend their spread to each other.
    blocks, conversations, turns, turn, decodes, answer = {
        "small": (2.25, 1, 2, 96, 3, 48),
        "normal": (3.25, 2, 4, 256, 6, 192),
        "full": (10.25, 3, 8, 512, 10, 512),
    }[size]
    # Somebody looks on while a demo's run goes on.
    shown = size == "small" and all(arm.simulated for arm in arms)
    answer = 32 if shown else answer
    prefix = int(blocks * block_tokens)
    if context is not None:
        prefix = min(prefix, int(context * 0.8) - turns * turn)
        answer = min(answer, context // 8)
    probes = {"small": (1, 1), "normal": (4, 8), "full": (8, 24)}[size]
    clash = _clash(size, block_tokens, context, arms)
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
        warm_up_prefix_tokens=_warm_up_prefix(size, max(prefix, 256), block_tokens, shown),
        clashes={"small": 1, "normal": 2, "full": 3}[size],
        clash_prompt_tokens=clash[0],
        clash_answer_tokens=clash[1],
        sessions=_sessions(size, arms),
        session_requests={"small": 1, "normal": 2, "full": 4}[size],
        session_prompt_tokens={"small": 128, "normal": 256, "full": 1024}[size],
        session_answer_tokens=min({"small": 32, "normal": 128, "full": 256}[size], answer),
        # The agent's turns show the same, and the stand-in makes words up: nobody waits for these.
        probe_blocks=0 if shown else 2,
        recall_tokens=0 if shown else _recall(size, max(prefix, 256), context),
        replays=replays,
    )


def _clash(size: str, block_tokens: int, context: int | None, arms: Sequence[Preset]) -> tuple[int, int]:
    """Tokens of the long prompt, and of the answer of the stream beside it, in the arm with the smallest chunks."""
    prompt = int({"small": 2.25, "normal": 4.25, "full": 10.25}[size] * block_tokens)
    if context is not None:
        prompt = min(prompt, int(context * 0.8))
    prompt = max(prompt, 256)
    chunk = min(_chunk(arm, block_tokens) for arm in arms)
    steps = -(-prompt // chunk) if chunk else _STARVED
    drafts = max(decode_share(arm, 1) for arm in arms)
    answer = TRIGGER * drafts + drafts * (steps + 8)
    room = _STARVED if context is None else min(_STARVED, context // 4)
    return prompt, min(answer, max(room, 2 * TRIGGER))


def _chunk(arm: Preset, block_tokens: int) -> int:
    """Prefill tokens a step beside one stream."""
    effective = effective_chunk(arm, block_tokens, 1)
    if effective is not None:
        return effective
    budget = arm.args.get(BUDGET)
    return max(1, (budget if isinstance(budget, int) else _DEFAULT_BUDGET) - decode_share(arm, 1))


def _sessions(size: str, arms: Sequence[Preset]) -> int:
    """As many sessions as every arm decodes at once, within reason."""
    least, most = _SESSIONS
    allowed = min((n for arm in arms if isinstance(n := arm.args.get("max-num-seqs"), int)), default=most)
    return min(max(allowed, least), least if size == "small" else most)


def _warm_up_prefix(size: str, prefix: int, block_tokens: int, shown: bool) -> int:
    """The stand-in has no kernels that a long prompt would have to find."""
    if size != "small":
        return 0
    return min(prefix, 256 if shown else int(1.25 * block_tokens))


def _recall(size: str, prefix: int, context: int | None) -> int:
    if context is None:
        return 0
    near = context - _MARGIN
    return max(0, min(near, prefix) if size == "small" else near)
