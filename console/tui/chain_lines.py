"""The execution chain as lines: each link with its sign, its proof and what to do. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from console import units
from console.server.status import ServerStatus, State
from console.tui.log_lines import pretty
from console.tui.stories import wrapped
from console.tui.widgets.lines import Line

if TYPE_CHECKING:
    from console.server.chain import Link

_MARKS = {"ok": ("✓", "good"), "look": ("▲", "warn"), "unknown": ("?", "dim")}
_NAME = 17
_WORDS = re.compile(r"[\w.,-]*\w{3}")
"""What a value can be found by."""


def server_lines(status: ServerStatus, width: int) -> list[Line]:
    """Where the server answers; without one that this is of the last start, and when that was."""
    if status.state in (State.STOPPED, State.FAILED):
        if status.log is None:
            return [*wrapped("No server has run yet: nothing of this is known.", width, "warn"), ()]
        begun = _begun(status.log)
        when = f", at {units.local_minute(begun)}" if begun else ""
        name = f" ({status.preset})" if status.preset else ""
        return [*wrapped(f"No server runs: all of this is of the last start{name}{when}.", width, "warn"), ()]
    words = [status.url, status.model, status.version and f"vLLM {status.version}"]
    return [(("address  ", "dim"), (" · ".join(word for word in words if word), "strong"))] if status.url else []


def _begun(log: str) -> float | None:
    """When a log was begun, by its name: unix seconds."""
    with suppress(ValueError):
        return datetime.strptime(f"{Path(log).name[:15]}+0000", "%Y%m%dT%H%M%S%z").timestamp()
    return None


def chain_lines(links: Sequence[Link], width: int) -> list[Line]:
    """What is worth a look is counted first; then all links in the order in which one optimises."""
    counts = {verdict: sum(link.verdict == verdict for link in links) for verdict in _MARKS}
    words = {"ok": "ok", "look": "to look at", "unknown": "not known"}
    head: list[tuple[str, str]] = []
    for verdict, (mark, tone) in _MARKS.items():
        head.append((f"{mark} {counts[verdict]} {words[verdict]}   ", tone if counts[verdict] else "dim"))
    lines: list[Line] = [tuple(head), ()]
    for link in links:
        lines += _link(link, width)
    return lines


def _link(link: Link, width: int) -> list[Line]:
    mark, tone = _MARKS[link.verdict]
    room = width - _NAME - 1
    first, *rest = wrapped(link.value, room, "dim" if link.value == units.NA else "strong")
    margin = " " * _NAME
    lines: list[Line] = [((f"{mark} ", tone), (f"{link.link:<{_NAME - 2}}", ""), *first)]
    lines += [((margin, ""), *row) for row in rest]
    if link.evidence:
        proof = "".join(text for text, _ in pretty(link.evidence, timed=False)).strip()
        lines.append(((margin, ""), (around(proof, f"{link.value}\n{link.link}", max(1, room)), "dim")))
    if link.fix:
        lines += [((margin, ""), *row) for row in wrapped(f"fix: {link.fix}", room, "warn")]
    return lines


def around(proof: str, value: str, room: int) -> str:
    """The part of a proof that fits and holds what it proves; where that does not stand in it, its beginning.

    Args:
        proof: a line of the log.
        value: what to look for, line by line: the first line of which anything stands there counts.
        room: in cells.
    """
    places = ([i for word in _WORDS.findall(line) if (i := proof.find(word)) >= 0] for line in value.splitlines())
    at = next((min(found) for found in places if found), 0)
    left = min(max(0, at - room // 4), max(0, len(proof) - room))
    return units.clip(proof if left == 0 else f"…{proof[left + 1 :]}", room)
