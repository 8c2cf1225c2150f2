"""The colours: the terminal's own sixteen on the terminal's own ground."""

from textual.theme import Theme

CALM = Theme(
    name="calm",
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    warning="ansi_yellow",
    error="ansi_red",
    success="ansi_green",
    accent="ansi_cyan",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border-blurred": "ansi_cyan",
        "block-cursor-foreground": "ansi_default",
        "block-cursor-background": "ansi_default",
        "block-cursor-text-style": "reverse bold",
        "input-cursor-text-style": "reverse",
    },
)
"""Legible on light and dark grounds and in 16 colours, as the user's terminal is set up; and short on the wire: one
colour is 5 bytes here and 19 in 24-bit colour."""
