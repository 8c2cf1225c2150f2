"""All presets of the folders that are searched; a broken file is listed and hides nothing else."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.errors import UsageError
from console.presets.model import KEY_VARIABLE, Preset, Unset
from console.presets.schema import check, check_values, server_options
from console.presets.secrecy import is_secret
from console.presets.source import Document, PresetError, expand, nearest, read, variables

ANY_MODEL = "QWEN_CONSOLE_SIM_ANY_MODEL"
"""Tells the stand-in that a model's folder need not be there."""
_SUFFIXES = (".yaml", ".yml")
_GENERATIONS = 32
"""Of presets that extend one another; every one of them is read for each that extends it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that holds no usable preset, and why."""

    name: str
    path: Path
    error: PresetError


@dataclass(frozen=True, slots=True)
class Catalog:
    """Presets by name, in the order they were found, and the files that are broken."""

    presets: Mapping[str, Preset]
    problems: tuple[Problem, ...] = ()
    bases: frozenset[str] = frozenset()
    """Names that others build on and that cannot run by themselves (no model)."""
    notes: tuple[str, ...] = ()
    """What was left out, and why: said where presets are listed, and where one is not found."""

    def get(self, name: str) -> Preset:
        """The preset of that name.

        Raises:
            UsageError: none of that name, or its file is broken.
        """
        if found := self.presets.get(name):
            return found
        for problem in self.problems:
            if problem.name == name:
                raise problem.error
        if name in self.bases:
            raise UsageError(f"preset {name!r} is a base", "it has no model of its own", "start one that extends it")
        near = self._near(name)
        fix = f"did you mean `{near}`? `qwen-console presets` lists all" if near else "`qwen-console presets` lists all"
        why = "; ".join(("no file of that name in the searched folders", *self.notes))
        raise UsageError(f"there is no preset {name!r}", why, fix)

    def _near(self, name: str) -> str | None:
        """The preset that may be meant: a name very like it, else the only one that it is a part of."""
        known = [*self.presets, *(problem.name for problem in self.problems)]
        whole = [one for one in known if len(name) > 2 and name in one]
        return nearest(name, known) or (whole[0] if len(whole) == 1 else None)


def load_catalog(dirs: Sequence[Path]) -> Catalog:
    """Read every preset of `dirs`; the first file of a name wins."""
    files, notes = _files(dirs)
    presets: dict[str, Preset] = {}
    problems: list[Problem] = []
    bases: set[str] = set()
    parents: set[str] = set()
    for name, path in files.items():
        try:
            preset = _resolve(name, path, files, parents)
        except PresetError as error:
            problems.append(Problem(name, path, error))
            continue
        if preset is None:
            bases.add(name)
        else:
            presets[name] = preset
    notes += [
        f"{files[name]} has no model, so it cannot be started, and no other file extends it: add `model:`"
        for name in sorted(bases - parents)
    ]
    return Catalog(presets, tuple(problems), frozenset(bases), tuple(notes))


def _files(dirs: Sequence[Path]) -> tuple[dict[str, Path], list[str]]:
    """The files by name, and those that nobody reads although they look like presets."""
    files: dict[str, Path] = {}
    notes: list[str] = []
    for folder in dirs:
        try:
            if not folder.is_dir():
                continue
            inside = list(folder.iterdir())
        except OSError as error:
            notes.append(f"{folder} is not read: {error.strerror}")
            continue
        here: dict[str, Path] = {}
        for path in sorted(inside, key=lambda found: (found.stem, found.suffix)):
            if path.name.startswith(".") or path.suffix.lower() not in _SUFFIXES:
                continue
            if len(path.stem.splitlines()) > 1:
                notes.append(f"{str(path)!r} is not read: its name has a line end")
                continue
            first = here.setdefault(path.stem, path)
            if first != path:
                notes.append(f"{path} is not read: {first.name} beside it has the same name")
        files = here | files
    return files, notes


