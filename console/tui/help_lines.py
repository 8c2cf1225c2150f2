"""The keys as lines, from the table of commands: all of them at a glance, then each with its sentence. Pure."""

from __future__ import annotations

from console.tui.commands import KeyMap, help_rows
from console.tui.figures import SYMBOLS
from console.tui.stories import wrapped
from console.tui.widgets.lines import Line, line

PAGE_KEYS = (
    ("esc q", "back; a key of another page goes straight there"),
    ("up down pgup pgdn home end", "move; at the end of the log it follows"),
    ("/ n N", "find text, the next one, the one before"),
    ("&", "only the lines with it, or all again"),
    ("!", "the next error"),
    ("z left right", "long lines cut instead of wrapped, and moved sideways"),
    ("< >", "the preset or the run before, the next one"),
)
_CELL = 39
_KEYS = 10


def help_lines(keys: KeyMap, width: int, height: int) -> list[Line]:
    """All keys: at a glance where the sentences do not fit, then with their sentences, then the signs of the states."""
    whole = _in_full(keys)
    return whole if len(whole) <= height else [*_at_a_glance(keys, width), *whole]


def _at_a_glance(keys: KeyMap, width: int) -> list[Line]:
    """Key and title in columns, and where the rest is."""
    found = [
        (shown, "preset by number" if command.argument else command.title)
        for _, rows in help_rows(keys)
        for shown, command in rows
    ]
    columns = max(1, width // _CELL)
    rows = -(-len(found) // columns)
    lines: list[Line] = []
    for y in range(rows):
        spans: list[tuple[str, str]] = []
        for shown, title in found[y::rows]:
            spans += [(f" {shown:<{_KEYS}} ", "strong"), (f"{title:<{_CELL - _KEYS - 2}}", "")]
        lines.append((*spans[:-1], (spans[-1][0].rstrip(), "")))
    return [*lines, (), line("below: each with what it does, the keys of the pages, the signs", "dim"), ()]


def _in_full(keys: KeyMap) -> list[Line]:
    lines: list[Line] = []
    for group, rows in help_rows(keys):
        lines.append(line(group, "title"))
        lines += [((f"  {shown:<{_KEYS}} ", "strong"), (command.help, "")) for shown, command in rows]
    lines.append(line("On a page", "title"))
    for shown, text in PAGE_KEYS:
        lines.append(((f"  {shown:<{_KEYS}} ", "strong"), (text, "")))
    states = "  ".join(f"{sign} {state.value}" for state, sign in SYMBOLS.items())
    return [*lines, line("Signs", "title"), *wrapped(f"  {states}", 78, indent="  ")]
