"""What is on the screen, kept: as a file with the figures behind it, or in the terminal's clipboard."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.screen import Screen

from console.tui.screens.page import Page
from console.tui.search import text_of

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

COPIED_BYTES = 64_000
"""Terminals drop longer ones, some of them with everything that follows."""


def screen_text(screen: Screen[Any]) -> str:
    """All of a page, of any other screen what is seen."""
    if isinstance(screen, Page) and (lines := screen.whole()):
        return "\n".join(text_of(row).rstrip() for row in lines)
    strips = screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)


def write_screen(app: ConsoleApp, screen: Screen[Any]) -> Path:
    """Write text and figures into a new file of the state folder.

    Raises:
        OSError: it cannot be written.
    """
    folder = app.services.paths.state / "screens"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    now = datetime.now(UTC)
    path = folder / f"{now:%Y%m%dT%H%M%S.%fZ}.txt"
    title = f"qwen-console, {now:%Y-%m-%d %H:%M:%S} UTC{', SIMULATED' if app.simulated else ''}"
    text = f"{title}\n\n{screen_text(screen)}\n\n{json.dumps(_figures(app), indent=1, default=str)}\n"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def _figures(app: ConsoleApp) -> dict[str, Any]:
    """Unrounded, with the names of `status --json`."""
    seen = app.dashboard
    cards = seen.report.cards if seen.report else ()
    return {
        "server": dataclasses.asdict(app.situation.status),
        "gpus": [dataclasses.asdict(card) for card in cards],
        "reading": dataclasses.asdict(seen.reading),
        "notices": [dataclasses.asdict(notice) for notice in seen.notices],
    }


def copy_screen(app: ConsoleApp, screen: Screen[Any]) -> str:
    """Hand the text to the terminal (OSC 52); what there is to tell about it."""
    text = screen_text(screen)
    whole = text.encode()
    kept = whole[:COPIED_BYTES].decode(errors="ignore")
    app.copy_to_clipboard(kept)
    if len(whole) > COPIED_BYTES:
        return f"copied, the first {COPIED_BYTES:,} of {len(whole):,} bytes, if the terminal allows that"
    return "copied, if the terminal allows that (tmux: set-clipboard on)"
