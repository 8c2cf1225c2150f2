"""YAML text → values with the line each key stands on."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from console.errors import UsageError
from console.files import describe, read_text
from console.presets.bounded import KeyPath, YamlError, compose, plain
from console.presets.model import Unset

LARGEST_BYTES = 262_144
"""A file of this size takes long enough to read; none that a person writes comes near."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class PresetError(UsageError):
    """A preset file that cannot be used: names the file, the line, the key and, where one is near, the right key."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file as read: values, and the line of every key."""

    path: Path
    values: dict[str, Any]
    lines: dict[KeyPath, int] = field(default_factory=dict)

    def error(self, key: KeyPath, why: str, fix: str = "") -> PresetError:
        """An error that points at `key` in this file."""
        line = self.lines.get(key) or self.lines.get(key[:-1])
        place = f"{self.path}:{line}" if line else str(self.path)
        return PresetError(f"{place}: {'.'.join(key)}", why, fix)


def nearest(word: str, known: Iterable[str], cutoff: float = 0.72) -> str | None:
    """The known word most like `word`, if one is near enough to be meant."""
    found = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return found[0] if found else None


def together(errors: Sequence[PresetError]) -> PresetError:
    """Several errors as one: the first, and the others under it."""
    first, *others = errors
    also = [f"\n  also: {one.what.rpartition('/')[2]}: {one.why}{one.fix and f' ({one.fix})'}" for one in others]
    return PresetError(first.what, first.why, first.fix + "".join(also))


def read(path: Path, kind: str = "a preset", start: str = "model:") -> Document:
    """Read one file of keys and values.

    Args:
        path: the file.
        kind: what it is, for who reads that it is none.
        start: how such a file may begin.

    Raises:
        PresetError: not readable, not YAML, not a map, a key given twice, or what no such file holds.
    """
    try:
        text = read_text(path, LARGEST_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        fix = "see that it is a text file, and its permissions"
        raise PresetError(f"{path} cannot be read", describe(error), fix) from None
    try:
        found = _composed(text)
    except YamlError as error:
        place = f"{path}:{error.line}" if error.line else str(path)
        raise PresetError(f"{place}: {error.what}", error.why, error.fix) from None
    if found is None:
        raise PresetError(
            f"{path}:1: {kind} is a map of keys", "the file holds something else", f"write keys such as `{start}`"
        )
    values, lines = found
    return Document(path, deepcopy(values), lines)


@lru_cache(maxsize=64)
def _composed(text: str) -> tuple[dict[str, Any], dict[KeyPath, int]] | None:
    """Values and lines of a map; `None` if it is something else. Files are read again and again, and seldom change."""
    lines: dict[KeyPath, int] = {}
    node = compose(text)
    if node is None:
        return {}, lines
    return (plain(node, lines), lines) if isinstance(node, yaml.MappingNode) else None


def expand(document: Document, value: Any, at: KeyPath, unset: list[Unset]) -> Any:
    """`${VAR}` and `${VAR:-default}` in every string, from the environment.

    What is not set and has no default stays as it is written, and is added to `unset`.
    """
    if isinstance(value, dict):
        return {key: expand(document, item, (*at, key), unset) for key, item in value.items()}
    if isinstance(value, list):
        return [expand(document, item, at, unset) for item in value]
    if not isinstance(value, str):
        return value

    def one(match: re.Match[str]) -> str:
        name, default = match.group(1), match.group(2)
        found = os.environ.get(name) or default
        if found is None:
            why = f"${{{name}}} is not set in this shell's environment, or empty"
            fix = f"`export {name}=…`; where it may be missing, write ${{{name}:-}}, or ${{{name}:-a default}}"
            unset.append(Unset(at, name, document.error(at, why, fix)))
            return match.group()
        return found

    return _VARIABLE.sub(one, value)


def variables(value: Any) -> frozenset[str]:
    """Names of the variables a string asks for."""
    return frozenset(match.group(1) for match in _VARIABLE.finditer(value)) if isinstance(value, str) else frozenset()
