"""What a run will do, decided before anything starts: arms, what differs between them, order, sizes, time."""

from __future__ import annotations

import secrets as randomness
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from console import units
from console.errors import UsageError
from console.lab.arms import BUDGET, Arm, arms_for, chunk_notes, lint_notes, mtp_notes, too_small
from console.lab.estimate import amounts, boot_seconds, first_that_fits, run_seconds
from console.lab.order import balanced_order
from console.lab.shapes import BLOCK_TOKENS, Shape, shape_for
from console.presets import Preset, apply_overrides
from console.presets.model import Value
from console.presets.overrides import differing_keys
from console.presets.secrecy import masked, unmasked

SCHEMA = 1
WORKLOADS = ("agent", "decode", "interference", "concurrent")
REPLAY = "replay"
_START_S, _SIMULATED_START_S = 150.0, 4.0
BLOCK_UNKNOWN = "the cache block is not known before its server runs"
"""How the note begins that is out of date once a server has told."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the preset before the start, from its last life and its last runs."""

    block_tokens: int | None = None
    """The cache block as a server told it."""
    start_s: float | None = None
    """How long a start took."""
    version: str | None = None
    """vLLM's version as a server told it."""
    boot_s: Mapping[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)
    """Size and workloads → how long a whole boot of them took in an earlier run."""


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
    """As many as there will be at most."""
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
    early: bool = False
    """Whether the run may end before its last round once its verdict is settled (`console.lab.sequential`)."""
    time_budget_s: float | None = None
    """No round is begun that would not end within it."""

    def arm(self, name: str) -> Arm:
        """The arm of that name."""
        return next(arm for arm in self.arms if arm.name == name)

    def preset_of(self, name: str) -> Preset:
        """The resolved preset of one arm."""
        return apply_overrides(self.base, self.arm(name).overrides)

    @property
    def rounds_text(self) -> str:
        """`1 round`, `3 rounds`."""
        return units.counted(self.rounds, "round")

    def boots(self) -> tuple[tuple[int, int, str], ...]:
        """(number, round, arm) of every boot, both counted from 1."""
        return tuple((i + 1, i // len(self.arms) + 1, name) for i, name in enumerate(self.order))

    @property
    def requests(self) -> int:
        """Measured requests of one boot."""
        return self.shape.requests(self.workloads)

    def shown(self, changes: Mapping[str, Value]) -> dict[str, Value]:
        """What was changed, as it may be written down: the values of secrets are replaced by `${NAME}`."""
        return masked(changes, self.base.secrets)

    def to_json(self) -> dict[str, Any]:
        """For plan.json."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "preset": self.base.to_json(),
            "arms": [{"name": arm.name, "overrides": self.shown(arm.overrides)} for arm in self.arms],
            "differs": list(self.differs),
            "rounds": self.rounds,
            "order": list(self.order),
            "seed": self.seed,
            "size": self.size,
            "quick": self.quick,
            "shape": self.shape.to_json(),
            "block_tokens": self.block_tokens,
            "estimate_s": self.estimate_s,
            "changes": self.shown(self.changes),
            "notes": list(self.notes),
            "workloads": list(self.workloads),
            "early": self.early,
            "time_budget_s": self.time_budget_s,
        }

    @classmethod
    def from_json(
        cls,
        raw: Mapping[str, Any],
        secrets: Mapping[str, str] | None = None,
        arm_secrets: Sequence[Mapping[str, str]] | None = None,
    ) -> Plan:
        """The inverse of `to_json`.

        Args:
            raw: what the file holds.
            secrets: the values that it does not hold.
            arm_secrets: those of each arm, where they are not the same.
        """
        base = Preset.from_json(raw["preset"], secrets)
        each = arm_secrets or [secrets or {}] * len(raw["arms"])
        return cls(
            kind=raw["kind"],
            base=base,
            arms=tuple(
                Arm(arm["name"], unmasked(arm["overrides"], known, base.secrets))
                for arm, known in zip(raw["arms"], each, strict=True)
            ),
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
            early=raw.get("early", False),
            time_budget_s=raw.get("time_budget_s"),
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
    known: Known | None = None,
    workloads: Sequence[str] = (),
    replays: int = 0,
    time_budget_s: float | None = None,
    early: bool = True,
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
        known: what earlier lives of this preset told.
        workloads: which to run; all but `replay` by default, `replay` alone if requests were recorded for it.
        replays: recorded requests that the run brings along.
        time_budget_s: how long all of it may take; size and rounds are chosen to fit.
        early: whether a settled run may end before its last round.

    Raises:
        UsageError: no such experiment, arms that make no sense, or nothing fits the time.
    """
    known = known or Known()
    base = apply_overrides(preset, changes or {})
    # Every boot of a run gets a key of its own.
    base.see_whole(keyless=True)
    block = known.block_tokens or BLOCK_TOKENS
    found, left_out = _startable(kind, base, arms_for(kind, base, arms, a, b, block), block, known.version)
    resolved = [apply_overrides(base, arm.overrides) for arm in found]
    differs = tuple(dict.fromkeys(key for other in resolved[1:] for key in differing_keys(resolved[0], other)))
    if kind != "aa" and not differs:
        raise UsageError("the arms are equal", "no key differs between them", "`ab aa` measures equal arms on purpose")
    names = _workloads(workloads, replays)

    def seconds(size: str, rounds: int) -> float:
        shape = shape_for(size, block, resolved, replays)
        boot = known.boot_s.get((size, names)) or boot_seconds(shape, names, _start_s(base, known), block)
        return run_seconds(boot, len(found) * rounds, len(found), shape)

    candidates = amounts(size, rounds, quick=quick, budgeted=time_budget_s is not None)
    size, rounds = first_that_fits(candidates, seconds, time_budget_s)
    seed = randomness.randbelow(2**31) if seed is None else seed
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
        shape=shape_for(size, block, resolved, replays),
        block_tokens=block,
        estimate_s=round(seconds(size, rounds), 1),
        changes=dict(changes or {}),
        notes=(
            *left_out,
            *lint_notes(found, resolved, known.version),
            *_notes(kind, resolved, differs, known.block_tokens),
        ),
        workloads=names,
        early=early,
        time_budget_s=time_budget_s,
    )


def _start_s(base: Preset, known: Known) -> float:
    usual = _SIMULATED_START_S if base.simulated else _START_S
    return usual if known.start_s is None else known.start_s


def _workloads(given: Sequence[str], replays: int) -> tuple[str, ...]:
    """Which workloads run, in their usual order."""
    every = (*WORKLOADS, *((REPLAY,) if replays else ()))
    if not given:
        return (REPLAY,) if replays else WORKLOADS
    if unknown := [name for name in given if name not in every]:
        why = "it needs recorded requests" if REPLAY in unknown else ""
        raise UsageError(f"there is no workload {unknown[0]!r}", why, f"known here: {', '.join(every)}")
    return tuple(name for name in every if name in given or (name == REPLAY and replays))


def _startable(
    kind: str, base: Preset, arms: tuple[Arm, ...], block: int, version: str | None
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """The arms that this vLLM can start, and a note on each that it cannot.

    Raises:
        UsageError: fewer than two are left.
    """
    reasons = {arm.name: too_small(apply_overrides(base, arm.overrides), block, version) for arm in arms}
    if kind != "chunk" or not any(reasons.values()):
        return arms, ()
    left = tuple(arm for arm in arms if not reasons[arm.name])
    notes = tuple(f"{reason}: this arm is skipped" for reason in reasons.values() if reason)
    if len(left) < 2:
        raise UsageError("no two budgets are left to compare", "; ".join(r for r in reasons.values() if r), _BIGGER)
    return left, notes


_BIGGER = "give budgets of one cache block or more, for example --arms 1x,2x"


def _notes(kind: str, resolved: Sequence[Preset], differs: Sequence[str], block_tokens: int | None) -> tuple[str, ...]:
    """What to know before the start."""
    notes = list(chunk_notes(resolved, block_tokens or BLOCK_TOKENS)) if BUDGET in differs else []
    notes += list(mtp_notes(resolved))
    # One key is meant; what else differs comes along with the arm and is part of what is measured.
    extra = [key for key in differs if key not in _MEANT.get(kind, differs)]
    if extra:
        notes.append(f"the arms differ in more than one key: {', '.join(extra)} too")
    elif kind not in _MEANT and len(differs) > 1:
        notes.append(f"the arms differ in {len(differs)} keys: what is measured is all of them together")
    if block_tokens is None:
        notes.append(f"{BLOCK_UNKNOWN}: workloads are cut for {BLOCK_TOKENS} tokens")
    return tuple(notes)


_MEANT: Mapping[str, tuple[str, ...]] = {"mtp": ("speculative-config",), "chunk": (BUDGET,), "aa": ()}