def _resolve(name: str, path: Path, files: Mapping[str, Path], parents: set[str]) -> Preset | None:
    chain = _ancestry(path, files)
    parents.update(str(document.values["extends"]) for document in chain if document.values.get("extends"))
    merged: dict[str, Any] = {}
    where: dict[tuple[str, ...], Document] = {}
    for document in chain:
        # The file that set a key last is the one an error about it points at.
        where.update(dict.fromkeys(document.lines, document))
        merged = merge(merged, document.values)
    if inherited := os.environ.get(KEY_VARIABLE):
        # The server would read it from the shell's environment anyway; named here, every later start has it too.
        merged["env"] = {KEY_VARIABLE: inherited} | (merged.get("env") or {})
    own = chain[-1]
    # What is said of a parent is not true of its child.
    merged["description"] = own.values.get("description") or _extends(own)
    if not merged.get("model"):
        return None
    unset: list[Unset] = []
    whole = {key: _expanded(value, (key,), where, own, unset) for key, value in merged.items()}
    for one in unset:
        if one.key[0] in ("server", "model", "command"):
            raise one.error
    args = _filled("args", merged, whole)
    check_values(lambda key: where.get(key, own), args)
    env = {key: env_text(value) for key, value in _filled("env", merged, whole).items()}
    named = merged.get("env") or {}
    secrets = frozenset(key for key, value in named.items() if is_secret(key, variables(value), env.get(key)))
    # A key that is not set is none, not the words `${VLLM_API_KEY}`.
    for missing in unset:
        if missing.key[0] == "env" and missing.key[1] in secrets:
            env.pop(missing.key[1], None)
    return Preset(
        name=name,
        model=str(whole["model"]),
        description=str(whole.get("description") or ""),
        served_name=whole.get("served-name"),
        command=_command(where.get(("command",), own), whole.get("command")),
        args=args,
        env=env,
        secrets=secrets & env.keys(),
        server=server_options(where.get(("server",), own), whole.get("server") or {}),
        lab=whole.get("lab") or {},
        path=path,
        unset=tuple(unset),
    )


def _filled(section: str, merged: Mapping[str, Any], whole: Mapping[str, Any]) -> dict[str, Any]:
    """A map with its variables filled in; what `${VAR:-}` leaves empty is left out."""
    raw, found = merged.get(section) or {}, whole.get(section) or {}
    return {key: value for key, value in found.items() if value != "" or not variables(raw[key])}


def _extends(document: Document) -> str:
    parent = document.values.get("extends")
    return f"extends {parent}" if parent else ""


def _ancestry(path: Path, files: Mapping[str, Path]) -> list[Document]:
    """The file and all it extends, eldest first."""
    chain: list[Document] = []
    seen: set[Path] = set()
    while True:
        document = read(path)
        check(document)
        chain.append(document)
        seen.add(path)
        parent = document.values.get("extends")
        if not parent:
            return chain[::-1]
        if parent not in files:
            near = nearest(parent, files)
            fix = f"did you mean `{near}`?" if near else "name a preset of the searched folders"
            raise document.error(("extends",), f"there is no preset {parent!r}", fix)
        path = files[parent]
        if len(chain) >= _GENERATIONS:
            why = f"it extends {_GENERATIONS} files and more, one through the other"
            raise document.error(("extends",), why, "extend a preset that is nearer to the base")
        if path in seen:
            raise document.error(("extends",), f"{parent!r} leads back here", "a preset cannot extend itself")


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Maps merge, lists and scalars replace, null removes."""
    result = dict(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def _expanded(
    value: Any, at: tuple[str, ...], where: Mapping[tuple[str, ...], Document], own: Document, unset: list[Unset]
) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, (*at, key), where, own, unset) for key, item in value.items()}
    return expand(where.get(at, own), value, at, unset)


def _command(document: Document, raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ("vllm", "serve")
    try:
        words = shlex.split(raw) if isinstance(raw, str) else raw
    except ValueError as error:
        raise document.error(("command",), f"no shell reads it: {error}", "write `command: [vllm, serve]`") from None
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise document.error(("command",), "a list of words is needed", "write `command: [vllm, serve]`")
    return tuple(words)


def env_text(value: Any) -> str:
    """A YAML scalar as the text of an environment variable; true and false as 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def refilled(preset: Preset, presets: Mapping[str, Preset], changed: Collection[str] = ()) -> Preset:
    """A preset as state keeps it, with the secrets it lacks that its own file still tells.

    Args:
        preset: what was kept.
        presets: those of today.
        changed: names of variables that were set beside the file, which it cannot tell.
    """
    own = presets.get(preset.name)
    lacking = preset.secrets - preset.env.keys() - set(changed)
    told = {name: own.env[name] for name in lacking if own and name in own.secrets}
    unset = tuple(one for one in preset.unset if one.key[0] != "env" or one.key[1] not in told)
    return replace(preset, env={**preset.env, **told}, unset=unset)


def stand_in(preset: Preset, command: Sequence[str], *, any_model: bool = False) -> Preset:
    """The same preset on the stand-in engine, on a free port of its own and without the user's keys.

    What is not set refuses its start all the same: a demo shows what the preset would do.

    Args:
        preset: what to stand in for.
        command: how the stand-in is started.
        any_model: whether it starts although the model's folder is not there.
    """
    env = {key: value for key, value in preset.env.items() if key not in preset.secrets}
    if any_model:
        env[ANY_MODEL] = "1"
    server = replace(preset.server, host="127.0.0.1", port=0)
    return replace(preset, command=tuple(command), env=env, secrets=frozenset(), server=server, simulated=True)
