"""The winner becomes a preset: a new file that extends the one that was measured and holds only what differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from console.errors import ConsoleError, UsageError
from console.lab.control import find_run
from console.lab.results import read_results
from console.paths import Paths
from console.presets.model import Value


def adopt(paths: Paths, run_id: str, arm: str) -> Path:
    """Write `<preset>-<arm>.yaml` into the user's own presets; an existing file is never overwritten.

    Raises:
        NothingError: no such run.
        UsageError: no such arm, or an arm that is the preset as it is.
        ConsoleError: the file cannot be written.
    """
    run_dir = find_run(paths, run_id)
    results = read_results(run_dir)
    if results is None:
        raise ConsoleError(f"the run {run_dir.name} cannot be read", "its plan is lost", "`qwen-console ab list`")
    plan = results.plan
    names = [found.name for found in plan.arms]
    if arm not in names:
        raise UsageError(f"the run {results.id} has no arm {arm!r}", "", f"its arms: {', '.join(names)}")
    changes = {**plan.changes, **plan.arm(arm).overrides}
    if not changes:
        raise UsageError(
            f"the arm {arm} is the preset {plan.base.name} as it is", "", "there is nothing to write: use that preset"
        )
    body = {
        "description": f"{plan.base.name} with {', '.join(changes)} as measured in {results.id}",
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
