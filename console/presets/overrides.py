"""`--set k=v` and the arms of an A/B run: the same preset with some keys changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.errors import UsageError
from console.presets.bounded import YamlError, value_of
from console.presets.catalog import env_text
from console.presets.installed import installed, takes
from console.presets.model import Preset, Unset, Value
from console.presets.schema import SERVER_KEYS, env_problem, flag_problem, server_options, vllm_flags
from console.presets.secrecy import is_secret
from console.presets.source import Document, expand, nearest, variables
from console.presets.values import value_problem


def parse_assignments(words: Sequence[str]) -> dict[str, Value]:
    """`k=v` words as a map; values are YAML, an empty one is null (which removes the key).

    `${VAR}` is filled in as in a preset file; what `${VAR:-}` leaves empty removes the key.

    Raises:
        UsageError: a word without `=`, a value that is no YAML, or a variable that is not set.
    """
    result: dict[str, Value] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise UsageError(f"{word!r} is no assignment", "", "write it as key=value, for example max-num-seqs=4")
        try:
            value = value_of(text, tuple(key.strip().split(".", 1)))
        except YamlError as error:
            fix = error.fix if error.ours else "quote it; maps as '{a: 1}'"
            raise UsageError(f"the value of {key} cannot be read", error.why, fix) from None
        result[key.strip()] = _filled_in(key.strip(), value, text)
    return result


def _filled_in(key: str, value: Value, text: str) -> Value:
    """The value with its variables; `text` is it as typed."""
    unset: list[Unset] = []
    whole = expand(Document(Path("--set"), {}), value, (key,), unset)
    if unset:
        raise unset[0].error
    needs = variables(text)
    if not is_secret(key.removeprefix("env.")) and (secret := next(filter(is_secret, sorted(needs)), None)):
        raise UsageError(
            f"--set: {key}",
            f"${{{secret}}} is a secret by its name, and what is typed under {key} is kept as no secret",
            "in a preset file, under `env:`, it is kept as one",
        )
    return None if whole == "" and needs else whole


def apply_overrides(preset: Preset, changes: Mapping[str, Value]) -> Preset:
    """The preset with `changes` applied: args keys, `env.X`, `server.X`; null removes.

    A flag that is neither among the known ones nor in the sources of the preset's own vLLM is a slip of the pen here;
    in a preset file it passes, and vLLM judges it.

    Raises:
        UsageError: a key that does not exist or a value of the wrong kind.
    """
    args: dict[str, Any] = dict(preset.args)
    env: dict[str, str] = dict(preset.env)
    server: dict[str, Any] = {}
    for key, value in changes.items():
        if key.startswith("env."):
            if problem := env_problem(key.removeprefix("env."), value):
                raise UsageError(f"{key} cannot be set", *problem)
            _put(env, key.removeprefix("env."), None if value is None else env_text(value))
        elif key.startswith("server."):
            server[_server_key(key)] = value
        else:
            flag = key.replace("_", "-")
            if problem := flag_problem(flag) or _unknown(preset, flag) or value_problem(flag, value):
                raise UsageError(f"{key} cannot be set", *problem)
            _put(args, flag, value)
    options = preset.to_json()["server"] | server
    checked = server_options(Document(Path("--set"), {}), {k: v for k, v in options.items() if v is not None})
    named = {key.removeprefix("env.") for key in changes if key.startswith("env.")}
    # What is taken out is no secret that a later start would have to know.
    secrets = (preset.secrets - (named - env.keys())) | {
        name for name in env if name in named and is_secret(name, value=env[name])
    }
    unset = tuple(one for one in preset.unset if not _names(changes, one.key))
    return replace(preset, args=args, env=env, secrets=secrets, server=checked, unset=unset)


def _unknown(preset: Preset, flag: str) -> tuple[str, str] | None:
    if flag in vllm_flags() or flag in preset.args:
        return None
    found = installed(preset)
    if found is not None and not found.stand_in and takes(found, flag):
        return None
    whose = f"vLLM {found.version}" if found and found.version else "a recent vLLM"
    near = nearest(flag, vllm_flags())
    say = f"did you mean `{near}`? " if near else ""
    return f"{whose} has no flag --{flag}", f"{say}in a preset file, under `args:`, it would be passed on all the same"


def _names(changes: Mapping[str, Value], key: tuple[str, ...]) -> bool:
    """Whether what stands at this key of a preset file is changed."""
    said = key[1] if key[0] == "args" else ".".join(key[:2])
    return len(key) > 1 and any(said in (name, name.replace("_", "-")) for name in changes)


def differing_keys(a: Preset, b: Preset) -> tuple[str, ...]:
    """Every key in which two resolved presets differ, as `--set` would name it."""
    keys = [key for key in _union(a.args, b.args) if a.args.get(key) != b.args.get(key)]
    keys += [f"env.{key}" for key in _union(a.env, b.env) if a.env.get(key) != b.env.get(key)]
    left, right = a.to_json(), b.to_json()
    keys += [f"server.{key}" for key in left["server"] if left["server"][key] != right["server"][key]]
    keys += [key for key in ("model", "served-name", "command") if left[key] != right[key]]
    return tuple(keys)


def keys_changed(started: Preset, file: Preset) -> tuple[str, ...]:
    """Every key in which a preset's file differs from what was started: port 0 is any free one, whichever was found."""
    free = file.server.port == 0
    return tuple(key for key in differing_keys(started, file) if not (free and key == "server.port"))


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
