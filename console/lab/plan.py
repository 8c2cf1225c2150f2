"""What a run will do, decided before anything starts: arms, what differs between them, order, sizes, time."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.errors import UsageError
from console.lab.arms import BUDGET, Arm, arms_for, chunk_notes
from console.lab.order import balanced_order
from console.lab.shapes import BLOCK_TOKENS, SIZES, Shape, boot_seconds, shape_for
from console.presets import Preset, apply_overrides
from console.presets.model import Value
from console.presets.overrides import differing_keys

SCHEMA = 1
WORKLOADS = ("agent", "decode")
_ROUNDS = {"small": 2, "normal": 3, "full": 5}
_MOST_ROUNDS = 100
_START_S, _SIMULATED_START_S = 150.0, 4.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A run, before and while it happens; written to plan.json without the values of secrets."""

    kind: str
    base: Preset
    """The preset under test, with the changes that hold for both arms."""
    arms: tuple[Arm, ...]
    differs: tuple[str, ...]
    """Every key in which any two resolved arms differ."""
    rounds: int
    order: tuple[str, ...]
    seed: int
    size: str
    quick: bool
    shape: Shape
    block_tokens: int
    """The cache block the workloads are cut for."""
    estimate_s: float
    changes: Mapping[str, Value] = field(default_factory=dict)
    """What `--set` changed in both arms."""
    notes: tuple[str, ...] = ()
    """What to know before the start, such as chunk budgets that are equal in effect."""
    workloads: tuple[str, ...] = WORKLOADS

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def preset_of(self, name: str) -> Preset:
        """The resolved preset of one arm."""
        return apply_overrides(self.base, self.arm(name).overrides)

    def boots(self) -> tuple[tuple[int, int, str], ...]:
        """(number, round, arm) of every boot, both counted from 1."""
        return tuple((i + 1, i // len(self.arms) + 1, name) for i, name in enumerate(self.order))

    def to_json(self) -> dict[str, Any]:
        """For plan.json."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "preset": self.base.to_json(),
            "arms": [{"name": arm.name, "overrides": dict(arm.overrides)} for arm in self.arms],
            "differs": list(self.differs),
            "rounds": self.rounds,
            "order": list(self.order),
            "seed": self.seed,
            "size": self.size,
            "quick": self.quick,
            "shape": self.shape.to_json(),
            "block_tokens": self.block_tokens,
            "estimate_s": self.estimate_s,
            "changes": dict(self.changes),
            "notes": list(self.notes),
            "workloads": list(self.workloads),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], secrets: Mapping[str, str] | None = None) -> Plan:
        """The inverse of `to_json`; `secrets` supplies the values that the file does not hold."""
        return cls(
            kind=raw["kind"],
            base=Preset.from_json(raw["preset"], secrets),
            arms=tuple(Arm(arm["name"], arm["overrides"]) for arm in raw["arms"]),
            differs=tuple(raw["differs"]),
            rounds=raw["rounds"],
            order=tuple(raw["order"]),
            seed=raw["seed"],
            size=raw["size"],
            quick=raw["quick"],
            shape=Shape.from_json(raw["shape"]),
            block_tokens=raw["block_tokens"],
            estimate_s=raw["estimate_s"],
            changes=raw["changes"],
            notes=tuple(raw["notes"]),
            workloads=tuple(raw["workloads"]),
        )


def make_plan(
    kind: str,
    preset: Preset,
    *,
    rounds: int | None = None,
    size: str | None = None,
    quick: bool = False,
    arms: Sequence[str] = (),
    a: Mapping[str, Value] | None = None,
    b: Mapping[str, Value] | None = None,
    changes: Mapping[str, Value] | None = None,
    seed: int | None = None,
    block_tokens: int | None = None,
    start_s: float | None = None,
) -> Plan:
    """Plan a run.

    Args:
        kind: mtp, chunk, aa, custom, or a key under the preset's `lab:`.
        preset: the preset to vary.
        rounds: boots of every arm; by default what the size wants.
        size: small, normal or full.
        quick: one small round, which can only suggest.
        arms: chunk budgets, or numbers of speculative tokens, instead of the preset's.
        a: overrides of the first arm of a custom run.
        b: overrides of the second.
        changes: overrides for every arm.
        seed: fixes order and prompts; drawn if not given.
        block_tokens: the cache block as the server tells it.
        start_s: how long this preset takes to start, if that is known.

    Raises:
        UsageError: no such experiment, or arms that make no sense.
    """
    size, rounds = _amount(size, rounds, quick=quick)
    base = apply_overrides(preset, changes or {})
    block = block_tokens or BLOCK_TOKENS
    found = arms_for(kind, base, arms, a, b, block)
    resolved = [apply_overrides(base, arm.overrides) for arm in found]
    differs = tuple(dict.fromkeys(key for other in resolved[1:] for key in differing_keys(resolved[0], other)))
    if kind != "aa" and not differs:
        raise UsageError("the arms are equal", "no key differs between them", "`ab aa` measures equal arms on purpose")
    seed = randomness.randbelow(2**31) if seed is None else seed
    shape = shape_for(size, block, min((n for p in resolved if (n := p.max_model_len) is not None), default=None))
    start = start_s if start_s is not None else _SIMULATED_START_S if base.simulated else _START_S
    return Plan(
        kind=kind,
        base=base,
        arms=found,
        differs=differs,
        rounds=rounds,
        order=balanced_order([arm.name for arm in found], rounds, seed),
        seed=seed,
        size=size,
        quick=quick,
        shape=shape,
        block_tokens=block,
        estimate_s=round(len(found) * rounds * boot_seconds(shape, start, block), 1),
        changes=dict(changes or {}),
        notes=_notes(resolved, differs, block_tokens),
    )


def _amount(size: str | None, rounds: int | None, *, quick: bool) -> tuple[str, int]:
    """The size and the number of rounds, as given or as usual."""
    size = "small" if quick else size or "normal"
    if size not in SIZES:
        raise UsageError(f"there is no size {size!r}", "", f"one of {', '.join(SIZES)}")
    rounds = 1 if quick else _ROUNDS[size] if rounds is None else rounds
    if not 1 <= rounds <= _MOST_ROUNDS:
        raise UsageError(f"{rounds} rounds make no run", "", f"from 1 to {_MOST_ROUNDS}; three are a start")
    return size, rounds


def _notes(resolved: Sequence[Preset], differs: Sequence[str], block_tokens: int | None) -> tuple[str, ...]:
    """What to know before the start."""
    notes = list(chunk_notes(resolved, block_tokens or BLOCK_TOKENS)) if BUDGET in differs else []
    if block_tokens is None:
        notes.append(f"no server has told its cache block: workloads are cut for {BLOCK_TOKENS} tokens")
    return tuple(notes)
