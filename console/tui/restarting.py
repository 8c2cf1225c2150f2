"""What `r` asks: whether to restart, and where the preset's file says something else by now, as what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from console.errors import NothingError
from console.tui.asking import ask_about_requests
from console.tui.pollers import in_thread
from console.tui.screens.modal import Trouble

if TYPE_CHECKING:
    from console.presets import Preset
    from console.tui.app import ConsoleApp
    from console.tui.services import Services

_NAMED = 4
"""Changes that are told; `d` tells all of them."""
_NO_PRESET = NothingError("no preset of that name is left", "its file is gone", "select another one")


@dataclass(frozen=True, slots=True)
class _Ways:
    """What there is to start again; it stands as it was asked about, whatever becomes of the file meanwhile."""

    as_it_was: Preset | None = None
    as_written: Preset | None = None
    changes: tuple[str, ...] = ()
    """What the file says otherwise by now."""
    spoilt: str = ""
    """Why the file is no way, in a sentence."""


async def restart(app: ConsoleApp) -> None:
    """Stop what runs, if it does, and start the same preset again; asks where something would be lost or changed."""
    preset = app.situation.status.preset
    ways = await in_thread(partial(_ways, app.services, preset))
    now, name = app.situation, preset or "the server"
    if now.status.preset != preset:
        await restart(app)
        return
    was, written = ways.as_it_was, ways.as_written
    if ways.changes and was and written:
        ways_on = {"y": ("as it was started", _job(app, was)), "f": ("as its file says", _job(app, written))}
    elif again := written or was:
        ways_on = {"y": ("as it was started" if ways.spoilt else "restart", _job(app, again))}
        if not now.alive and not ways.spoilt:
            ways_on["y"][1]()
            return
    else:
        app.push_screen(Trouble(f"{name} cannot be started again", _NO_PRESET))
        return
    text = [f"{now.interrupts.capitalize()}." if now.alive else "No server runs now: nothing is stopped."]
    text += [ways.spoilt] if ways.spoilt else _told(ways.changes)
    ask_about_requests(app, f"Restart {name}?", text, "restart", ways_on)


def _job(app: ConsoleApp, preset: Preset) -> Callable[[], None]:
    job = partial(app.actions.switch, preset)
    return partial(app.act, f"restarting {preset.name}", job, raising="server", coming=preset.name)


def _told(changes: tuple[str, ...]) -> list[str]:
    if not changes:
        return []
    more = len(changes) - _NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return ["Its file says otherwise by now than what was started:", *changes[:_NAMED], *rest]


def _ways(services: Services, name: str | None) -> _Ways:
    from console.lab.difference import changes_of_file
    from console.presets.catalog import refilled
    from console.server.worked import at_hand

    server, catalog = services.server, services.catalog()
    ran, file = at_hand(server.paths, server.preset()), catalog.presets.get(name or "")
    ran = refilled(ran, catalog.presets) if ran is not None and name in (None, ran.name) else None
    spoilt = ""
    if ran is not None and file is None:
        broken = next((problem.error.what for problem in catalog.problems if problem.name == ran.name), None)
        spoilt = f"Its file cannot be used now: {broken}." if broken else "Its file is gone."
    return _Ways(ran, file, tuple(changes_of_file(ran, file)), spoilt)
