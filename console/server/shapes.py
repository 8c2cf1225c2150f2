"""Whether what a state file holds has the shape it was written in. Imports what the keeper may import.

A file of another shape was not written by this console, or no longer is what it wrote: nothing is read from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from console.address import is_host

T = TypeVar("T")
WRONG = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading a file of another shape ends in."""

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


def word(raw: Any) -> str:
    """The same, and not empty.

    Raises:
        TypeError, ValueError: it cannot, or it is.
    """
    if not text(raw):
        raise ValueError
    return str(raw)


def stamp(raw: Any) -> str:
    """A moment as ISO 8601 with its zone.

    Raises:
        TypeError, ValueError: it is none.
    """
    if datetime.fromisoformat(text(raw)).tzinfo is None:
        raise ValueError
    return str(raw)


def whole(raw: Any) -> int:
    """A whole number.

    Raises:
        TypeError, ValueError: it is none, or out of all proportion.
    """
    if not isinstance(raw, int):
        raise TypeError
    return int(number(raw))


def host(raw: Any) -> str:
    """Where a server may listen.

    Raises:
        TypeError, ValueError: nothing listens at such a host.
    """
    if not is_host(text(raw)):
        raise ValueError
    return str(raw)


def port(raw: Any) -> int:
    """The number of a port that one can connect to.

    Raises:
        TypeError, ValueError: it is none.
    """
    if not 0 < whole(raw) <= 65535:
        raise ValueError
    return int(raw)


def optional(shape: Callable[[Any], T], raw: Any) -> T | None:
    """Nothing, or what has that shape."""
    return None if raw is None else shape(raw)


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
    host(raw["server"]["host"])
    _texts(raw["args"])
    return raw


def _texts(raw: Any) -> None:
    """See that every text within can be a word of a command."""
    if isinstance(raw, str):
        text(raw)
    elif isinstance(raw, dict | list):
        for value in raw.values() if isinstance(raw, dict) else raw:
            _texts(value)


def _check(raw: Mapping[str, Any], kinds: Mapping[str, tuple[type, ...]]) -> None:
    for name, allowed in kinds.items():
        value = raw[name]
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            raise TypeError
        if isinstance(value, int | float) and bool not in allowed:
            number(value)
        if isinstance(value, str):
            text(value)
