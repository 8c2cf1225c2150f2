"""A start that another console has begun with the same preset is followed as if it were ours."""

from __future__ import annotations

import time

from console.cli.house import House
from console.cli.voice import say
from console.errors import BusyError
from console.presets import Preset
from console.presets.overrides import keys_changed
from console.server.status import ServerStatus, State

_PATIENCE_S = 30.0
"""A machine that swaps may take so long between a start and its first word."""


def is_of(house: House, status: ServerStatus, preset: Preset, *, changed: bool) -> bool:
    """Whether what lives was started from this preset; with `changed`, with these very settings."""
    if status.preset != preset.name or not changed:
        return status.preset == preset.name
    there = house.server.preset()
    return there is not None and not keys_changed(there, preset)


def start_or_join(house: House, preset: Preset, *, changed: bool) -> None:
    """Start it, unless another console has begun with the same meanwhile.

    Raises:
        BusyError: something else runs, or is being started or stopped.
        ConsoleError: it cannot be started.
    """
    try:
        house.server.start(preset)
    except BusyError:
        end = time.monotonic() + _PATIENCE_S
        while (now := house.server.status(probe=False)).preset is None and now.state is State.STARTING:
            # Whoever holds the lock has not put on record yet what is being started.
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        if now.state not in (State.STARTING, State.READY) or not is_of(house, now, preset, changed=changed):
            raise
        say(f"{preset.name} is being started by another console already")
