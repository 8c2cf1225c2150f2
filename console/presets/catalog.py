"""All presets of the folders that are searched; a broken file is listed and hides nothing else."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from console.errors import UsageError
from console.presets.model import KEY_VARIABLE, Preset
from console.presets.schema import SECRET_NAME, check, server_options
from console.presets.source import Document, PresetError, expand, nearest, read, variables

_SUFFIXES = (".yaml", ".yml")


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
        near = nearest(name, [*self.presets, *(problem.name for problem in self.problems)], cutoff=0.5)
        if name in self.bases:
            raise UsageError(f"preset {name!r} is a base", "it has no model of its own", "start one that extends it")
        fix = f"did you mean `{near}`? `qwen-console presets` lists all" if near else "`qwen-console presets` lists all"
        raise UsageError(f"there is no preset {name!r}", "no file of that name in the searched folders", fix)


def load_catalog(dirs: Sequence[Path]) -> Catalog:
    """Read every preset of `dirs`; the first file of a name wins."""
    files: dict[str, Path] = {}
    for folder in dirs:
        if folder.is_dir():
            for path in sorted(folder.iterdir(), key=lambda found: found.stem):
                if path.suffix in _SUFFIXES and not path.name.startswith("."):
                    files.setdefault(path.stem, path)
    presets: dict[str, Preset] = {}
    problems: list[Problem] = []
    bases: set[str] = set()
    for name, path in files.items():
        try:
            preset = _resolve(name, path, files)
        except PresetError as error:
            problems.append(Problem(name, path, error))
            continue
        if preset is None:
            bases.add(name)
        else:
            presets[name] = preset
    return Catalog(presets, tuple(problems), frozenset(bases))


def _resolve(name: str, path: Path, files: Mapping[str, Path]) -> Preset | None:
    chain = _ancestry(path, files)
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
    if not merged.get("model"):
        return None
    secrets = frozenset(
        key
        for key, value in (merged.get("env") or {}).items()
        if key == KEY_VARIABLE or (variables(value) and SECRET_NAME.search(key))
    )
    optional = _without_unset_secrets(merged, secrets)
    whole = {key: _expanded(value, (key,), where, own) for key, value in optional.items()}
    return Preset(
        name=name,
        model=str(whole["model"]),
        description=str(whole.get("description") or ""),
        served_name=whole.get("served-name"),
        command=_command(where.get(("command",), own), whole.get("command")),
        args=whole.get("args") or {},
        env={key: env_text(value) for key, value in (whole.get("env") or {}).items()},
        secrets=secrets,
        server=server_options(where.get(("server",), own), whole.get("server") or {}),
        lab=whole.get("lab") or {},
        path=path,
    )


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


def _without_unset_secrets(merged: Mapping[str, Any], secrets: frozenset[str]) -> dict[str, Any]:
    """Drop secrets whose variable is not set: a server without a key is a choice, not an error."""
    env = merged.get("env") or {}
    unset = {key for key in secrets if any(not os.environ.get(name) for name in variables(env[key]))}
    return {**merged, "env": {key: value for key, value in env.items() if key not in unset}}


def _expanded(value: Any, at: tuple[str, ...], where: Mapping[tuple[str, ...], Document], own: Document) -> Any:
    if isinstance(value, dict):
        return {key: _expanded(item, (*at, key), where, own) for key, item in value.items()}
    return expand(where.get(at, own), value, at)


def _command(document: Document, raw: Any) -> tuple[str, ...]:
    if raw is None:
        return ("vllm", "serve")
    words = shlex.split(raw) if isinstance(raw, str) else raw
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise document.error(("command",), "a list of words is needed", "write `command: [vllm, serve]`")
    return tuple(words)


def env_text(value: Any) -> str:
    """A YAML scalar as the text of an environment variable; true and false as 1 and 0."""
    if isinstance(value, bool):
        return "1" if value else "0"
    return str(value)


def stand_in(preset: Preset, command: Sequence[str]) -> Preset:
    """The same preset on the stand-in engine, on a free port of its own and without the user's key."""
    env = {key: value for key, value in preset.env.items() if key not in preset.secrets}
    server = replace(preset.server, host="127.0.0.1", port=0)
    return replace(preset, command=tuple(command), env=env, secrets=frozenset(), server=server, simulated=True)
