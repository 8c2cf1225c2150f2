"""All keys, written from the table of commands; what the signs on the screen mean. Pure."""

from __future__ import annotations

from console.tui.commands import help_rows
from console.tui.figures import SYMBOLS
from console.tui.widgets.lines import Line, line


def help_lines() -> list[Line]:
    """Groups of keys, then the states."""
    lines: list[Line] = []
    for group, rows in help_rows():
        lines.append(line(group, "title"))
        lines += [((f"  {keys:<9} ", "strong"), (text, "")) for keys, text in rows]
    states = "  ".join(f"{sign} {state.value}" for state, sign in SYMBOLS.items())
    return [*lines, line(states, "dim")]
