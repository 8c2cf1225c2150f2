"""What two starts must share to be compared: a short name for what a preset really runs."""

from __future__ import annotations

import hashlib
import json

from console.presets import Preset

_WIDTH = 16


def fingerprint(preset: Preset) -> str:
    """Equal for presets that start the same server, whatever its address, its name and its secrets are."""
    env = {name: value for name, value in preset.env.items() if name not in preset.secrets}
    what = [preset.model, list(preset.command), dict(preset.args), env]
    return hashlib.sha256(json.dumps(what, sort_keys=True, default=str).encode()).hexdigest()[:_WIDTH]


def file_name(preset: str) -> str:
    """A preset's name as the name of a file."""
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in preset)
