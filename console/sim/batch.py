"""What the scheduler handles: requests, their share of a step, and what they get out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from console.sim.blocks import Holding

Finish = Literal["stop", "length", "abort"]
COLLAPSE_AT = 32_768
"""The position whose first crossing ends all acceptance in some versions, until a restart."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What of a command line decides the scheduling."""

    budget: int = 2048
    """Tokens in a step."""
    streams: int = 256
    """Requests that run together."""
    block: int = 1600
    kv_tokens: int = 122_880
    max_len: int = 102_400
    prefix_caching: bool = True
    drafts: int = 0
    collapse: bool = False
    """Acceptance drops to nothing when a request first crosses `COLLAPSE_AT`."""


@dataclass(slots=True, eq=False)
class Request:
    """One request through its life. Times are the driver's clock, seconds."""

    id: str
    prompt: list[int]
    max_tokens: int
    write: Callable[[int], list[int]]
    """The next n tokens of the answer."""
    natural: int = 1 << 60
    """Tokens after which the answer is over, the end token included."""
    ignore_eos: bool = False
    salt: str = ""
    arrived: float = 0.0
    scheduled: float | None = None
    first: float | None = None
    last: float | None = None
    computed: int = 0
    """Tokens, of prompt and answer, that the cache holds."""
    cached: int = 0
    """Prompt tokens that came from the prefix cache when it was first admitted."""
    generated: int = 0
    preemptions: int = 0
    finish: Finish | None = None
    tokens: list[int] = field(default_factory=list)
    """Prompt, then answer."""
    keys: list[bytes] = field(default_factory=list)
    holding: Holding = field(default_factory=Holding)
    junction: int = 0
    """Where another prompt parts from this one: prefill stops there once, so that the state is kept."""

    @property
    def prefilling(self) -> bool:
        """Whether the next step computes prompt (or, after a preemption, what is known of the answer)."""
        return self.computed < self.replay

    @property
    def replay(self) -> int:
        """Tokens to compute before a new one can come."""
        return len(self.prompt) if not self.generated else len(self.tokens) - 1


@dataclass(frozen=True, slots=True)
class Piece:
    """One request's share of a step."""

    request: Request
    tokens: int


@dataclass(frozen=True, slots=True)
class Step:
    """One forward pass."""

    prefill: tuple[Piece, ...]
    decode: tuple[Request, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Draft:
    """One verified draft: how many tokens it had, how many were right."""

    tokens: int
    accepted: int


@dataclass(frozen=True, slots=True)
class Output:
    """What one request got out of one step."""

    request: Request
    tokens: tuple[int, ...]
    first: bool
    gap: float | None
    """Seconds since the request's previous output."""
    draft: Draft | None = None


@dataclass(slots=True)
class Admissions:
    """What happened at the door since it was last asked."""

    queried: int = 0
    """Prompt tokens looked up in the prefix cache."""
    hit: int = 0
    preemptions: int = 0
