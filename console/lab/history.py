"""What earlier runs of the same configuration know: how far boots lie apart, and how far equal arms came apart.

At the end of a run its spreads are written beside its journal. When a run begins, those of earlier runs that may lend
theirs are copied into its folder, so that its numbers stay what they are whatever becomes of the others. Lending takes
equal model, size and workloads, equal keys wherever neither run varied them, and (once this run's boots have told)
equal vLLM and driver.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console.lab.conditions import deciding
from console.lab.journal import read_json, run_names, write_json
from console.lab.plan import Known, Plan
from console.lab.spread import Spread, add_spreads
from console.paths import Paths
from console.presets import Preset

SPREAD_FILE, LENT_FILE = "spread.json", "lent.json"
SCHEMA = 1
_MOST_RUNS = 40
"""The newest runs that may lend; older ones belong to another season."""
_HELD = ("model", "command", "simulated")
_PRESET = (*_HELD, "preset")
_FREE_SIZES = frozenset({"clash_answer_tokens", "recall_tokens"})
"""Sizes that follow from the arms and that no measure depends on."""


@dataclass(frozen=True, slots=True)
class Floor:
    """How far equal arms came apart in an A/A run."""

    run: str
    rounds: int
    half_width: Mapping[str, float]
    """Measure → 0.05 for an interval of ±5 %."""
    size: str = ""
    """How large its workloads were; those of another size come apart by other amounts."""


@dataclass(frozen=True, slots=True)
class Lent:
    """What earlier runs lend this one."""

    spreads: Mapping[str, Spread] = field(default_factory=dict)
    runs: tuple[str, ...] = ()
    floor: Floor | None = None
    """The newest noise floor of this preset."""

    def spread(self, measure: str) -> Spread:
        """The pooled spread of a measure; nothing where nobody measured it."""
        return self.spreads.get(measure, Spread())


def identity(plan: Plan) -> dict[str, Any]:
    """What a run measured on, apart from what it varied."""
    base = plan.base
    return {
        "model": base.model,
        "command": list(base.command),
        "simulated": base.simulated,
        "preset": base.name,
        "args": dict(base.args),
        "env": deciding(base.env, [f"env.{name}" for name in base.secrets]),
        "varied": list(plan.differs),
        "shape": {name: value for name, value in plan.shape.to_json().items() if name not in _FREE_SIZES},
        "workloads": list(plan.workloads),
    }


def write_spread(
    run_dir: Path, plan: Plan, env: Mapping[str, Any], spreads: Mapping[str, Spread], floor: Floor | None, boot_s: float
) -> None:
    """Leave this run's spreads, and how long a boot took, for later ones."""
    body = {
        "schema": SCHEMA,
        "run": run_dir.name,
        "kind": plan.kind,
        "size": plan.size,
        "boot_s": round(boot_s, 1),
        "identity": identity(plan),
        **{key: env.get(key) for key in ("vllm", "driver", "block_tokens", "start_s")},
        "spreads": {name: [spread.ss, spread.df] for name, spread in spreads.items() if spread.df},
        "floor": None if floor is None else {"rounds": floor.rounds, "half_width": dict(floor.half_width)},
    }
    write_json(run_dir / SPREAD_FILE, body)


def collect(paths: Paths, plan: Plan) -> list[dict[str, Any]]:
    """The spreads of earlier runs that may lend to this plan, the newest first."""
    ours = identity(plan)
    return [raw for raw in _left_behind(paths) if may_lend(raw, ours)][:_MOST_RUNS]


def newest_floor(paths: Paths, plan: Plan) -> dict[str, Any] | None:
    """The newest noise floor of this preset, of whatever size: to be shown beside a verdict, never to be pooled."""
    ours = identity(plan)

    def same(raw: Mapping[str, Any]) -> bool:
        theirs = raw.get("identity") or {}
        return raw.get("kind") == "aa" and bool(raw.get("floor")) and all(theirs.get(k) == ours[k] for k in _PRESET)

    return next((raw for raw in _left_behind(paths) if same(raw)), None)


