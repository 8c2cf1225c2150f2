"""A tokenizer that needs no file: pieces of up to four letters, ids in the order in which pieces are first seen."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PIECE = re.compile(
    r"<\|\w{1,32}\|>"  # a special token
    r"| ?[A-Za-z]{1,4}"
    r"| ?\d{1,3}"
    r"|\s"
    r"| ?(?:(?!<\|)[^\sA-Za-z\d]){1,2}"
    r"|<"
)
START, END = "<|im_start|>", "<|im_end|>"
UNKNOWN = "\N{REPLACEMENT CHARACTER}"


class Tokenizer:
    """Text to ids and back; `decode(encode(text))` is `text`."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []
        for piece in ("<|endoftext|>", START, END):
            self._id(piece)

    @property
    def end(self) -> int:
        """The id that ends an answer."""
        return self._ids[END]

    def encode(self, text: str) -> list[int]:
        """The ids of `text`."""
        ids = self._ids
        return [known if (known := ids.get(piece)) is not None else self._id(piece) for piece in _PIECE.findall(text)]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; an id that was never given out is one replacement character."""
        return "".join(self.piece(token) for token in ids)

    def piece(self, token: int) -> str:
        """The text of one id."""
        return self._pieces[token] if 0 <= token < len(self._pieces) else UNKNOWN

    def visible(self, ids: Iterable[int]) -> str:
        """The text of an answer's ids: its end token shows nothing."""
        return "".join(self.piece(token) for token in ids if token != self.end)

    def _id(self, piece: str) -> int:
        self._ids[piece] = len(self._pieces)
        self._pieces.append(piece)
        return self._ids[piece]
