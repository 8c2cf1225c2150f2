"""Log lines as a person reads them: progress bars folded, our own scrapes left out, the prefix cut to the time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from console import units
from console.server.log import is_background
from console.server.status import ServerStatus, State
from console.tui.search import part_of, text_of
from console.tui.widgets.lines import Line

_PREFIX = re.compile(
    r"(?:\([A-Za-z][^()]*\) )*(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    r"(?::\s+|\s+(?:\d{4}-)?\d\d-\d\d (?P<time>\d\d:\d\d:\d\d)(?:[.,]\d+)?\s+(?:\[[^\]]*\]\s+)?)"
)
_PROCESS = re.compile(r"^(?:\([A-Za-z][\w.:-]* [^()]*\)\s?)+")
_BAR = re.compile(r"\d+%\|")
_STAMP = re.compile(r"\d\d:\d\d:\d\d ")
_KEPT = 8192
_MOST_ROWS = 6
"""A dump of a prompt or of all arguments is longer, and nobody reads it here."""
_TONES = {"WARNING": "warn", "ERROR": "bad", "CRITICAL": "bad", "DEBUG": "dim"}
_MARKS = {"WARNING": "W ", "ERROR": "E ", "CRITICAL": "E "}


def fold(lines: Iterable[str], *, of_run: bool = False) -> Iterator[str]:
    """What a terminal would show in the end: of a bar that overwrote itself only the last state, our scrapes not.

    Args:
        lines: of the log.
        of_run: it is that of an A/B run's arm: what the run asks it is ours too.
    """
    held: str | None = None
    for raw in lines:
        for piece in units.uncoloured(raw).split("\r"):
            text = piece.rstrip()
            if not text or is_background(text, of_run=of_run):
                continue
            if _BAR.search(text):
                held = text
                continue
            if held is not None:
                yield held
                held = None
            yield text
    if held is not None:
        yield held


def no_log(path: str | None, status: ServerStatus) -> str:
    """Why there is no line of it to show."""
    if path is not None or status.state in (State.STARTING, State.STOPPING, State.FAILED):
        return "nothing written yet"
    ours = status.state is State.STOPPED and status.url is None
    return "no server has run yet" if ours else "not started here: no log"


@lru_cache(maxsize=_KEPT)
def rows(line: Line, width: int) -> tuple[Line, ...]:
    """One line over as many rows as it takes, some at most; the same lines are asked for every second."""
    said = text_of(line)
    margin = len(stamp.group()) if (stamp := _STAMP.match(said)) else 0
    room = max(20, width - margin)
    if len(said) <= margin + room:
        return (line,)
    starts = range(margin + room, len(said), room)
    found = [part_of(line, 0, margin + room)]
    found += [((" " * margin, ""), *part_of(line, start, start + room)) for start in starts]
    if len(found) > _MOST_ROWS:
        rest = f"… {len(said) - margin:,} characters in all: z cuts lines, then → shows the rest"
        found = [*found[: _MOST_ROWS - 1], ((" " * margin, ""), (rest, line[-1][1]))]
    return tuple(found)


@lru_cache(maxsize=_KEPT)
def pretty(text: str, *, timed: bool = True) -> Line:
    """One folded line: the time where there is room for it, a letter for what is not plain information, the text."""
    found = _PREFIX.match(text)
    level = found["level"] if found else ""
    tone = _TONES.get(level, "")
    text = text.expandtabs(4)
    if not found:
        return ((_PROCESS.sub("", text), _guess(text)),)
    time = f"{found['time']} " if found["time"] and timed else ""
    return ((time, "dim"), (_MARKS.get(level, "") + text[found.end() :], tone))


def _guess(text: str) -> str:
    """Lines without a level: the last line of a traceback is what one looks for."""
    return "bad" if re.match(r"(?:\(.*?\) )*[\w.]*(?:Error|Exception)\b", text) else ""
