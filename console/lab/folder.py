"""What stands in a run's folder beside its journal: the plan, what ran before, whose state folder it is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from console.errors import ConsoleError
from console.lab import carried
from console.lab.journal import read_json, write_json
from console.lab.plan import Plan
from console.lab.results import PLAN_FILE
from console.paths import Paths
from console.presets import Preset, load_catalog
from console.presets.catalog import refilled
from console.presets.model import KEY_VARIABLE
from console.presets.secrecy import is_masked
from console.server import shapes

BEFORE_FILE, PATHS_FILE = "before.json", "paths.json"
LAB_RECORD, LAB_EXIT, LAB_LOG = "lab.json", "exit.json", "lab.log"


@dataclass(frozen=True, slots=True)
class Folder:
    """A run as it was handed over to the lab's process."""

    path: Path
    paths: Paths
    plan: Plan
    before: Preset | None
    """The preset that ran before, with its secrets."""
    missing: tuple[str, ...] = ()
    """Secrets of `before` whose values did not come along."""

    @property
    def id(self) -> str:
        """The run's id."""
        return self.path.name

    @property
    def missing_secrets(self) -> tuple[str, ...]:
        """Secrets of the preset under test whose values did not come along; the arms' own key is made for each boot."""
        base, arms = self.plan.base, self.plan.arms
        masked = {
            key.removeprefix("env.")
            for arm in arms
            for key, value in arm.overrides.items()
            if is_masked(key, value, base.secrets)
        }
        return tuple(sorted(((base.secrets - base.env.keys()) | masked) - {KEY_VARIABLE}))


def write_folder(run_dir: Path, paths: Paths, plan: Plan, before: Preset | None) -> None:
    """Write everything but secrets."""
    write_json(run_dir / PLAN_FILE, plan.to_json())
    write_json(run_dir / BEFORE_FILE, {"preset": before.to_json() if before else None})
    write_json(run_dir / PATHS_FILE, {"config": str(paths.config), "cache": str(paths.cache), "demo": paths.demo})


def read_folder(run_dir: Path, secrets: Mapping[str, str] | None = None) -> Folder:
    """Read it back.

    Args:
        run_dir: the run's folder.
        secrets: variable → value; without them those that were carried into this process.

    Raises:
        ConsoleError: the folder is not whole.
    """
    plan, before, places = (read_json(run_dir / name) for name in (PLAN_FILE, BEFORE_FILE, PATHS_FILE))
    try:
        paths = Paths(run_dir.parents[1], Path(places["config"]), Path(places["cache"]), places["demo"])
        ours, theirs = (carried.unpack(role) if secrets is None else secrets for role in ("plan", "before"))
        ran = Preset.from_json(before["preset"], theirs) if before["preset"] else None
        arms = carried.unpack_arms(len(plan["arms"])) if secrets is None else None
        return Folder(run_dir, paths, Plan.from_json(plan, ours, arms), ran, _missing(ran))
    except shapes.WRONG as error:
        raise ConsoleError(
            f"the run {run_dir.name} cannot be read", f"{type(error).__name__}: {error}", "start a new run"
        ) from None


def folder_at_hand(run_dir: Path) -> Folder:
    """Read it back long after: secrets come from this shell's environment, else from the preset's own file.

    Raises:
        ConsoleError: the folder is not whole.
    """
    found = read_folder(run_dir, os.environ)
    presets = load_catalog(found.paths.preset_dirs()).presets
    changed = {key.removeprefix("env.") for key in found.plan.changes}
    base = refilled(found.plan.base, presets, changed)
    before = refilled(found.before, presets) if found.before else None
    return replace(found, plan=replace(found.plan, base=base), before=before, missing=_missing(before))


def _missing(preset: Preset | None) -> tuple[str, ...]:
    return tuple(sorted(preset.secrets - preset.env.keys())) if preset else ()
