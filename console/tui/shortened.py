"""Names and paths in fewer cells: what tells them apart stands at their end."""

from __future__ import annotations

from pathlib import Path


def middle(text: str, width: int) -> str:
    """A text of at most `width` characters, cut in its middle: `qwen3.8-2…-100k-mtp`."""
    if len(text) <= width:
        return text
    head = max(0, width - 1) // 2
    return f"{text[:head]}…{text[len(text) - max(0, width - 1 - head) :]}"


def path(where: Path, width: int) -> str:
    """A path with `~` for the home folder; where that is too long folders are left out, and its name stays whole."""
    home = Path.home()
    text = f"~/{where.relative_to(home)}" if where.is_relative_to(home) else str(where)
    if len(text) <= width:
        return text
    room = width - len(where.name) - 1
    return f"{middle(text[: -len(where.name) - 1], room)}/{where.name}" if room > 0 else where.name
