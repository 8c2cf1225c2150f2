"""A preset as the exact command and environment of its server."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any

from console.presets.model import Preset

READY_TIMEOUT_VARIABLE = "VLLM_ENGINE_READY_TIMEOUT_S"


def argv(preset: Preset) -> list[str]:
    """The whole command line: command words, model, address, then the flags in the preset's order."""
    words = [*preset.command, preset.model, "--host", preset.server.host, "--port", str(preset.server.port)]
    if preset.served_name:
        words += ["--served-model-name", preset.served_name]
    for flag, value in preset.args.items():
        words += _flag(flag, value)
    return words


def _flag(flag: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, Mapping):
        return [f"--{flag}", json.dumps(value)]
    if isinstance(value, list):
        return [f"--{flag}", *(json.dumps(item) if isinstance(item, Mapping) else str(item) for item in value)]
    return [f"--{flag}", str(value)]


def own_env(preset: Preset) -> dict[str, str]:
    """Variables that this preset adds to the server's environment."""
    env = {READY_TIMEOUT_VARIABLE: f"{preset.server.ready_timeout:.0f}"}
    return env | dict(preset.env)


def child_env(preset: Preset) -> dict[str, str]:
    """The complete environment of the server."""
    return dict(os.environ) | own_env(preset)


def shell_line(preset: Preset) -> str:
    """The command as one can paste it into a shell; secrets stay variables."""
    env = [
        f'{name}="${name}"' if name in preset.secrets else f"{name}={shlex.quote(value)}"
        for name, value in own_env(preset).items()
    ]
    return " ".join([*env, shlex.join(argv(preset))])
