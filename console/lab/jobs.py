"""The requests of one boot, and which of them belong together in time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Message = Mapping[str, Any]
GREEDY = "greedy"
"""The phase of those decodes that always take the likeliest word: their answers are held together between arms."""


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a boot."""

    workload: str
    """agent, decode, interference, concurrent, replay or warm-up."""
    phase: str
    """cold, prime, warm, decode, greedy, stream, intruder, session or replay."""
    key: str
    """Pairs the requests of two arms within a round."""
    messages: tuple[Message, ...]
    prompt_tokens: int | None
    """Exact; `None` for a recorded request, which is sent as it is."""
    answer_tokens: int | None
    """Exact; `None` where the answer ends by itself."""
    salt: str
    ids: bool = False
    """Whether the answer's token ids come along: for its natural end, and for the first divergence."""
    recorded: Mapping[str, Any] | None = None
    """The rest of a recorded request."""

    def body(self, model: str) -> bytes:
        """The JSON of the streamed request, with running token counts; made ones have a fixed length.

        Words are drawn as the model's own `generation_config` says, since that is what an agent gets and what drafts
        are accepted under; without a seed, for which vLLM would leave its fast sampler. Greedy ones stand beside them.
        """
        request: dict[str, Any] = {"model": model, "messages": list(self.messages)}
        if self.recorded is not None:
            request |= self.recorded
        else:
            # Without min_tokens: it would forbid the end token instead of running past it.
            request |= {"max_tokens": self.answer_tokens, "ignore_eos": True}
            if self.phase == GREEDY:
                request["temperature"] = 0
        if self.ids:
            request["return_token_ids"] = True
        request |= {
            "cache_salt": self.salt,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        return json.dumps(request).encode()

    @property
    def timeout_s(self) -> float:
        """After so long there will be no answer."""
        prompt, answer = self.prompt_tokens or 20_000, self.answer_tokens or 4000
        return 120.0 + 0.02 * prompt + 1.0 * answer


@dataclass(frozen=True, slots=True)
class Act:
    """Requests that belong together in time."""

    jobs: tuple[Job, ...]
    at_once: int = 1
    """So many are in flight."""
    after: int = 0
    """The first is sent alone, the others once it has brought so many arrivals; 0: in no order but `at_once`."""

    @property
    def title(self) -> str:
        """What it does, in two words."""
        first = self.jobs[0]
        one = len(self.jobs) == 1 and first.phase != first.workload
        return f"{first.workload} {first.phase}" if one else first.workload


@dataclass(frozen=True, slots=True)
class Jobs:
    """All requests of one boot."""

    warm_up: tuple[Job, ...]
    """The real shapes: one agent prompt, then decodes of which as many run as it takes to be steady."""
    acts: Mapping[str, tuple[Act, ...]] = field(default_factory=dict)
    """By workload."""

    def of(self, workload: str) -> tuple[Job, ...]:
        """All requests of a workload."""
        return tuple(job for act in self.acts.get(workload, ()) for job in act.jobs)

    @property
    def measured(self) -> tuple[Job, ...]:
        """Everything but the warm-up."""
        return tuple(job for workload in self.acts for job in self.of(workload))
