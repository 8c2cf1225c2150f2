"""A form as it looks: lines of text in which `{name   }` marks where a value stands, exactly as wide as it is drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size

from console import units

_PLACE = re.compile(r"\{(?P<side>[<>]?)(?P<name>[a-z]\w*) *\}")
RULE = "─"
_BOX = re.compile(r"[─│┬┴┼├┤]")
_BLANKS = re.compile(r"[\t\n\r\v\f]")
_RULING = "─┬┴┼├"


def on_a_row(text: str) -> str:
    """Somebody's words as they may stand on a row: no control character, no line end, no tab of unknown width."""
    return text if text.isprintable() else units.printable(_BLANKS.sub(" ", text))


def in_rule(before: str) -> bool:
    """Whether what follows this part of a row stands in a rule: the last line sign before it runs to the right."""
    signs = _BOX.findall(before)
    return bool(signs) and signs[-1] in _RULING


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands in a drawing; cells from the top left corner."""

    x: int
    y: int
    width: int
    left: bool
    """Aligned to the left; numbers stand right."""
    ruled: bool
    """Inside a rule: the rule goes on where the text ends."""

    def fit(self, text: str) -> str:
        """The text in exactly this place: padded, or cut with an ellipsis."""
        if not text:
            return (RULE if self.ruled else " ") * self.width
        if self.ruled:
            text = f" {text} " if cell_len(text) + 1 < self.width else f" {text}"
        if cell_len(text) > self.width:
            # Half a word tells less than the words before it.
            whole = text.rpartition(" · ")[0]
            fits = 0 < cell_len(whole) <= self.width
            text = whole if fits else set_cell_size(text, self.width - 1) + "…"
        fill = (RULE if self.ruled else " ") * (self.width - cell_len(text))
        return text + fill if self.left else fill + text


@dataclass(frozen=True, slots=True)
class Drawing:
    """The fixed part of a form and the places of its values."""

    lines: tuple[str, ...]
    places: dict[str, Place]
    width: int

    @classmethod
    def of(cls, text: str) -> Drawing:
        """Read a drawing; blank first and last lines are the quotes' own."""
        rows = text.strip("\n").split("\n")
        places: dict[str, Place] = {}
        lines = []
        for y, row in enumerate(rows):
            for found in _PLACE.finditer(row):
                if found["name"] in places:
                    raise ValueError(f"{found['name']} is drawn twice")
                places[found["name"]] = Place(
                    x=found.start(),
                    y=y,
                    width=found.end() - found.start(),
                    left=found["side"] == "<",
                    ruled=in_rule(row[: found.start()]),
                )
            lines.append(_PLACE.sub(lambda found: " " * len(found[0]), row))
        return cls(tuple(lines), places, max(map(len, rows)))

    def line(self, y: int, width: int) -> str:
        """One line of the fixed part, exactly `width` cells: rules go on to the edge."""
        line = self.lines[y] if y < len(self.lines) else ""
        return line[:width].ljust(width, RULE if in_rule(line) else " ")

    @property
    def height(self) -> int:
        """Lines of this drawing."""
        return len(self.lines)


def widest(drawings: Iterable[Drawing], width: int) -> Drawing:
    """The widest drawing that fits, else the narrowest there is."""
    by_width = sorted(drawings, key=lambda drawing: drawing.width)
    return max((d for d in by_width if d.width <= width), key=lambda d: d.width, default=by_width[0])
