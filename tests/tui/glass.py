"""A terminal as far as the console needs one: moves, erasing, styles and text become rows of cells."""

from __future__ import annotations

import codecs
import re

from rich.cells import cell_len

ORPHAN = ("?", frozenset({"orphan"}))
"""The half of a wide sign whose other half is gone: a terminal may show anything there."""
_TOKEN = re.compile(
    r"\x1b\[(?P<move>\d+;\d+|)H"
    r"|\x1b\[(?P<right>\d*)C"
    r"|\x1b\[(?P<sgr>[\d;]*)m"
    r"|(?P<erase>\x1b\[2J|\x1b\[\?1049[hl])"
    r"|\x1b[\[(][?>=<]?[\d;$]*[A-Za-z~p]|\x1b[=>78]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f])"
    r"|(?P<text>[^\x00-\x1f\x7f])"
)
Cell = tuple[str, frozenset[str]]


class Glass:
    """What a terminal of this size shows."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._at = (0, 0)
        self._style: frozenset[str] = frozenset()
        self.cells: list[list[Cell]] = []
        self._erase()

    @property
    def text(self) -> str:
        """A line a row."""
        return "\n".join("".join(sign for sign, _ in row) for row in self.cells)

    def feed(self, data: bytes) -> None:
        """Bytes as they come, cut anywhere."""
        self.show(self._decoder.decode(data))

    def show(self, data: str) -> None:
        """Text with its sequences; one that is not whole yet waits for the rest."""
        data, at = self._rest + data, 0
        while found := _TOKEN.match(data, at):
            at = found.end()
            self._take(found)
        self._rest = data[at:] if len(data) - at < 256 else ""

    def _take(self, token: re.Match[str]) -> None:
        kind = token.lastgroup
        if kind == "text":
            self._put(token["text"])
        elif kind == "move":
            y, x = (int(part) for part in (token["move"] or "1;1").split(";"))
            self._at = (x - 1, y - 1)
        elif kind == "right":
            self._at = (self._at[0] + int(token["right"] or 1), self._at[1])
        elif kind == "sgr":
            for code in token["sgr"].split(";"):
                self._style = frozenset() if code in ("", "0") else self._style | {code}
        elif kind == "erase":
            self._erase()
        elif token["control"] == "\r":
            self._at = (0, self._at[1])
        elif token["control"] == "\n":
            self._line_feed()

    def _line_feed(self) -> None:
        x, y = self._at
        if y == self.height - 1:
            self.cells = [*self.cells[1:], [(" ", frozenset())] * self.width]
        self._at = (x, min(self.height - 1, y + 1))

    def _erase(self) -> None:
        self.cells = [[(" ", frozenset())] * self.width for _ in range(self.height)]

    def _put(self, sign: str) -> None:
        wide = cell_len(sign)
        if self._at[0] + wide > self.width:
            self._at = (0, self._at[1])
            self._line_feed()
        x, y = self._at
        row = self.cells[y]
        if x and row[x][0] == "":
            row[x - 1] = ORPHAN
        row[x] = (sign, self._style)
        if wide == 2:
            row[x + 1] = ("", self._style)
        self._at = (x + wide, y)
        if x + wide < self.width and row[x + wide][0] == "":
            row[x + wide] = ORPHAN
