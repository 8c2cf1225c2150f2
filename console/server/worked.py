"""The preset that was ready last: what one goes back to when another does not start."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from console.paths import Paths
from console.presets import Preset
from console.server.keeping_secrets import from_record
from console.server.state import SCHEMA, read_json, write_json


def worked_file(paths: Paths) -> Path:
    """The last preset that became ready, as it was resolved."""
    return paths.state / "worked.json"


def keep_worked(paths: Paths, preset: Preset) -> None:
    """It became ready; secrets stay out. A disk that does not take it costs the way back."""
    with suppress(OSError):
        write_json(worked_file(paths), {"schema": SCHEMA, "preset": preset.to_json()})


def read_worked(paths: Paths, running: Preset | None) -> Preset | None:
    """The last preset that became ready, secrets from this console's environment, else from the running server."""
    raw, _ = read_json(worked_file(paths))
    if raw is None:
        return None
    try:
        return from_record(raw["preset"], running)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
