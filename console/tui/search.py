"""Finding text in lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from console.tui.widgets.lines import Line, Span

_EXCEPTION = re.compile(r"(?:\d\d:\d\d:\d\d )?(?:E )?[\w.]*(?:Error|Exception)\b")
"""As its row of a log begins."""


def text_of(line: Line) -> str:
    """A line without its tones."""
    return "".join(text for text, _ in line)


def found_in(line: Line, needle: str) -> bool:
    """Whether it is there; capitals count only where the needle has some."""
    text = text_of(line)
    return needle in (text if needle != needle.lower() else text.lower())


def marked(line: Line, needle: str) -> Line:
    """The line with what was found in it standing out."""
    if not needle or not found_in(line, needle):
        return line
    text = text_of(line)
    at = (text if needle != needle.lower() else text.lower()).find(needle)
    spans: list[Span] = []
    begin = 0
    for part, tone in line:
        cuts = sorted({min(max(at - begin, 0), len(part)), min(max(at + len(needle) - begin, 0), len(part))})
        for start, stop in zip([0, *cuts], [*cuts, len(part)], strict=True):
            if start < stop:
                inside = at <= begin + start < at + len(needle)
                spans.append((part[start:stop], "chosen" if inside else tone))
        begin += len(part)
    return tuple(spans)


def shifted(line: Line, cells: int) -> Line:
    """The line from a column on, for lines longer than the screen."""
    spans: list[Span] = []
    for part, tone in line:
        if rest := part[cells:]:
            spans.append((rest, tone))
        cells = max(0, cells - len(part))
    return tuple(spans)


def next_line(lines: Sequence[Line], wanted: Sequence[bool], start: int, by: int) -> int | None:
    """The nearest wanted line behind (or, with `by` -1, before) `start`; it goes on at the other end."""
    count = len(lines)
    order = (range(start + 1, start + 1 + count)) if by > 0 else range(start - 1, start - 1 - count, -1)
    return next((i % count for i in order if wanted[i % count]), None) if count else None


def errors(lines: Sequence[Line]) -> list[bool]:
    """Of each line, whether something bad begins there: the first of bad ones, or one that names an exception."""
    bad = [any(tone == "bad" for _, tone in line) for line in lines]
    return [
        is_bad and (not before or _EXCEPTION.match(text_of(line)) is not None)
        for line, is_bad, before in zip(lines, bad, [False, *bad], strict=False)
    ]
