"""`--set k=v` and the arms of an A/B run: the same preset with some keys changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from console.errors import UsageError
from console.presets.catalog import env_text
from console.presets.model import KEY_VARIABLE, Preset, Value
from console.presets.schema import SERVER_KEYS, flag_problem, server_options
from console.presets.source import Document, nearest


def parse_assignments(words: Sequence[str]) -> dict[str, Value]:
    """`k=v` words as a map; values are YAML, an empty one is null (which removes the key).

    Raises:
        UsageError: a word without `=`, or a value that is no YAML.
    """
    result: dict[str, Value] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is no assignment", "", "write it as key=value, for example max-num-seqs=4")
        try:
            result[key.strip()] = yaml.safe_load(text)
        except yaml.YAMLError as error:
            why = str(error).partition("\n")[0]
            raise UsageError(f"the value of {key} cannot be read", why, "quote it; maps as '{a: 1}'") from None
    return result


def apply_overrides(preset: Preset, changes: Mapping[str, Value]) -> Preset:
    """The preset with `changes` applied: args keys, `env.X`, `server.X`; null removes.

    Raises:
        UsageError: a key that does not exist or a value of the wrong kind.
    """
    args: dict[str, Any] = dict(preset.args)
    env: dict[str, str] = dict(preset.env)
    server: dict[str, Any] = {}
    for key, value in changes.items():
        if key.startswith("env."):
            _put(env, key.removeprefix("env."), None if value is None else env_text(value))
        elif key.startswith("server."):
            server[_server_key(key)] = value
        else:
            flag = key.replace("_", "-")
            if problem := flag_problem(flag):
                raise UsageError(f"{key} cannot be set", *problem)
            _put(args, flag, value)
    options = preset.to_json()["server"] | server
    checked = server_options(Document(Path("--set"), {}), {k: v for k, v in options.items() if v is not None})
    secrets = preset.secrets | ({KEY_VARIABLE} & env.keys())
    return replace(preset, args=args, env=env, secrets=secrets, server=checked)


def differing_keys(a: Preset, b: Preset) -> tuple[str, ...]:
    """Every key in which two resolved presets differ, as `--set` would name it."""
    keys = [key for key in _union(a.args, b.args) if a.args.get(key) != b.args.get(key)]
    keys += [f"env.{key}" for key in _union(a.env, b.env) if a.env.get(key) != b.env.get(key)]
    left, right = a.to_json(), b.to_json()
    keys += [f"server.{key}" for key in left["server"] if left["server"][key] != right["server"][key]]
    keys += [key for key in ("model", "served-name", "command") if left[key] != right[key]]
    return tuple(keys)


def _union(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    return [*a, *(key for key in b if key not in a)]


def _put(target: dict[str, Any], key: str, value: Any) -> None:
    if value is None:
        target.pop(key, None)
    else:
        target[key] = value


def _server_key(key: str) -> str:
    name = key.removeprefix("server.")
    if name not in SERVER_KEYS:
        near = nearest(name, SERVER_KEYS)
        fix = f"did you mean `server.{near}`?" if near else f"known: {', '.join(SERVER_KEYS)}"
        raise UsageError(f"there is no option {key}", "", fix)
    return name
