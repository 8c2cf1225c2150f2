"""The presets as lines: number, name, which one is selected, which one runs, and files that hold none. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.errors import UsageError
from console.server.status import ServerStatus
from console.tui.figures import SYMBOLS
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.errors import ConsoleError
    from console.presets import Catalog, Preset


_NUMBERED = 9
"""There is no key for a tenth."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the list: a preset, or a file that holds none."""

    name: str
    preset: Preset | None = None
    error: ConsoleError | None = None

    @property
    def lacking(self) -> str:
        """The variables that it needs and that are not set."""
        return ", ".join(dict.fromkeys(one.variable for one in self.preset.unset)) if self.preset else ""


def gone(name: str) -> Entry:
    """A preset that was there, and is not any more."""
    error = UsageError("its file is gone", f"there is no preset {name} any more", "put it back, or select another one")
    return Entry(name, error=error)


def entries(catalog: Catalog) -> list[Entry]:
    """Presets first, in the order they were found, then the broken files."""
    good = [Entry(preset.name, preset=preset) for preset in catalog.presets.values()]
    return good + [Entry(problem.name, error=problem.error) for problem in catalog.problems]


def preset_lines(found: list[Entry], selected: int, status: ServerStatus, *, width: int, height: int) -> list[Line]:
    """The part of the list around the selection that fits, and about the selected one what room is left for."""
    if not found:
        return [line("no presets found; put YAML files into", "dim"), line("~/.config/qwen-console/presets", "dim")]
    about = _about(found[selected], width) if height > len(found) + 2 else []
    room = height - len(about)
    first = _first(len(found), selected, room)
    rows = [_row(i, entry, i == selected, status, width) for i, entry in enumerate(found)][first : first + room]
    return [*rows, *about]


def _first(count: int, selected: int, room: int) -> int:
    """The first entry in view: the selected one stands in the middle where it can."""
    return max(0, min(selected - room // 2, count - room))


def beyond(count: int, selected: int, height: int) -> str:
    """How entries without a number are reached, and how many are above and below those in view; empty without any."""
    how = "1-9 or ↑↓" if count > _NUMBERED else ""
    above = _first(count, selected, height) if count > height else 0
    below = count - height - above
    out = " ".join(word for word in (f"↑{above}" if above else "", f"↓{below}" if below > 0 else "") if word)
    return " · ".join(word for word in (how, out) if word)


def _row(i: int, entry: Entry, chosen: bool, status: ServerStatus, width: int) -> Line:
    number = str(i + 1) if i < _NUMBERED else " "
    runs = entry.name == status.preset and (entry.preset is not None or status.pid is not None)
    mark = SYMBOLS[status.state] if runs else "✖" if entry.error else "▲" if entry.lacking else " "
    tone = "chosen" if chosen else "bad" if entry.error else ""
    name = entry.name if len(entry.name) <= width - 5 else entry.name[: width - 6] + "…"
    return (
        ("▸" if chosen else " ", "strong"),
        (f"{number} ", "dim"),
        (f"{name:<{max(0, width - 5)}}", tone),
        (f" {mark}", "bad" if entry.error else "warn" if entry.lacking and not runs else "good"),
    )


def _about(entry: Entry, width: int) -> list[Line]:
    from console.tui.stories import wrapped

    if entry.error is not None:
        return [(), *cut(wrapped(entry.error.what, width - 2, "bad"), 2)]
    if entry.lacking:
        return [(), *cut(wrapped(f"not set in this shell: {entry.lacking}", width - 2, "warn"), 2)]
    text = entry.preset.description or entry.preset.model if entry.preset else ""
    return [(), *cut(wrapped(text, width - 2, "dim"), 2)]


def cut(lines: list[Line], rows: int) -> list[Line]:
    """So many of them; that there are more shows."""
    if len(lines) <= rows:
        return lines
    return [*lines[: rows - 1], (*lines[rows - 1], (" …", "dim"))]
