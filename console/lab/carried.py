"""Secret values on their way into the lab's process: by environment only, never by a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from console.lab.plan import Plan
from console.presets import Preset
from console.presets.catalog import env_text
from console.presets.secrecy import masked

_PREFIX = "QWEN_CONSOLE_CARRIED_"


def pack(role: str, preset: Preset | None) -> dict[str, str]:
    """Variables that carry the preset's secrets under a role (`plan`, `before`)."""
    if preset is None:
        return {}
    return {f"{_PREFIX}{role}_{name}": preset.env[name] for name in preset.secrets if name in preset.env}


def pack_arms(plan: Plan) -> dict[str, str]:
    """Variables that carry what each arm overrides secrets with."""
    return {
        f"{_PREFIX}{_arm(i)}_{key.removeprefix('env.')}": env_text(value)
        for i, arm in enumerate(plan.arms)
        for key, value in arm.overrides.items()
        if masked({key: value}, plan.base.secrets) != {key: value}
    }


def unpack_arms(count: int) -> list[dict[str, str]]:
    """The secrets carried for each of so many arms."""
    return [unpack(_arm(i)) for i in range(count)]


def _arm(number: int) -> str:
    return f"arm{number}"


def unpack(role: str, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The secrets carried under a role."""
    start = f"{_PREFIX}{role}_"
    return {name.removeprefix(start): value for name, value in (env or os.environ).items() if name.startswith(start)}


def forget() -> None:
    """Drop them from our own environment: servers that we start inherit it."""
    for name in [name for name in os.environ if name.startswith(_PREFIX)]:
        del os.environ[name]


@contextmanager
def in_environment(values: Mapping[str, str]) -> Iterator[None]:
    """Carry them in our own environment for as long as a keeper is spawned, which hands it to `recover`."""
    os.environ.update(values)
    try:
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
