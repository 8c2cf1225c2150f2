"""Textual's parser of what a terminal sends, with `esc` a key of its own whatever comes behind it."""

from __future__ import annotations

from collections.abc import Iterable

from textual._xterm_parser import XTermParser
from textual.events import Key

_ESC = "\x1b"
_LEADS = frozenset("[O]P_")
"""Behind ESC these begin a longer sequence: an arrow key, an answer of the terminal."""


class Keystrokes(XTermParser):
    """ESC and a sign are `esc` and then that key.

    A terminal sends the same for alt and that key, and the console binds no alt. A slow line puts two strokes into one
    packet all the time: read as alt, both would do nothing.
    """

    def _sequence_to_key_events(self, sequence: str, alt: bool = False) -> Iterable[Key]:
        if len(sequence) == 2 and sequence[0] == _ESC and sequence[1] not in _LEADS:
            yield Key("escape", _ESC)
            sequence, alt = sequence[1], False
        yield from super()._sequence_to_key_events(sequence, alt)
