"""Where a model's files lie on this machine: a folder, or the Hugging Face cache; nothing is downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.files import read_json, read_text
from console.paths import expanded


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model as it lies here."""

    folder: Path
    config: Mapping[str, Any] | None
    weight_bytes: int
    """Of all weight files; 0 where none is here yet."""


def is_path(model: str) -> bool:
    """Whether a model is named by its place on this machine, and not by its name on the hub."""
    return model.startswith(("/", ".", "~"))


def find(model: str, env: Mapping[str, str]) -> ModelFiles | None:
    """The files of a path or of a name on the hub, `None` where they are not here."""
    folder = expanded(model) if is_path(model) else _snapshot(model, env)
    if folder is None or not folder.is_dir():
        return None
    weights = [path for pattern in ("*.safetensors", "*.bin", "*.pt", "*.gguf") for path in folder.glob(pattern)]
    return ModelFiles(folder, _config(folder), sum(_size(path) for path in weights))


def hub(env: Mapping[str, str]) -> Path:
    """The folder of the Hugging Face cache."""
    if named := env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE"):
        return expanded(named)
    home = env.get("HF_HOME")
    if home:
        return expanded(home) / "hub"
    return Path(env.get("XDG_CACHE_HOME") or expanded("~/.cache")) / "huggingface" / "hub"


def _snapshot(model: str, env: Mapping[str, str]) -> Path | None:
    root = hub(env) / f"models--{model.replace('/', '--')}"
    try:
        named = read_text(root / "refs" / "main").strip()
        if (root / "snapshots" / named).is_dir():
            return root / "snapshots" / named
    except (OSError, ValueError):
        pass
    snapshots = sorted((root / "snapshots").glob("*"), key=lambda path: path.stat().st_mtime)
    return snapshots[-1] if snapshots else None


def _config(folder: Path) -> Mapping[str, Any] | None:
    try:
        found = read_json(folder / "config.json")
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
