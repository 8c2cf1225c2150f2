"""Keys as sentences name them: those of the table of commands, or what the user's configuration has instead."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.tui.commands import KeyMap

_given: KeyMap = {}


def keys_are(given: KeyMap) -> None:
    """Remember the user's own keys; told once, before anything is said."""
    global _given
    _given = given


def cap(command: str) -> str:
    """The first key of a command, as the footer writes it."""
    # Imported here: the table needs the guards, whose sentences name keys.
    from console.tui.commands import by_name, shown_keys

    return shown_keys(by_name(command), _given).split()[0]
