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
    """The line with all that was found in it standing out."""
    if not needle or not found_in(line, needle):
        return line
    text = text_of(line)
    text = text if needle != needle.lower() else text.lower()
    spans: list[Span] = []
    begin = 0
    while (at := text.find(needle, begin)) >= 0:
        spans += part_of(line, begin, at)
        spans += ((part, "chosen") for part, _ in part_of(line, at, at + len(needle)))
        begin = at + len(needle)
    return (*spans, *part_of(line, begin))


def part_of(line: Line, start: int, stop: int | None = None) -> Line:
    """The line's characters from one on, up to another."""
    spans: list[Span] = []
    begin = 0
    for text, tone in line:
        end = None if stop is None else max(0, stop - begin)
        if kept := text[max(0, start - begin) : end]:
            spans.append((kept, tone))
        begin += len(text)
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
