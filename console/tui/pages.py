"""The pages over the whole screen: which command shows what."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from console.tui import notice_lines
from console.tui.help_lines import help_lines
from console.tui.log_lines import no_log, pretty, rows
from console.tui.screens.live import LivePage
from console.tui.screens.page import HELP, Page
from console.tui.screens.pager import Pager
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.server.chain import Link
    from console.tui.app import ConsoleApp

_ASIDE = 34
"""Cells of a page's rule that its title leaves to what stands at the right."""
_DAY_S = 86_400.0
_HISTORY_S = 7 * _DAY_S
Titled = tuple[str, Sequence[Line]]


def keys(app: ConsoleApp) -> Page:
    """All keys."""

    def content(width: int) -> Titled:
        return "keys", help_lines(app.services.config.keys, width, app.size.height - 2)

    return Pager(HELP, content, simulated=app.simulated)


def notices(app: ConsoleApp) -> Page:
    """What stands out now."""

    def content(width: int) -> Titled:
        return "notices", notice_lines.full(app.dashboard.notices, app.situation.status, width)

    return Pager("notices", content, simulated=app.simulated)


def log(app: ConsoleApp) -> Page:
    """The server's log."""

    def content(width: int) -> Titled:
        lower = app.dashboard.lower
        title = f"log {_end(lower.log_path, width - _ASIDE)}" if lower.log_path else "log"
        found = [pretty(text) for text in lower.log_text]
        return title, found or [line(no_log(lower.log_path, app.situation.status), "dim")]

    return Pager("log", content, rows=rows, follow=True, simulated=app.simulated)


def _end(path: str, room: int) -> str:
    """A path cut at its beginning: the file's name tells which one it is."""
    return path if len(path) <= room else f"…{path[-max(1, room - 1) :]}"


def details(app: ConsoleApp) -> Page:
    """The A/B runs."""
    from console.tui.screens.runs import RunsPage

    return RunsPage(app)


def preset(app: ConsoleApp) -> Page:
    """The presets."""
    from console.tui.screens.presets import PresetsPage

    return PresetsPage(app)


def chain(app: ConsoleApp) -> Page:
    """What really runs."""
    from console.tui.chain_lines import chain_lines, server_lines

    def lines(links: tuple[Link, ...], width: int) -> Sequence[Line]:
        return [*server_lines(app.situation.status, width), *chain_lines(links, width)]

    return LivePage("chain", "execution chain", app.sources.chain, lines, every_s=2.0, simulated=app.simulated)


def trends(app: ConsoleApp) -> Page:
    """Graphs."""
    from console.tui.screens.trends import Trends

    return Trends(app)


def cards(app: ConsoleApp) -> Page:
    """The whole of each card."""
    from console.tui.card_lines import card_lines

    return LivePage("cards", "cards", app.sources.whole_cards, card_lines, every_s=1.0, simulated=app.simulated)


def history(app: ConsoleApp) -> Page:
    """The last days, by boot."""
    from console.server.history import History, read_history, with_ends
    from console.server.lives import seen_lives
    from console.server.minutes import history_path
    from console.tui.history_lines import history_lines

    paths = app.services.paths
    path: Path = history_path(paths.state)

    def read() -> History:
        since = time.time() - _HISTORY_S
        return with_ends(read_history(path, since), seen_lives(paths), since)

    return LivePage(
        "history",
        "history of the last 7 days",
        read,
        history_lines,
        every_s=30.0,
        simulated=app.simulated,
    )
