"""Whether what a state file holds has the shape it was written in. Imports what the keeper may import.

A file of another shape was not written by this console, or no longer is what it wrote: nothing is read from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_KINDS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "description": (str,),
    "model": (str,),
    "served-name": (str, type(None)),
    "command": (list,),
    "args": (dict,),
    "env": (dict,),
    "server": (dict,),
    "lab": (dict,),
    "path": (str, type(None)),
    "simulated": (bool,),
}
_SERVER_KINDS: Mapping[str, tuple[type, ...]] = {
    "host": (str,),
    "port": (int,),
    "ready-timeout": (int, float),
    "stop-grace": (int, float),
    "restart": (str,),
}


def text(raw: Any) -> str:
    """A word that can name a file.

    Raises:
        TypeError, ValueError: it cannot.
    """
    if not isinstance(raw, str):
        raise TypeError
    if "\0" in raw:
        raise ValueError
    raw.encode()
    return raw


def number(raw: Any) -> float:
    """A number that is one: neither text nor infinite.

    Raises:
        TypeError, ValueError: it is not.
    """
    if isinstance(raw, bool) or not isinstance(raw, int | float):
        raise TypeError
    if not -1e15 < raw < 1e15:
        raise ValueError
    return float(raw)


def preset(raw: Any) -> Mapping[str, Any] | None:
    """A preset as a record keeps it.

    Raises:
        KeyError, TypeError, ValueError: a part is missing or of another kind.
    """
    if raw is None:
        return None
    if not isinstance(raw, dict):
        raise TypeError
    _check(raw, _KINDS)
    _check(raw["server"], _SERVER_KINDS)
    for word in (*raw["command"], *raw["env"].values(), *(raw.get("secrets") or ())):
        text(word)
    for value in raw["args"].values():
        if isinstance(value, str):
            text(value)
    return raw


def _check(raw: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
    for name, allowed in kinds.items():
        value = raw[name]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise TypeError
        if isinstance(value, int | float) and bool not in allowed:
            number(value)
        if isinstance(value, str):
            text(value)
