"""A preset as resolved: one way to run the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from console.errors import UsageError
from console.presets.secrecy import masked
from console.presets.values import plain, whole

Value = Any
"""A YAML value: str, int, float, bool, None, list or map of these."""

KEY_VARIABLE = "VLLM_API_KEY"


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How the console runs and watches this server; not flags of vLLM."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 asks for a free one at every start."""
    ready_timeout: float = 900.0
    """Seconds from the start to ready; downloads do not count."""
    stop_grace: float = 30.0
    """Seconds between SIGTERM and SIGKILL."""
    restart: str = "never"
    """`never` or `on-crash`."""


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable that a preset needs and the environment does not have."""

    key: tuple[str, ...]
    """Where in the preset it stands."""
    variable: str
    error: UsageError
    """What a start says."""

    @property
    def name(self) -> str:
        """The key as `--set` would name it."""
        return self.key[-1] if self.key[0] == "args" else ".".join(self.key)


@dataclass(frozen=True, slots=True)
class Preset:
    """One way to run the server, with `extends` and `${VAR}` resolved.

    `args` holds vLLM's own flags without dashes (`max-model-len`), values as YAML has them.
    """

    name: str
    model: str
    description: str = ""
    served_name: str | None = None
    command: tuple[str, ...] = ("vllm", "serve")
    args: Mapping[str, Value] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: frozenset[str] = frozenset()
    """Names in `env` whose values never reach disk, screen or report."""
    server: ServerOptions = ServerOptions()
    lab: Mapping[str, Value] = field(default_factory=dict)
    path: Path | None = None
    simulated: bool = False
    unset: tuple[Unset, ...] = field(default=(), compare=False)
    """Variables that are missing: it can be listed and shown, and a start is refused."""

    def see_whole(self, *, keyless: bool = False) -> None:
        """See that nothing is missing; with `keyless` the server's own key may be.

        Raises:
            UsageError: a variable that the preset needs is not set.
        """
        for missing in self.unset:
            if not (keyless and missing.key == ("env", KEY_VARIABLE)):
                raise missing.error

    @property
    def api_key(self) -> str | None:
        """The key that every request to this server has to carry."""
        return self.env.get(KEY_VARIABLE) or None

    @property
    def served(self) -> str:
        """The name under which requests address the model."""
        return self.served_name or self.model

    @property
    def max_model_len(self) -> int | None:
        """The configured context in tokens, if the preset sets it."""
        return whole(self.args.get("max-model-len"))

    @property
    def speculative(self) -> Mapping[str, Value] | None:
        """The `speculative-config` map, `None` when speculation is off."""
        value = plain(self.args).get("speculative-config")
        return value if isinstance(value, Mapping) else None

    def with_port(self, port: int) -> Preset:
        """The same preset on another port."""
        return replace(self, server=replace(self.server, port=port))

    def with_env(self, **extra: str) -> Preset:
        """The same preset with more variables in the server's environment."""
        return replace(self, env={**self.env, **extra})

    def to_json(self) -> dict[str, Value]:
        """A map for state files and reports; the values of secrets are replaced by `${NAME}`."""
        return {
            "name": self.name,
            "description": self.description,
            "model": self.model,
            "served-name": self.served_name,
            "command": list(self.command),
            "args": dict(self.args),
            "env": {k: f"${{{k}}}" if k in self.secrets else v for k, v in self.env.items()},
            "secrets": sorted(self.secrets),
            "server": {
                "host": self.server.host,
                "port": self.server.port,
                "ready-timeout": self.server.ready_timeout,
                "stop-grace": self.server.stop_grace,
                "restart": self.server.restart,
            },
            "lab": {k: masked(v, self.secrets) if isinstance(v, Mapping) else v for k, v in self.lab.items()},
            "path": str(self.path) if self.path else None,
            "simulated": self.simulated,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Value], secrets: Mapping[str, str] | None = None) -> Preset:
        """The inverse of `to_json`; `secrets` supplies the values that were left out (missing ones are dropped)."""
        known = secrets or {}
        names = frozenset(raw.get("secrets") or ())
        env = {k: v for k, v in raw["env"].items() if k not in names}
        env.update({k: known[k] for k in names if known.get(k)})
        options = raw["server"]
        return cls(
            name=raw["name"],
            description=raw["description"],
            model=raw["model"],
            served_name=raw["served-name"],
            command=tuple(raw["command"]),
            args=raw["args"],
            env=env,
            secrets=names,
            server=ServerOptions(
                host=options["host"],
                port=options["port"],
                ready_timeout=options["ready-timeout"],
                stop_grace=options["stop-grace"],
                restart=options["restart"],
            ),
            lab=raw["lab"],
            path=Path(raw["path"]) if raw["path"] else None,
            simulated=raw["simulated"],
        )
