"""How much of a model's files is on this machine, halves of files included: what a download looks like from outside."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.files import read_json, read_text
from console.memory.files import hub
from console.paths import expanded
from console.presets import Preset, child_env

_PATTERNS = ("*.safetensors", "*.bin", "*.pt", "*.gguf")
_INDEX_BYTES = 64_000_000
_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True, slots=True)
class Weights:
    """The files of one model, at one moment. Sizes in bytes."""

    folder: Path
    """The model's own folder, or its place in the hub's cache, there or not."""
    local: bool
    """A path on this machine: nothing will be downloaded."""
    whole: bool
    """Whether all weights that its index names are there, or some and no index."""
    size: int = 0
    """What is there, halves of files included; not counted for a path."""
    total: int | None = None
    """What the weights will be, by their index."""
    free: int | None = None
    """Free on the disk where it lies, or will lie."""


def weights_of(preset: Preset) -> Weights:
    """The model of this preset, as its server would look for it."""
    given = expanded(preset.model)
    if given.exists() or preset.model.startswith(("/", "~", ".")):
        return Weights(given, local=True, whole=given.exists(), free=free_bytes(given))
    env = child_env(preset)
    cache = preset.args.get("download-dir")
    root = expanded(cache) if isinstance(cache, str) else hub(env)
    revision = preset.args.get("revision")
    return _cached(root / f"models--{preset.model.replace('/', '--')}", str(revision or "main"))


def _cached(folder: Path, revision: str) -> Weights:
    blobs = folder / "blobs"
    snapshot = _snapshot(folder, revision)
    return Weights(
        folder=folder,
        local=False,
        whole=snapshot is not None and _is_whole(snapshot),
        size=sum(_sizes(blobs.glob("*"))),
        total=_total(snapshot) if snapshot else None,
        free=free_bytes(folder),
    )


def _snapshot(folder: Path, revision: str) -> Path | None:
    """The folder of links of that revision: by its reference, by its name, else the only one there is."""
    with suppress(OSError, ValueError):
        revision = read_text(folder / "refs" / revision).strip() or revision
    exact = folder / "snapshots" / revision
    if exact.is_dir():
        return exact
    every = [path for path in (folder / "snapshots").glob("*") if path.is_dir()]
    return every[0] if len(every) == 1 else None


def _is_whole(folder: Path) -> bool:
    names = _named_weights(folder)
    if names:
        return all((folder / name).exists() for name in names)
    return any(path.exists() for pattern in _PATTERNS for path in folder.glob(pattern))


def _index(folder: Path) -> dict[str, Any]:
    for name in _INDEXES:
        try:
            raw = read_json(folder / name, _INDEX_BYTES)
        except (OSError, ValueError):
            continue
        if isinstance(raw, dict):
            return raw
    return {}


def _named_weights(folder: Path) -> set[str]:
    files = _index(folder).get("weight_map")
    return {str(name) for name in files.values()} if isinstance(files, dict) else set()


def _total(folder: Path) -> int | None:
    meta = _index(folder).get("metadata")
    size = meta.get("total_size") if isinstance(meta, dict) else None
    return int(size) if isinstance(size, int | float) and size > 0 else None


def _sizes(paths: Iterable[Path]) -> Iterator[int]:
    for path in paths:
        try:
            if path.is_file():
                stat = path.stat()
                # A half file may be as long as it will be, with holes.
                yield min(stat.st_size, stat.st_blocks * 512) if path.suffix == ".incomplete" else stat.st_size
        except OSError:
            # A file that was renamed between two looks: it is there under its other name.
            continue


def free_bytes(path: Path) -> int | None:
    """Free space where this path is, or would be made."""
    for there in (path, *path.parents):
        if os.access(there, os.R_OK | os.X_OK):
            try:
                return shutil.disk_usage(there).free
            except OSError:
                return None
    return None
