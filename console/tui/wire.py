"""What reaches the terminal: of every update only the cells that are not there already, in the shortest form.

Textual repaints whole widgets, after every change of layout the whole screen, and wraps each piece of text in its own
colour and reset. Here the terminal's content is remembered, and an update is cut to what differs from it. What is not
understood goes through as it is, and the memory with it.
"""

from __future__ import annotations

import re

from rich.cells import get_character_cell_size

_TOKENS = re.compile(
    r"(?P<move>\x1b\[(?P<y>\d+);(?P<x>\d+)H)"
    r"|(?P<style>\x1b\[(?P<sgr>[\d;]*)m)"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
    r"|(?P<line>\n)"
    r"|(?P<other>.)",
    re.DOTALL,
)
_HARMLESS = re.compile(
    r"(?:\x07|\x1b\[\?(?:25|1000|1003|1004|1006|1015|2004|2031|2048)[hl]|\x1b\[(?:>\d+|<)u|\x1b\[\?\d+\$p"
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\))+"
)
"""Modes, the bell, titles and the clipboard: they change no cell."""
_GAP = 6
"""Cells that are sent again although they are there, where a move of the cursor would be longer."""
Cell = tuple[str, str] | None
"""A sign and its style; the sign of a wide one's second half is empty. `None`: what stands there is not known."""


class Wire:
    """The terminal's content as far as it is known."""

    def __init__(self) -> None:
        self._size = (0, 0)
        self._rows: list[list[Cell]] = []

    def forget(self) -> None:
        """The terminal may show anything now."""
        self._rows = [[None] * self._size[0] for _ in range(self._size[1])]

    def take(self, data: str, size: tuple[int, int]) -> str:
        """What has to be sent instead of this update.

        Args:
            data: moves, styles and text.
            size: columns and rows of the terminal.
        """
        if size != self._size:
            self._size = size
            self.forget()
        if _HARMLESS.fullmatch(data):
            return data
        touched = self._read(data)
        if touched is None:
            self.forget()
            return data
        return self._difference(touched)

    def _read(self, data: str) -> dict[int, list[Cell]] | None:
        """Take the update into the rows; the former content of those it touches, `None` if it is not understood."""
        touched: dict[int, list[Cell]] = {}
        width, height = self._size
        x, y, style = -1, -1, ""
        for token in _TOKENS.finditer(data):
            kind = token.lastgroup
            if kind == "text":
                if not 0 <= y < height or x < 0:
                    return None
                row = self._rows[y]
                if y not in touched:
                    touched[y] = row[:]
                x = _put(row, x, width, token["text"], style)
            elif kind == "sgr" or kind == "style":
                sgr = token["sgr"]
                style = "" if sgr in ("", "0") else f"{style};{sgr}" if style else sgr
            elif kind == "x" or kind == "move":
                x, y = int(token["x"]) - 1, int(token["y"]) - 1
            elif kind == "line":
                x = -1
            else:
                return None
        return touched

    def _difference(self, touched: dict[int, list[Cell]]) -> str:
        """The cells of these rows that are not what they were."""
        pen = _Pen()
        for y in sorted(touched):
            before, now = touched[y], self._rows[y]
            if before != now:
                for start, stop in _runs(before, now):
                    pen.write(y, start, now[start:stop])
        return pen.finish()


def _put(row: list[Cell], x: int, width: int, text: str, style: str) -> int:
    """Write text into a row; the column behind it."""
    for sign in text:
        cells = 1 if sign < "\x7f" else get_character_cell_size(sign)
        if cells == 0:
            if 0 < x <= width and (before := row[x - 1]):
                row[x - 1] = (before[0] + sign, before[1])
            continue
        if x + cells > width:
            continue
        if x and _second_half(row[x]):
            row[x - 1] = None  # the first half of what was here is gone
        row[x] = (sign, style)
        if cells == 2:
            row[x + 1] = ("", style)
        x += cells
        if x < width and _second_half(row[x]):
            row[x] = None  # the second half of what was here is gone
    return x


def _runs(before: list[Cell], now: list[Cell]) -> list[tuple[int, int]]:
    """Pieces of a row to send: what changed, joined where the gap is shorter than a move."""
    runs: list[tuple[int, int]] = []
    for x, cell in enumerate(now):
        if cell == before[x] or cell is None:
            continue
        start = x - 1 if not cell[0] and x else x
        if runs and start - runs[-1][1] <= _GAP and None not in now[runs[-1][1] : start]:
            runs[-1] = (runs[-1][0], x + 1)
        else:
            runs.append((start, x + 1))
    width = len(now)
    return [(start, stop + 1 if stop < width and _second_half(now[stop]) else stop) for start, stop in runs]


def _second_half(cell: Cell) -> bool:
    return cell is not None and not cell[0]


class _Pen:
    """Cells → bytes: moves only where the cursor is not there already, styles only where they change."""

    def __init__(self) -> None:
        self._out: list[str] = []
        self._at = (-1, -1)
        self._style = ""

    def write(self, y: int, x: int, cells: list[Cell]) -> None:
        """A piece of a row."""
        if self._at[1] == y and 0 <= self._at[0] < x:
            self._out.append(f"\x1b[{x - self._at[0]}C")
        elif self._at != (x, y):
            self._out.append(f"\x1b[{y + 1};{x + 1}H")
        for cell in cells:
            if cell is None:
                continue
            sign, style = cell
            if style != self._style:
                self._out.append(f"\x1b[0;{style}m" if style and self._style else f"\x1b[{style}m")
                self._style = style
            self._out.append(sign)
        # Behind the last column the cursor waits on it: where it is then differs between terminals.
        self._at = (x + len(cells), y)

    def finish(self) -> str:
        """All of it; the style is put back."""
        if self._style:
            self._out.append("\x1b[m")
        return "".join(self._out)
