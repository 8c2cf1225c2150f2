"""What a rule says, and what it looks at."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from console.memory import MemoryPlan
from console.presets import Preset
from console.presets.values import whole


class Weight(StrEnum):
    """How sure and how bad."""

    BAD = "bad"
    """It will not start, will crash, or stands open to others."""
    LOOK = "look"
    """Reported to go wrong on this kind of machine, or not to do what it seems to."""
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule's word about one preset."""

    rule: str
    """Stable name."""
    weight: Weight
    key: str
    """The key it is about, as `--set` names it."""
    what: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Ground:
    """What is known beside the preset; unknown is `None`."""

    version: str | None = None
    """Of the vLLM that its command starts."""
    flags: frozenset[str] | None = None
    """The flags which that vLLM takes, by its own help."""
    memory: MemoryPlan | None = None
    """What its caches will be, where the model's config is on this machine."""
    hybrid: bool | None = None
    """Whether the model has recurrent layers beside attention."""
    no_model: str | None = None
    """What the local path that the preset names as its model lacks, in a sentence."""


@dataclass(frozen=True, slots=True)
class Case:
    """A preset with the questions that several rules ask."""

    preset: Preset
    ground: Ground
    args: Mapping[str, Any] = field(default_factory=dict)

    def flag(self, name: str) -> Any:
        """A flag's value, `None` where the preset leaves it to vLLM."""
        return self.args.get(name)

    def number(self, name: str) -> int | None:
        """A flag's value where it is a whole number."""
        return whole(self.args.get(name))

    @property
    def version(self) -> tuple[int, ...]:
        """The installed version's first two numbers; empty where it is not known."""
        found = re.match(r"(\d+)\.(\d+)", self.ground.version or "")
        return (int(found[1]), int(found[2])) if found else ()

    @property
    def ranks(self) -> int:
        """Cards it runs on."""
        return (self.number("tensor-parallel-size") or 1) * (self.number("pipeline-parallel-size") or 1)

    @property
    def on_cpu(self) -> bool:
        """Whether this is the CPU build."""
        return "VLLM_CPU_KVCACHE_SPACE" in self.preset.env or "+cpu" in (self.ground.version or "")

    @property
    def drafts(self) -> int:
        """Draft tokens a step; 0 without speculation."""
        spec = self.preset.speculative
        return (whole(spec.get("num_speculative_tokens")) or 1) if spec else 0

    @property
    def mtp(self) -> int:
        """Draft tokens a step of an MTP head; 0 with another kind of drafter."""
        spec = self.preset.speculative
        return self.drafts if spec and "mtp" in str(spec.get("method") or "mtp").lower() else 0

    @property
    def prefix(self) -> bool:
        """Whether prefix caching is switched on here."""
        return self.flag("enable-prefix-caching") is True

    @property
    def hybrid(self) -> bool:
        """Known from the config, else by the family's name."""
        if self.ground.hybrid is not None:
            return self.ground.hybrid
        name = self.preset.model.lower()
        return self.flag("mamba-cache-mode") is not None or any(word in name for word in ("qwen3.", "qwen3-next"))

    @property
    def block(self) -> int | None:
        """Tokens of a cache block: computed, else what is reported for the family with an FP8 cache."""
        if self.ground.memory and self.ground.memory.block_tokens:
            return self.ground.memory.block_tokens
        fp8 = str(self.flag("kv-cache-dtype")).startswith("fp8")
        return (1600 if fp8 else 800) if self.hybrid and self.ranks == 2 and not self.on_cpu else None


Rule = Callable[[Case], Iterator[Finding]]
"""Yields what it finds."""
