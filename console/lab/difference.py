"""What differs between two presets, key by key, from what to what. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass

from console import units
from console.lab.plan import Plan
from console.presets import Preset
from console.presets.model import Value
from console.presets.overrides import differing_keys, keys_changed
from console.presets.secrecy import arg_secrets, covered, is_secret

_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Difference:
    """One key in which two presets differ."""

    key: str
    before: Value
    after: Value
    """`None` where the key is not set."""
    secret: bool = False

    @property
    def text(self) -> str:
        """`max-num-batched-tokens: 2048 → 3202`."""
        if self.secret:
            return f"{self.key}: {hidden(self.before)} → {hidden(self.after)}"
        return f"{self.key}: {shown(self.before)} → {shown(self.after)}"


def difference(before: Preset, after: Preset) -> tuple[Difference, ...]:
    """What differs between two presets, key by key: what adopting an arm really changes."""
    return tuple(_between(before, after, key) for key in differing_keys(before, after))


def changes_of_file(ran: Preset | None, file: Preset | None) -> list[str]:
    """What a preset's file says otherwise by now than what was started under its name; empty where nothing.

    A secret is not compared: the shell of now need not know it.
    """
    if ran is None or file is None or ran.name != file.name:
        return []
    found = (_between(ran, file, key) for key in keys_changed(ran, file))
    return [units.clip(one.text, _LONGEST) for one in found if not one.secret]


def arm_texts(plan: Plan) -> list[str]:
    """What each arm sets otherwise than the first one, from what to what; values of the environment are not shown."""
    first, *others = plan.arms
    before = plan.preset_of(first.name)
    found = []
    for arm in others:
        changes = difference(before, plan.preset_of(arm.name))
        texts = [one.key if one.key.startswith("env.") else one.text for one in changes]
        found += [f"{first.name} → {arm.name}: {', '.join(texts)}"] if texts else []
    return found


def _between(before: Preset, after: Preset, key: str) -> Difference:
    known = before.secrets | after.secrets
    return Difference(key, _value(before, key), _value(after, key), _is_secret(key, known, before, after))


def _value(preset: Preset, key: str) -> Value:
    if key.startswith("env."):
        return preset.env.get(key.removeprefix("env."))
    if key.startswith("server."):
        return preset.to_json()["server"].get(key.removeprefix("server."))
    flag = key.replace("_", "-")
    return preset.args[flag] if flag in preset.args else preset.to_json().get(key)


def _is_secret(key: str, known: Collection[str], *presets: Preset) -> bool:
    name = key.removeprefix("env.")
    if key == name:
        return any(isinstance(value := _value(one, key), str) and arg_secrets({key: value}) for one in presets)
    return name in known or is_secret(name)


def hidden(value: Value) -> str:
    """A secret, as far as it may be told."""
    return "not set" if value is None else "(secret)"


def shown(value: Value) -> str:
    """A value as a sentence has it."""
    return "not set" if value is None else json.dumps(covered(value))
