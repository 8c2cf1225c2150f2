"""The colours: the terminal's own sixteen on the terminal's own ground."""

from collections.abc import Mapping

from textual.theme import Theme

from console.tui.tones import PALETTES

_GROUND = "ansi_default"
_VARIABLES = {
    "ansi-background": "ansi_default",
    "ansi-foreground": "ansi_default",
    "border-blurred": "ansi_cyan",
    "block-cursor-foreground": "ansi_default",
    "block-cursor-background": "ansi_default",
    "block-cursor-text-style": "reverse bold",
    "input-cursor-text-style": "reverse",
}


def _theme(name: str, colours: Mapping[str, str]) -> Theme:
    line, good, warn, bad = (f"ansi_{colours.get(word, 'default')}" for word in ("line", "good", "warn", "bad"))
    return Theme(
        name=name,
        ansi=True,
        primary=line,
        secondary=line,
        accent=line,
        success=good,
        warning=warn,
        error=bad,
        foreground=_GROUND,
        background=_GROUND,
        surface=_GROUND,
        panel=_GROUND,
        boost=_GROUND,
        variables=_VARIABLES,
    )


THEMES = tuple(_theme(name, colours) for name, colours in PALETTES.items())
"""For the few widgets that are Textual's own: palette, input, boxes."""
