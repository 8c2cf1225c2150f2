"""What must not change between the boots of a run: the environment of the server, and a machine that stays awake."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from console.presets.secrecy import is_secret

PREFIXES = ("VLLM_", "NCCL_", "CUDA_", "TORCH_")
"""Variables that decide what a server does."""


def deciding(env: Mapping[str, str], varied: Iterable[str]) -> dict[str, str]:
    """The variables that decide, without secrets and without those that the arms vary (`env.X`)."""
    left_out = {key.removeprefix("env.") for key in varied if key.startswith("env.")}
    kept = (name for name in env if name.startswith(PREFIXES) and name not in left_out)
    return {name: env[name] for name in sorted(kept) if not is_secret(name, value=env[name])}


def fingerprint(variables: Mapping[str, str]) -> str:
    """Twelve hex digits that change when any of them does."""
    return sha256("\0".join(f"{name}={value}" for name, value in sorted(variables.items())).encode()).hexdigest()[:12]


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """`NAME 0 → 1` for every variable that differs."""
    names = sorted({*before, *now})
    return [
        f"{name} {before.get(name, 'unset')} → {now.get(name, 'unset')}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with; empty if it cannot be read."""
    found: dict[str, str] = {}
    with suppress(OSError):
        for word in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
            name, equals, value = word.decode("utf-8", errors="replace").partition("=")
            if equals:
                found[name] = value
    return found


class Conditions:
    """The environment of the first boot, for the others to be held against."""

    def __init__(self, varied: Sequence[str], first: Mapping[str, str] | None = None) -> None:
        self._varied = varied
        self.first = dict(first) if first is not None else None

    def problem(self, env: Mapping[str, str]) -> str | None:
        """Why a boot with this environment does not compare with the first one."""
        now = deciding(env, self._varied)
        if self.first is None:
            self.first = now
        found = changes(self.first, now)
        return f"the environment changed since the first boot: {', '.join(found)}" if found else None
