"""A frame of the screen as text: its characters, and below each row the names of the styles that it uses."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.style import Style
from textual.app import App
from textual.pilot import Pilot

from tests.tui.fakes import until

FOLDER = Path(__file__).parent / "frames"
_NAMES = {f"color({i})": n for i, n in enumerate(("black", "red", "green", "yellow", "blue", "magenta", "cyan"))}
UPDATE = "UPDATE_FRAMES"
"""Set in the environment: the frames are written instead of compared. Look at them before they are committed."""


def frame(app: App[Any]) -> str:
    """Rows of the front screen; after `~` the runs of a row that are not in the default style."""
    rows = []
    for strip in app.screen._compositor.render_strips():
        text, styles, x = "", [], 0
        for segment in strip.simplify():
            text += segment.text
            name = style_name(segment.style)
            if name and segment.text.strip():
                styles.append(f"{x}+{segment.cell_length} {name}")
            x += segment.cell_length
        rows.append(text.rstrip() + (f"\n~ {', '.join(styles)}" if styles else ""))
    return "\n".join(rows) + "\n"


def style_name(style: Style | None) -> str:
    """`green bold`, `cyan dim`, `reverse`: what a terminal is told."""
    if style is None:
        return ""
    words = []
    if style.color is not None and not style.color.is_default:
        words.append(_NAMES.get(style.color.name, style.color.name))
    if style.bgcolor is not None and not style.bgcolor.is_default:
        words.append(f"on {style.bgcolor.name}")
    words += [word for word in ("bold", "dim", "italic", "reverse", "underline") if getattr(style, word)]
    return " ".join(words)


async def compare(pilot: Pilot[Any], name: str, show: Callable[[], None]) -> None:
    """Hold the screen against the frame of that name, once it has come to rest.

    Args:
        pilot: whose screen.
        name: the file, without its ending.
        show: brings the screen to where it should be; repeated, since what is told late is painted late.
    """
    path = FOLDER / f"{name}.txt"
    if os.environ.get(UPDATE):
        await _write(pilot, path, show)
        return
    wanted = _kept(path)

    def equal() -> bool:
        show()
        return frame(pilot.app) == wanted

    try:
        await until(pilot, equal, 8.0)
    except AssertionError:
        assert frame(pilot.app) == wanted, f"{path.name}: look at the difference; {UPDATE}=1 takes the new frame"


def _kept(path: Path) -> str:
    return path.read_text()


async def _write(pilot: Pilot[Any], path: Path, show: Callable[[], None]) -> None:
    """The frame once it stands still for a while."""
    seen, still = "", 0
    while still < 8:
        show()
        await pilot.pause(0.05)
        now = frame(pilot.app)
        still = still + 1 if now == seen else 0
        seen = now
    _keep(path, seen)


def _keep(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
