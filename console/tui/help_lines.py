"""The keys as lines, from the table of commands: all of them at a glance, then each with its sentence. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from console.tui.commands import KeyMap, help_rows
from console.tui.figures import SYMBOLS
from console.tui.widgets.lines import Line, line

PAGE_KEYS = (
    ("esc q", "back; a key of another page goes straight there"),
    ("esc", "on the dashboard: a message that stands goes away"),
    ("up down pgup pgdn home end", "move; at the end of the log it follows"),
    ("/ n N", "find, next, previous; capitals count only where you type one"),
    ("&", "only the lines with it, or all again"),
    ("!", "the next error"),
    ("z left right", "long lines cut at the edge, or wrapped; cut ones move aside"),
    ("< >", "the preset or the run before, the next one"),
)
SIGNS = (
    ("presets", (("✖", "its file is broken"), ("▲", "a variable it needs is not set"))),
    ("a start", (("✓", "done"), ("▸", "under way"), ("·", "to come"))),
    ("boots", (("✓", "counts"), ("✖", "does not count"), ("▸", "under way"), ("·", "to come"))),
    (
        "measures",
        (
            ("▲", "better"),
            ("▼", "worse"),
            ("=", "same"),
            ("?", "open"),
            ("?▲ ?▼ ?=", "just short of that word"),
            ("…", "told at the run's end"),
        ),
    ),
    (
        "a run",
        (
            ("✓", "adopt"),
            ("=", "keep"),
            ("~", "noise floor"),
            ("?", "undecided"),
            ("◌", "interrupted"),
            ("✖", "failed"),
        ),
    ),
    ("chain", (("✓", "ok"), ("▲", "to look at"), ("?", "not known"))),
    ("notices", (("✖", "bad"), ("▲", "warning"), ("·", "information"))),
    ("figures", (("~", "estimated within a bucket"), ("n/a", "not known"))),
)
"""Where signs stand, and what each means there."""
_SIGNS = 64
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
    lines.append(line("Signs", "title"))
    for about, signs in (("server", _states()), *SIGNS):
        for i, row in enumerate(_packed([f"{sign} {word}" for sign, word in signs])):
            lines.append(((f"  {'' if i else about:<{_KEYS}} ", "dim"), (row, "")))
    return lines


def _packed(texts: Iterable[str]) -> list[str]:
    """So many on a row as fit; none is parted."""
    rows = [""]
    for text in texts:
        longer = f"{rows[-1]}   {text}".strip()
        rows[-1:] = [longer] if len(longer) <= _SIGNS else [rows[-1], text]
    return rows


def _states() -> list[tuple[str, str]]:
    return [(sign, state.value) for state, sign in SYMBOLS.items()]
