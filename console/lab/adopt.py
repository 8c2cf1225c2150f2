"""The winner becomes a preset: a new file that extends the one that was measured and holds only what differs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from console.errors import ConsoleError, UsageError
from console.lab.control import find_run
from console.lab.difference import difference, hidden, shown
from console.lab.judge import judge, judge_arm
from console.lab.own_arm import own_arm
from console.lab.plan import Plan
from console.lab.results import Results, read_results
from console.lab.verdict import Verdict
from console.lab.view import is_simulated, readable, run_state
from console.paths import Paths
from console.presets.model import Value
from console.presets.secrecy import is_masked
from console.presets.source import PresetError, read


@dataclass(frozen=True, slots=True)
class Draft:
    """The preset that adopting an arm would write."""

    path: Path
    body: Mapping[str, Any]
    changes: tuple[str, ...]
    """Each key with its value, as a sentence lists them."""
    there: Path | None
    """A preset file that holds the same settings already."""
    differences: tuple[str, ...] = ()
    """What the arm sets otherwise than the preset that was measured, each key from what to what."""


def draft(paths: Paths, run_id: str, arm: str) -> Draft:
    """What `adopt` would write; nothing is written.

    Raises:
        NothingError: no such run.
        UsageError: no such arm, or an arm that is the preset as it is.
        ConsoleError: the run cannot be read.
    """
    with readable(find_run(paths, run_id)):
        return _draft(paths, run_id, arm)


def _draft(paths: Paths, run_id: str, arm: str) -> Draft:
    results = _results_with(paths, run_id, arm)
    plan = results.plan
    changes = plan.shown({**plan.changes, **plan.arm(arm).overrides})
    if not changes or arm == own_arm(plan):
        raise UsageError(
            f"the arm {arm} is the preset {plan.base.name} as it is", "", "there is nothing to write: use that preset"
        )
    texts = tuple(f"{key} {_told(plan, key, value)}" for key, value in changes.items())
    simulated = "SIMULATED, says nothing about a graphics card: " if is_simulated(results) else ""
    told = f"{plan.base.name} with {', '.join(texts)}, as measured in {results.id} (verdict: {_word(results, arm)})"
    body = {
        "description": simulated + told,
        "extends": plan.base.name,
        **_sections(changes),
    }
    name = f"{plan.base.name}-{arm}"
    differences = tuple(one.text for one in difference(plan.base, plan.preset_of(arm)))
    return Draft(_free(paths, name), body, texts, _same(paths, name, body), differences)


def adopt(paths: Paths, run_id: str, arm: str) -> Path:
    """Write `<preset>-<arm>.yaml` into the user's own presets; an existing file is never overwritten.

    Raises:
        NothingError: no such run.
        UsageError: no such arm, an arm that is the preset as it is, or one that is written already.
        ConsoleError: the file cannot be written.
    """
    found = draft(paths, run_id, arm)
    if found.there is not None:
        fix = f"start it with `qwen-console up {found.there.stem}`"
        raise UsageError(f"the preset {found.there.stem} is there already", f"{found.there} holds the same", fix)
    try:
        found.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(found.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yaml.safe_dump(dict(found.body), file, sort_keys=False, allow_unicode=True, width=110)
    except OSError as error:
        raise ConsoleError(
            f"{found.path} cannot be written", str(error), "point QWEN_CONSOLE_PRESETS elsewhere"
        ) from None
    return found.path


def _same(paths: Paths, name: str, body: Mapping[str, Any]) -> Path | None:
    """The file of that name, or of that name with a number, that holds the same settings; of which run is no matter."""
    for path in sorted(paths.own_presets.glob("*.yaml")):
        if path.stem != name and not path.stem.removeprefix(f"{name}-").isdigit():
            continue
        try:
            held = read(path).values
        except PresetError:
            continue
        if {**held, "description": ""} == {**body, "description": ""}:
            return path
    return None


def caution(paths: Paths, run_id: str, arm: str) -> str | None:
    """Why the run does not advise this arm, in a sentence; `None` if it does, and of an arm with nothing to write.

    Raises:
        NothingError: no such run.
        UsageError: no such arm.
        ConsoleError: the run cannot be read.
    """
    with readable(find_run(paths, run_id)):
        return _caution(paths, run_id, arm)


def _caution(paths: Paths, run_id: str, arm: str) -> str | None:
    results = _results_with(paths, run_id, arm)
    if not results.plan.changes and not results.plan.arm(arm).overrides:
        return None
    state = run_state(find_run(paths, run_id), results.events)
    if state != "done":
        return f"the run is {state}: it advises nothing"
    if results.plan.kind == "aa":
        return "an A/A run has equal arms: it advises nothing"
    verdict = _verdict(results, arm)
    if _advised(results, arm, verdict):
        return None
    return f"the run does not advise the arm {arm}, its verdict is {verdict.overall}: {verdict.sentence}"


def _verdict(results: Results, arm: str) -> Verdict:
    """The verdict that speaks of this arm: of several arms each has its own, of the first one the run's speaks."""
    base = results.plan.arms[0].name
    return judge(results, finished=True) if arm == base else judge_arm(results, base, arm)


def _advised(results: Results, arm: str, verdict: Verdict) -> bool:
    """Whether the verdict asks for this arm; that the first one holds asks for it where what runs was found worse."""
    base, own = results.plan.arms[0].name, own_arm(results.plan)
    if arm != base:
        return verdict.overall == "adopt"
    return verdict.overall == "keep" and (own is None or own == base or judge_arm(results, base, own).against)


def _word(results: Results, arm: str) -> str:
    """The word of the verdict on this arm."""
    if results.plan.kind == "aa":
        return "none, equal arms"
    ended = results.last("run-end")
    if ended is None or ended["state"] != "done":
        return "none, the run did not end"
    verdict = _verdict(results, arm)
    other = verdict.arm if verdict.arm not in (None, arm) else None
    return f"{verdict.overall} {other}" if other else verdict.overall


def _results_with(paths: Paths, run_id: str, arm: str) -> Results:
    run_dir = find_run(paths, run_id)
    results = read_results(run_dir)
    if results is None:
        raise ConsoleError(f"the run {run_dir.name} cannot be read", "its plan is lost", "`qwen-console ab list`")
    names = [found.name for found in results.plan.arms]
    if arm not in names:
        raise UsageError(f"the run {results.id} has no arm {arm!r}", "", f"its arms: {', '.join(names)}")
    return results


def _told(plan: Plan, key: str, value: Value) -> str:
    """As a description tells it: `${NAME}` would be filled in there, too."""
    return hidden(value) if is_masked(key, value, plan.base.secrets) else shown(value)


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
