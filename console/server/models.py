"""What a server says it serves."""

from __future__ import annotations

from typing import Any


def by_stand_in(version: str | None) -> bool:
    """Whether a server that tells this version is the stand-in engine."""
    return version is not None and version.endswith("sim")


def listed_models(answer: Any) -> list[str]:
    """The names in an answer of `/v1/models`; empty when it is none."""
    items = answer.get("data") if isinstance(answer, dict) else None
    found = [item.get("id") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return [name for name in found if isinstance(name, str)]
