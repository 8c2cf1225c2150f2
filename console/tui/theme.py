"""The colours: the terminal's own sixteen on the terminal's own ground."""

from textual.theme import Theme

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


def _theme(name: str, *, line: str, good: str, warn: str, bad: str) -> Theme:
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


THEMES = (
    _theme("calm", line="ansi_cyan", good="ansi_green", warn="ansi_yellow", bad="ansi_red"),
    _theme("light", line="ansi_blue", good="ansi_green", warn="ansi_magenta", bad="ansi_red"),
    _theme("plain", line="ansi_default", good="ansi_default", warn="ansi_default", bad="ansi_default"),
)
"""`calm` is legible on dark grounds and on most light ones, as the user's terminal is set up; `light` does without
yellow and cyan, which white swallows; `plain` has no colour at all: every state is a sign and a word. All are short on
the wire: one colour is 5 bytes here and 19 in 24-bit colour."""
