"""Before a start is asked for: whether the preset lacks a variable, as the start itself would say."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.tui.messages import CatalogSeen
from console.tui.pollers import in_thread
from console.tui.preset_lines import Entry, entries, gone
from console.tui.screens.modal import Trouble

if TYPE_CHECKING:
    from console.presets import Preset
    from console.server.life import Server
    from console.tui.app import ConsoleApp


def as_written(app: ConsoleApp, go: Callable[[Entry], None]) -> None:
    """Go on with the selected preset as its file is at this moment: it may have been edited a moment ago."""
    if (entry := app.dashboard.lower.selected) is not None:
        app.lead_to_question(_read_and_go(app, entry.name, go))


async def _read_and_go(app: ConsoleApp, name: str, go: Callable[[Entry], None]) -> None:
    catalog = await in_thread(app.services.catalog)
    app.dashboard.post_message(CatalogSeen(catalog))
    go(next((entry for entry in entries(catalog) if entry.name == name), gone(name)))


def if_whole(app: ConsoleApp, preset: Preset, go: Callable[[], None]) -> None:
    """Go on with a preset that lacks nothing; of one that does, say what, why and how to mend it."""
    if preset.unset:
        app.lead_to_question(_see(app, preset, go))
    else:
        go()


async def _see(app: ConsoleApp, preset: Preset, go: Callable[[], None]) -> None:
    try:
        await in_thread(partial(_see_whole, app.services.server, preset))
    except ConsoleError as error:
        app.push_screen(Trouble(f"{preset.name} cannot start", error))
    else:
        go()


def _see_whole(server: Server, preset: Preset) -> None:
    """A switch takes the running server's secrets along: those are not lacking."""
    from console.server.keeping_secrets import keep_secrets

    keep_secrets(preset, server.running_preset())[0].see_whole()
