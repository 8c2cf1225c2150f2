"""The winner becomes a preset: a new file that extends the one that was measured and holds only what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from console.errors import ConsoleError, UsageError
from console.lab.control import find_run
from console.lab.plan import Plan
from console.lab.results import read_results
from console.paths import Paths
from console.presets import Preset
from console.presets.model import Value
from console.presets.overrides import differing_keys


def adopt(paths: Paths, run_id: str, arm: str) -> Path:
    """Write `<preset>-<arm>.yaml` into the user's own presets; an existing file is never overwritten.

    Raises:
        NothingError: no such run.
        UsageError: no such arm, or an arm that is the preset as it is.
        ConsoleError: the file cannot be written.
    """
    plan = _plan_with(paths, run_id, arm)
    changes = {**plan.changes, **plan.arm(arm).overrides}
    if not changes:
        raise UsageError(
            f"the arm {arm} is the preset {plan.base.name} as it is", "", "there is nothing to write: use that preset"
        )
    texts = [f"{key} {_shown(value)}" for key, value in changes.items()]
    body = {
        "description": f"{plan.base.name} with {', '.join(texts)}, as measured in {find_run(paths, run_id).name}",
        "extends": plan.base.name,
        **_sections(changes),
    }
    path = _free(paths, f"{plan.base.name}-{arm}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            yaml.safe_dump(body, file, sort_keys=False, allow_unicode=True, width=110)
    except OSError as error:
        raise ConsoleError(f"{path} cannot be written", str(error), "point QWEN_CONSOLE_PRESETS elsewhere") from None
    return path


def _plan_with(paths: Paths, run_id: str, arm: str) -> Plan:
    run_dir = find_run(paths, run_id)
    results = read_results(run_dir)
    if results is None:
        raise ConsoleError(f"the run {run_dir.name} cannot be read", "its plan is lost", "`qwen-console ab list`")
    names = [found.name for found in results.plan.arms]
    if arm not in names:
        raise UsageError(f"the run {results.id} has no arm {arm!r}", "", f"its arms: {', '.join(names)}")
    return results.plan


@dataclass(frozen=True, slots=True)
class Difference:
    """One key in which the adopted arm differs from the preset that was measured."""

    key: str
    before: Value
    after: Value
    """`None` where the key is not set."""

    @property
    def text(self) -> str:
        """`max-num-batched-tokens: 2048 → 3202`."""
        return f"{self.key}: {_shown(self.before)} → {_shown(self.after)}"


def difference(before: Preset, after: Preset) -> tuple[Difference, ...]:
    """What differs between two presets, key by key: what adopting an arm really changes."""
    return tuple(Difference(key, _value(before, key), _value(after, key)) for key in differing_keys(before, after))


def _value(preset: Preset, key: str) -> Value:
    if key.startswith("env."):
        return preset.env.get(key.removeprefix("env."))
    if key.startswith("server."):
        return preset.to_json()["server"].get(key.removeprefix("server."))
    return preset.args.get(key.replace("_", "-"))


def _shown(value: Value) -> str:
    return "not set" if value is None else json.dumps(value)


def _sections(changes: Mapping[str, Value]) -> dict[str, dict[str, Any]]:
    """Overrides by the section of a preset file that holds them; null removes what the base sets."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in changes.items():
        section, _, name = key.partition(".") if key.startswith(("env.", "server.")) else ("args", "", key)
        sections.setdefault(section, {})[name] = value
    return sections


def _free(paths: Paths, name: str) -> Path:
    taken = {file.stem for folder in paths.preset_dirs() if folder.is_dir() for file in folder.glob("*.yaml")}
    free = next(found for n in range(1, 1000) if (found := name if n == 1 else f"{name}-{n}") not in taken)
    return paths.own_presets / f"{free}.yaml"
