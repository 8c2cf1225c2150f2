"""What `r` asks: whether to restart, and where the preset's file says something else by now, as what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from console.tui.asking import if_still_so
from console.tui.pollers import in_thread
from console.tui.screens.modal import Question

if TYPE_CHECKING:
    from console.presets import Preset
    from console.tui.app import ConsoleApp
    from console.tui.services import Services

_NAMED = 4
"""Changes that are told; `d` tells all of them."""


@dataclass(frozen=True, slots=True)
class _Ways:
    """Two ways to start again what the preset's file says otherwise by now."""

    as_it_was: Preset
    as_written: Preset
    changes: tuple[str, ...]


async def restart(app: ConsoleApp) -> None:
    """Stop what runs, if it does, and start the same preset again; asks where something would be lost or changed."""
    preset = app.situation.status.preset
    ways = await in_thread(partial(_ways, app.services, preset))
    now, name = app.situation, preset or "the server"
    if now.status.preset != preset:
        await restart(app)
        return
    again = _job(app, name, partial(app.actions.restart, name))
    if ways is None and not now.alive:
        again()
        return
    text = [f"{now.interrupts.capitalize()}." if now.alive else "No server runs now: nothing is stopped."]
    if ways is None:
        jobs, answers = {"y": again}, [("y", "restart")]
    else:
        jobs = {
            "y": _job(app, name, partial(app.actions.switch, ways.as_it_was)),
            "f": _job(app, name, partial(app.actions.switch, ways.as_written)),
        }
        answers = [("y", "as it was started"), ("f", "as its file says")]
        text += _told(ways.changes)
    yes = {key: if_still_so(app, "restart", job) for key, job in jobs.items()}

    def answered(key: str | None) -> None:
        if key in yes:
            yes[key]()

    app.push_screen(Question(f"Restart {name}?", text, answers), answered)


def _job(app: ConsoleApp, name: str, do: Callable[[], str | None]) -> Callable[[], None]:
    return partial(app.act, f"restarting {name}", do, raising="server", coming=name)


def _told(changes: tuple[str, ...]) -> list[str]:
    more = len(changes) - _NAMED
    rest = [f"and {more} more"] if more > 0 else []
    return ["Its file says otherwise by now than what was started:", *changes[:_NAMED], *rest]


def _ways(services: Services, name: str | None) -> _Ways | None:
    from console.lab.difference import changes_of_file
    from console.presets.catalog import refilled
    from console.server.worked import at_hand

    server, catalog = services.server, services.catalog()
    ran, file = at_hand(server.paths, server.preset()), catalog.presets.get(name or "")
    changes = tuple(changes_of_file(ran, file))
    return _Ways(refilled(ran, catalog.presets), file, changes) if ran and file and changes else None
