"""The presets that were ready: what one goes back to when another does not start, has crashed, or is not wanted."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.paths import Paths
from console.presets import Preset, load_catalog
from console.presets.catalog import refilled
from console.server import shapes
from console.server.failure import read_failure
from console.server.keeping_secrets import from_record
from console.server.state import SCHEMA, read_json, write_json

_Raw = Mapping[str, Any]
_SETTINGS = ("name", "model", "served-name", "command", "args")
"""What makes two presets the same to go back to; a port is no setting, a free one is another at every start."""


def worked_file(paths: Paths) -> Path:
    """The last preset that became ready, as it was resolved, and the last other one before it."""
    return paths.state / "worked.json"


def keep_worked(paths: Paths, preset: Preset) -> None:
    """It became ready; secrets stay out. A disk that does not take it costs the way back."""
    now = preset.to_json()
    last, before = _kept(paths)
    with suppress(KeyError, TypeError, AttributeError):  # a file that cannot be used is none
        before = last if last is not None and not _same(last, now) else before
    with suppress(OSError):
        write_json(worked_file(paths), {"schema": SCHEMA, "preset": now, "before": before})


def read_worked(paths: Paths, running: Preset | None, besides: Preset | None = None) -> Preset | None:
    """The last preset that became ready; secrets from this console's environment, else from the running server or
    the preset's file.

    Args:
        paths: whose.
        running: what runs, with its secrets.
        besides: not this one: one does not go back to what one has.
    """
    for raw in _kept(paths):
        try:
            if raw is not None and (besides is None or not _same(raw, besides.to_json())):
                found = from_record(raw, running)
                return refilled(found, load_catalog(paths.preset_dirs()).presets) if found.unset else found
        except shapes.WRONG:
            continue
    return None


def at_hand(paths: Paths, last: Preset | None) -> Preset | None:
    """What one has, and wants to leave: the last life's preset, unless a later start was refused and has no life."""
    failure = read_failure(paths)
    return None if failure and failure.life is None else last


def _kept(paths: Paths) -> tuple[_Raw | None, _Raw | None]:
    raw, _ = read_json(worked_file(paths))
    last, before = ((raw or {}).get(key) for key in ("preset", "before"))
    return (last if isinstance(last, dict) else None), (before if isinstance(before, dict) else None)


def _same(one: _Raw, other: _Raw) -> bool:
    return _open_env(one) == _open_env(other) and all(one.get(key) == other.get(key) for key in _SETTINGS)


def _open_env(raw: _Raw) -> dict[str, Any]:
    """Its variables without secrets: whether those are known here says nothing of the preset."""
    hidden = raw.get("secrets") or ()
    return {key: value for key, value in raw["env"].items() if key not in hidden}
