"""What a text means, as a style of the terminal: past the stylesheet, since every widget of ours is made of them.

The console draws with the terminal's own sixteen colours on its own ground; a tone never says anything that the text
itself does not say.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rich.style import Style

POINTED = Style(reverse=True)
PALETTES: Mapping[str, Mapping[str, str]] = {
    "calm": {"line": "cyan", "good": "green", "warn": "yellow", "bad": "red"},
    "light": {"line": "blue", "good": "green", "warn": "magenta", "bad": "red"},
    "plain": {},
}
"""`calm` is legible on dark grounds and on most light ones, as the user's terminal is set up; `light` does without
yellow and cyan, which white swallows; `plain` has no colour at all: every state is a sign and a word. All are short on
the wire: one colour is 5 bytes here and 19 in 24-bit colour."""


@lru_cache
def tones(theme: str) -> Mapping[str, Style]:
    """Word → style; the empty word is plain text. A theme that is not ours has the colours of `calm`."""
    colours = PALETTES.get(theme, PALETTES["calm"])
    line, good, warn, bad = (colours.get(name) for name in ("line", "good", "warn", "bad"))
    return {
        "": Style(),
        "dim": Style(dim=True),
        "label": Style(dim=True),
        "old": Style(dim=True, italic=True),
        "strong": Style(bold=True),
        "chosen": Style(bold=True, reverse=True),
        "line": Style(color=line, dim=True),
        "title": Style(color=line, bold=True),
        "good": Style(color=good),
        "warn": Style(color=warn),
        "bad": Style(color=bad, bold=True),
        "badge": Style(color=warn, bold=True),
        "up": Style(color=good),
        "down": Style(color=line),
    }
