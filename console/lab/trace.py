"""One streamed request as it was seen: raw stamps, token counts, how it ended; and the measures made of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

OK = "ok"
DEATHLY = frozenset({"error-event", "http-error", "cut", "timeout", "refused"})
"""Outcomes after which one has to look whether the server still lives."""


@dataclass(slots=True)
class Trace:
    """One request. Stamps are seconds after `sent`, which is monotonic.

    An arrival is one read from the socket that brought tokens: events that a proxy glued into one write were seen at
    one moment and are one arrival.
    """

    sent: float = 0.0
    """Monotonic time at which the request was written."""
    stamps: list[float] = field(default_factory=list)
    """One per arrival, the first with content, reasoning or a tool call onwards."""
    tokens: list[int | None] = field(default_factory=list)
    """Output tokens received by then; `None` where the server does not say."""
    role_at: float | None = None
    """A chunk that only names the role: not a token."""
    content_at: float | None = None
    """First content, where reasoning came before."""
    ended: float | None = None
    outcome: str = "cut"
    """ok, http-error, error-event, cut, timeout, refused, wrong-length."""
    detail: str = ""
    status: int | None = None
    finish: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    """Prompt tokens taken from the cache; `None` unless the server reports them, which is not 0."""
    connect_s: float | None = None
    """Seconds to connect, before `sent`: not part of any measure."""
    ids: list[int] = field(default_factory=list)
    """Token ids of the answer, where they were asked for and the server gives them."""
    natural: int | None = None
    """Tokens up to the answer's own end, its end token included; `None` if it was not seen to end by itself."""

    @property
    def ok(self) -> bool:
        """Whether it counts as measured."""
        return self.outcome == OK

    @property
    def ttft_s(self) -> float | None:
        """Request written → first content, reasoning or tool call."""
        return self.stamps[0] if self.stamps else None

    @property
    def past_natural(self) -> int:
        """Tokens written past the answer's own end: text that drafts too easily, and no part of any measure."""
        return max(0, (self.completion_tokens or 0) - self.natural) if self.natural is not None else 0

    @property
    def counted(self) -> int:
        """Arrivals that end before the answer's own end, or all of them."""
        if self.natural is None:
            return len(self.stamps)
        return sum(1 for count in self.tokens if count is not None and count <= self.natural)

    @property
    def tpot_s(self) -> float | None:
        """(last - first) / (n - k): n output tokens before the answer's own end, k of them in the first arrival."""
        last = self.counted - 1
        if last < 1 or self.completion_tokens is None:
            return None
        whole = last == len(self.stamps) - 1
        tokens = self.completion_tokens if whole else self.tokens[last]
        first = self.tokens[0]
        if first is None:
            # Without running counts k is known only if every arrival was one token.
            first = 1 if len(self.stamps) == self.completion_tokens else None
        if first is None or tokens is None or tokens <= first:
            return None
        return (self.stamps[last] - self.stamps[0]) / (tokens - first)

    @property
    def gap_s(self) -> float | None:
        """Mean time between successive arrivals: what the eye sees as smoothness, whatever they hold."""
        last = self.counted - 1
        return (self.stamps[last] - self.stamps[0]) / last if last > 0 else None

    @property
    def steps(self) -> list[int]:
        """Tokens of each arrival after the first, before the answer's own end."""
        counts = [count for count in self.tokens[: self.counted] if count is not None]
        return [after - before for before, after in pairwise(counts)] if len(counts) == self.counted else []

    def gaps(self, start: float, end: float) -> list[float]:
        """Times between arrivals, of those gaps that touch the span from `start` to `end` (seconds after `sent`)."""
        return [after - before for before, after in pairwise(self.stamps) if after > start and before < end]

    def to_json(self) -> dict[str, Any]:
        """For the journal; stamps to the microsecond."""
        return {
            "sent": round(self.sent, 6),
            "stamps": [round(stamp, 6) for stamp in self.stamps],
            "tokens": self.tokens,
            "role_at": _rounded(self.role_at),
            "content_at": _rounded(self.content_at),
            "ended": _rounded(self.ended),
            "outcome": self.outcome,
            "detail": self.detail,
            "status": self.status,
            "finish": self.finish,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "cached_tokens": self.cached_tokens,
            "connect_s": _rounded(self.connect_s),
            "ids": self.ids,
            "natural": self.natural,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Trace:
        """The inverse of `to_json`; unknown keys are ignored.

        Raises:
            ValueError, TypeError: no request can have been seen like this.
        """
        found = cls(**{name: raw[name] for name in cls.__dataclass_fields__ if name in raw})
        counts = [count for count in found.tokens if count is not None]
        if len(found.tokens) != len(found.stamps) or not (_rising(found.stamps) and _rising(counts)):
            raise ValueError("stamps or counts that no stream can have")
        return found


def _rising(values: Sequence[float]) -> bool:
    """Finite, none negative, and none less than the one before."""
    return all(0 <= before <= after < math.inf for before, after in pairwise([0, *values]))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
