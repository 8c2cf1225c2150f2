"""How long an engine step takes on two RTX 5060 Ti, as reported for them; pure and seeded.

Fitted to public figures of other people's machines, not to measurements of ours: prefill by chunk budget (886.6 to
952.5 tok/s over a prompt of 118,660 tokens), decode 33.5 tok/s plain, 67 to 78 tok/s with two or three draft tokens.
All times are seconds.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

REFERENCE_PROMPT = 118_660
PREFILL_RATES = ((512, 886.6), (1024, 912.5), (1600, 921.6), (2048, 952.5))
"""Chunk budget in tokens → tokens a second over the reference prompt, attention over the growing context included."""
ATTENTION_S = 2.1e-9
"""One prefill token looking at one token of context: an eighth of the reference prompt's time in all."""
FORWARD_S = 0.030
"""The floor of any forward pass: reading 11.6 GiB of weights at 448 GB/s, and the launches."""
DECODE_S = 1 / 33.5
DECODE_CONTEXT_S = 4.7e-8
"""Reading one token of FP8 KV back during decode."""
SHARE_S = 0.055
"""What each further stream adds to a decode step, as a share of it: several streams grow sublinearly."""
ROW_S = 0.0004
"""One decode row riding in a prefill step."""
DRAFT_S = (0.0, 0.0020, 0.0042, 0.0152, 0.0210, 0.0275)
"""What drafting and verifying n tokens adds to a step; fitted to the figures of n=2 and n=3, not explained by them."""
EAGER_S = 0.009
"""Kernel launches of one step without CUDA graphs."""

ACCEPTANCE = (0.85, 0.72, 0.50, 0.36, 0.26)
"""How often the draft at each position is right, over all drafts: the later ones come from the same layer again."""
TAIL_ACCEPTANCE = 0.97
"""Text past its natural end repeats itself and drafts too easily."""

BOOT_SD = 0.014
"""Between boots: the range over four boots of one configuration is then about 2.8 %."""
RUN_SD = 0.002
"""Between two busy stretches of one boot."""
STEP_SD = 0.004
"""Between steps; averages out within a request."""


@dataclass(frozen=True, slots=True)
class Build:
    """What of a command line decides the speed of a step."""

    drafts: int = 0
    tensor_parallel: int = 2
    eager: bool = False
    weight_only: bool = False
    """FP4 weights unpacked by a weight-only kernel instead of native FP4 arithmetic."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one prompt in one step."""

    tokens: int
    context: int
    """Tokens of the prompt that are in the cache already."""


def _attention(tokens: int, context: float) -> float:
    return ATTENTION_S * tokens * (context + tokens / 2)


def _linear_points() -> tuple[tuple[int, float], ...]:
    """Step time of a whole chunk without attention, at each reported chunk size."""
    share = ATTENTION_S * REFERENCE_PROMPT / 2
    return ((0, FORWARD_S), *((size, size * (1 / rate - share)) for size, rate in PREFILL_RATES))


_POINTS = _linear_points()


def linear(tokens: int) -> float:
    """Time of the linear layers for `tokens` prompt tokens in one step."""
    sizes = [size for size, _ in _POINTS]
    high = bisect_left(sizes, tokens)
    if high >= len(_POINTS):
        size, seconds = _POINTS[-1]
        return seconds * tokens / size
    if high == 0:
        return _POINTS[0][1]
    (left, a), (right, b) = _POINTS[high - 1], _POINTS[high]
    return a + (b - a) * (tokens - left) / (right - left)


class Timing:
    """Step times of one boot; the same seed gives the same boot."""

    def __init__(self, build: Build, seed: int) -> None:
        self._build = build
        self._rng = random.Random(f"timing {seed}")
        self.boot_factor = math.exp(max(-2.0, min(2.0, self._rng.gauss())) * BOOT_SD)
        self._run_factor = 1.0
        self._scale = math.pow(2 / build.tensor_parallel, 0.85)

    def new_run(self) -> None:
        """The engine goes from idle to busy: clocks and heat are a little different each time."""
        self._run_factor = math.exp(self._rng.gauss() * RUN_SD)

    def step(self, chunks: Sequence[Chunk], streams: int, context: int) -> float:
        """Seconds of one engine step with noise.

        Args:
            chunks: prompt pieces computed in it.
            streams: requests that decode in it.
            context: tokens those streams have in the cache, together.
        """
        noise = 1 + self._rng.gauss() * STEP_SD
        return self.ideal(chunks, streams, context) * self.boot_factor * self._run_factor * noise

    def ideal(self, chunks: Sequence[Chunk], streams: int, context: int) -> float:
        """Seconds of one engine step on the reference machine, without noise."""
        build = self._build
        seconds = self._prefill(chunks, streams) if chunks else self._decode(streams)
        seconds += context * DECODE_CONTEXT_S
        if build.eager:
            seconds += EAGER_S
        return seconds * self._scale

    def _prefill(self, chunks: Sequence[Chunk], streams: int) -> float:
        build = self._build
        seconds = linear(sum(chunk.tokens for chunk in chunks))
        if build.weight_only:
            seconds *= 1.7
        seconds += sum(_attention(chunk.tokens, chunk.context) for chunk in chunks)
        return seconds + ROW_S * streams * (1 + build.drafts)

    def _decode(self, streams: int) -> float:
        build = self._build
        extra = DRAFT_S[min(build.drafts, len(DRAFT_S) - 1)]
        base = DECODE_S * (1.05 if build.weight_only else 1.0) + extra
        return base * (1 + SHARE_S * max(0, streams - 1))


def accepted(rng: random.Random, drafts: int, *, tail: bool) -> int:
    """How many of `drafts` draft tokens are right, counted from the first."""
    count = 0
    for position in range(drafts):
        if rng.random() >= _conditional(position, tail):
            break
        count += 1
    return count


def _conditional(position: int, tail: bool) -> float:
    if tail:
        return TAIL_ACCEPTANCE
    last = len(ACCEPTANCE) - 1
    if position == 0:
        return ACCEPTANCE[0]
    if position > last:
        return ACCEPTANCE[last] / ACCEPTANCE[last - 1]
    return ACCEPTANCE[position] / ACCEPTANCE[position - 1]
