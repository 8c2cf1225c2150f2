"""The pages over the whole screen: which command shows what."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.tui import notice_lines, run_lines
from console.tui.help_lines import help_lines
from console.tui.log_lines import rows
from console.tui.screens.live import LivePage
from console.tui.screens.pager import Page, Pager
from console.tui.stories import error_story

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.widgets.lines import Line

_DAY_S = 86_400.0
_HISTORY_S = 7 * _DAY_S
_STANDS_S = 3600.0
"""What does not change while one looks at it."""
Titled = tuple[str, Sequence["Line"]]


def keys(app: ConsoleApp) -> Page:
    """All keys."""
    return Pager("help", lambda _: ("keys", help_lines()), simulated=app.simulated)


def notices(app: ConsoleApp) -> Page:
    """What stands out now."""

    def content(width: int) -> Titled:
        return "notices", notice_lines.full(app.dashboard.notices, width)

    return Pager("notices", content, simulated=app.simulated)


def log(app: ConsoleApp) -> Page:
    """The server's log."""

    def content(width: int) -> Titled:
        lower = app.dashboard.lower
        return f"log {lower.log_path or ''}", [row for text in lower.log_text for row in rows(text, width)]

    return Pager("log", content, follow=True, simulated=app.simulated)


def details(app: ConsoleApp) -> Page:
    """The newest A/B run with nothing left out."""

    def content(width: int) -> Titled:
        run = app.dashboard.lower.run
        return run_lines.title(run), run_lines.full(run, width) if run else run_lines.nothing()

    return Pager("details", content, simulated=app.simulated)


def preset(app: ConsoleApp) -> Page:
    """The selected preset in full."""
    from console.tui.preset_page import preset_page

    entry = app.dashboard.lower.selected
    if entry is None or entry.preset is None:
        error = entry.error if entry and entry.error else ConsoleError("no preset is selected")
        return Pager("preset", lambda width: ("preset", error_story(error, width)), simulated=app.simulated)
    chosen = entry.preset
    return LivePage(
        "preset",
        chosen.name,
        lambda: app.services.inspect(chosen),
        preset_page,
        every_s=_STANDS_S,
        simulated=app.simulated,
    )


def chain(app: ConsoleApp) -> Page:
    """What really runs."""
    from console.tui.chain_lines import chain_lines

    return LivePage("chain", "execution chain", app.sources.chain, chain_lines, every_s=2.0, simulated=app.simulated)


def cards(app: ConsoleApp) -> Page:
    """The whole of each card."""
    from console.tui.card_lines import card_lines

    return LivePage("cards", "cards", app.sources.whole_cards, card_lines, every_s=1.0, simulated=app.simulated)


def history(app: ConsoleApp) -> Page:
    """The last days, by boot."""
    from console.server.history import read_history
    from console.server.minutes import history_path
    from console.tui.history_lines import history_lines

    path: Path = history_path(app.services.paths.state)
    return LivePage(
        "history",
        "history of the last 7 days",
        lambda: read_history(path, time.time() - _HISTORY_S),
        history_lines,
        every_s=30.0,
        simulated=app.simulated,
    )
