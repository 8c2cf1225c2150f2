"""One ASCII sign for every sign of ours: for terminals and locales that know no others. Pure."""

from __future__ import annotations

_SIGNS = {
    "─━": "-",
    "│┃": "|",
    "┬┴┼├┤╭╮╰╯┌┐└┘": "+",
    "█▇▆": "#",
    "▅▄": "=",
    "▃▂": "-",
    "▁": "_",
    "▔": "-",
    "🔎": "/ ",
    "░": ".",
    "·•": ".",
    "○": "o",
    "●": "*",
    "◐◌": "~",
    "✖✗": "x",
    "✓✔": "v",
    "▲": "!",
    "▼": "v",
    "◇": "?",
    "▸→▶": ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "…": "~",
    "±": "~",
    "\u00d7": "x",
    "°": " ",
    "\u2013\u2014": "-",
    "\u2018\u2019": "'",
    "\u201c\u201d": '"',
    "≥": ">",
    "≤": "<",
    "Δ": "D",
    "µμ": "u",
    "\xa0": " ",
}
_TABLE = {ord(sign): plain for signs, plain in _SIGNS.items() for sign in signs}


class _Plain(dict[int, str]):
    """Everything else that is not ASCII: a question mark, two where the sign is two cells wide."""

    def __missing__(self, code: int) -> str:
        if code < 128:
            return chr(code)
        from rich.cells import get_character_cell_size

        self[code] = "?" * get_character_cell_size(chr(code))
        return self[code]


_PLAIN = _Plain(_TABLE)


def plain(text: str) -> str:
    """The text in ASCII, as wide as before."""
    return text if text.isascii() else text.translate(_PLAIN)
