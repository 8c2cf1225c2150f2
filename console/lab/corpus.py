"""The prompt corpus shipped in `assets/`, as an endless seeded walk over its pieces."""

from __future__ import annotations

import random
import re
from functools import lru_cache
from itertools import chain, cycle, islice

from console import paths

FILE = "corpus.txt"


@lru_cache(maxsize=1)
def _pieces() -> tuple[str, ...]:
    text = (paths.data("assets") / FILE).read_text(encoding="utf-8")
    return tuple(re.findall(r"\S+\s*", text))


class Walk:
    """Text of the corpus from a seeded place on, cut at word ends; two walks of one seed are equal."""

    def __init__(self, seed: str) -> None:
        pieces = _pieces()
        start = random.Random(seed).randrange(len(pieces))
        self._order = pieces[start:] + pieces[:start]

    def text(self, pieces: int) -> str:
        """The first so many pieces; the corpus repeats when it ends."""
        whole, rest = divmod(pieces, len(self._order))
        if whole:
            return "".join(islice(chain(cycle(self._order)), pieces))
        return "".join(self._order[:rest])