def _left_behind(paths: Paths) -> Iterator[dict[str, Any]]:
    """What each run wrote at its end, the newest first."""
    for name in run_names(paths):
        raw = read_json(paths.run(name) / SPREAD_FILE)
        if isinstance(raw, dict) and raw.get("schema") == SCHEMA and isinstance(raw.get("identity"), dict):
            yield raw


def may_lend(raw: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether boots of an earlier run were boots of the same configuration, but for what either run varied."""
    theirs = raw.get("identity") or {}
    same = all(theirs.get(key) == ours[key] for key in (*_HELD, "shape", "workloads"))
    free = {*ours["varied"], *theirs.get("varied", ())}
    return (
        same
        and _agree(theirs.get("args", {}), ours["args"], free)
        and _agree(theirs.get("env", {}), ours["env"], {key.removeprefix("env.") for key in free})
    )


def _agree(theirs: Mapping[str, Any], ours: Mapping[str, Any], free: Iterable[str]) -> bool:
    names = {*theirs, *ours} - set(free)
    return all(theirs.get(name) == ours.get(name) for name in names)


def write_lent(run_dir: Path, entries: Sequence[Mapping[str, Any]], floor: Mapping[str, Any] | None = None) -> None:
    """Keep what may be lent in the run's own folder, and the preset's newest noise floor."""
    write_json(run_dir / LENT_FILE, {"schema": SCHEMA, "runs": list(entries), "floor": floor})


def lent_by(run_dir: Path, envs: Sequence[Mapping[str, Any]]) -> Lent:
    """What earlier runs lend to the boots that this run has made.

    Args:
        run_dir: the run's folder.
        envs: the environments of its valid boots; without any nothing is lent, since nobody knows what runs.
    """
    raw = read_json(run_dir / LENT_FILE)
    if not isinstance(raw, dict) or not envs:
        return Lent()
    known = {key: {env.get(key) for env in envs} for key in ("vllm", "driver")}
    able = [entry for entry in raw.get("runs", ()) if all(known[key] == {entry.get(key)} for key in known)]
    parts: dict[str, list[Spread]] = {}
    for entry in able:
        for name, (ss, df) in entry.get("spreads", {}).items():
            parts.setdefault(name, []).append(Spread(ss, df, 1))
    return Lent(
        {name: add_spreads(found) for name, found in parts.items()},
        tuple(entry["run"] for entry in able if entry.get("spreads")),
        _floor([*able, raw.get("floor") or {}], known),
    )


def _floor(entries: Sequence[Mapping[str, Any]], known: Mapping[str, set[Any]]) -> Floor | None:
    """The first noise floor among them that was found on the same vLLM and driver."""
    for entry in entries:
        found = entry.get("floor")
        if entry.get("kind") == "aa" and found and all(known[key] == {entry.get(key)} for key in known):
            return Floor(entry["run"], found["rounds"], found["half_width"], str(entry.get("size") or ""))
    return None


def remembered(paths: Paths, preset: Preset) -> Known:
    """What the newest runs of this preset tell of its starts; for estimates and plans, not for results."""
    boot_s: dict[tuple[str, tuple[str, ...]], float] = {}
    newest: Mapping[str, Any] = {}
    for name in run_names(paths)[:_MOST_RUNS]:
        raw = read_json(paths.run(name) / SPREAD_FILE)
        if not isinstance(raw, dict) or (raw.get("identity") or {}).get("preset") != preset.name:
            continue
        newest = newest or raw
        if (raw.get("boot_s") or 0) > 0:
            did = str(raw["size"]), tuple(raw["identity"].get("workloads") or ())
            boot_s.setdefault(did, float(raw["boot_s"]))
    return Known(newest.get("block_tokens"), newest.get("start_s"), newest.get("vllm"), boot_s)
