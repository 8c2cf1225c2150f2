"""Secrets of the running server for the one that takes its place: a restart must not open what was closed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from console.errors import UsageError
from console.presets import Preset
from console.presets.model import KEY_VARIABLE, Unset


def keep_secrets(preset: Preset, running: Preset | None) -> tuple[Preset, tuple[str, ...]]:
    """The preset with what this console's environment lacks and the running server has.

    Args:
        preset: what is to be started.
        running: what runs, with its secrets.

    Returns:
        The preset, and the names of the variables that were taken over. The server's key is taken over by a preset
        that does not name one, too: clients go on with the key they have.
    """
    if running is None:
        return preset, ()
    known = {name: running.env[name] for name in running.secrets if name in running.env}
    lacking = {one.key[1] for one in preset.unset if one.key[0] == "env" and one.variable == one.key[1]}
    if KEY_VARIABLE not in preset.env:
        lacking.add(KEY_VARIABLE)
    taken = {name: value for name, value in known.items() if name in lacking}
    if not taken:
        return preset, ()
    unset = tuple(one for one in preset.unset if one.key[0] != "env" or one.key[1] not in taken)
    kept = replace(preset, env={**preset.env, **taken}, secrets=preset.secrets | taken.keys(), unset=unset)
    return kept, tuple(sorted(taken))


def from_record(raw: Mapping[str, Any], running: Preset | None) -> Preset:
    """A preset as state keeps it, with secrets from this console's environment, else from the running server."""
    return keep_secrets(recorded(raw, os.environ), running)[0]


def recorded(raw: Mapping[str, Any], env: Mapping[str, str]) -> Preset:
    """A preset as state keeps it, with secrets from that environment.

    A secret that is not there is an unset variable: a start says so, and is no start without it.
    """
    found = Preset.from_json(raw, env)
    unset = tuple(_missing(name, found.name) for name in sorted(found.secrets - found.env.keys()))
    return replace(found, unset=unset)


def _missing(name: str, preset: str) -> Unset:
    error = UsageError(
        f"{name} of preset {preset} is not known here",
        "its server had one, state files hold no secrets, and this shell's environment has none",
        f"`export {name}=…` and try again",
    )
    return Unset(("env", name), name, error)
