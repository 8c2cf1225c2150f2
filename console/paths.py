"""Every path of the project: XDG folders, run folders, the data shipped with the package.

Standard library only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from console.errors import UsageError

APP = "qwen-console"
PRESETS_VARIABLE = "QWEN_CONSOLE_PRESETS"
_PACKAGE = Path(__file__).resolve().parent


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    # The XDG base directory specification: a relative path is to be ignored.
    return Path(value) if value.startswith("/") else _known("~", "HOME", "set HOME, or the XDG folders") / default


def expanded(word: str) -> Path:
    """The path that a word means, `~` and `~user` filled in; where nobody is known it stays as it is written."""
    try:
        return Path(word).expanduser()
    except RuntimeError:
        return Path(word)


def _known(word: str, variable: str, fix: str) -> Path:
    """The same for a place to write in.

    Raises:
        UsageError: whose folder is meant cannot be told.
    """
    path = expanded(word)
    if word.startswith("~") and path == Path(word):
        raise UsageError(f"whose folder {word} is cannot be told ({variable})", "there is no such user here", fix)
    return path


def data(name: str) -> Path:
    """The folder `presets` or `assets` as shipped: inside the wheel, else beside the package in a checkout."""
    inside = _PACKAGE / "_data" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


@dataclass(frozen=True, slots=True)
class Paths:
    """Where one console keeps its things; a demo console has a state folder of its own."""

    state: Path
    config: Path
    cache: Path
    demo: bool = False

    @classmethod
    def from_env(cls, *, demo: bool = False) -> Paths:
        """The folders that `XDG_STATE_HOME`, `XDG_CONFIG_HOME` and `XDG_CACHE_HOME` name."""
        name = f"{APP}-demo" if demo else APP
        return cls(
            state=_xdg("XDG_STATE_HOME", ".local/state") / name,
            config=_xdg("XDG_CONFIG_HOME", ".config") / APP,
            cache=_xdg("XDG_CACHE_HOME", ".cache") / APP,
            demo=demo,
        )

    @property
    def server_record(self) -> Path:
        """Who the server is: identities, preset, argv, port, log."""
        return self.state / "server.json"

    @property
    def exit_record(self) -> Path:
        """How the server ended, written by its keeper."""
        return self.state / "exit.json"

    @property
    def server_lock(self) -> Path:
        """Held (flock) by the keeper while the server lives."""
        return self.state / "server.lock"

    @property
    def run_lock(self) -> Path:
        """Held (flock) by the lab while a run lives."""
        return self.state / "run.lock"

    @property
    def canary(self) -> Path:
        """The answer to the one canary request of this server life."""
        return self.state / "canary.json"

    @property
    def baseline(self) -> Path:
        """The `/metrics` page right after the canary: lifetime figures start there."""
        return self.state / "baseline.prom"

    @property
    def logs(self) -> Path:
        """One log file a server life."""
        return self.state / "logs"

    @property
    def runs(self) -> Path:
        """One folder an A/B run."""
        return self.state / "runs"

    def run(self, run_id: str) -> Path:
        """The folder of one A/B run."""
        return self.runs / run_id

    def make(self) -> None:
        """Create the state folders, readable by their owner only."""
        for folder in (self.state, self.logs, self.runs):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def preset_dirs(self, given: Path | None = None) -> list[Path]:
        """Folders in which presets are looked for; the first file of a name wins."""
        dirs = [given] if given else []
        if variable := os.environ.get(PRESETS_VARIABLE):
            dirs.append(expanded(variable))
        own = [self.state / "presets"] if self.demo else []
        return [*dirs, *own, self.config / "presets", data("presets")]

    @property
    def own_presets(self) -> Path:
        """Where `ab adopt` writes: the first folder of the user's own; what a demo measured stays in the demo."""
        if self.demo:
            return self.state / "presets"
        variable = os.environ.get(PRESETS_VARIABLE)
        if not variable:
            return self.config / "presets"
        return _known(variable, PRESETS_VARIABLE, "name a folder that is there")
