"""Notices as lines: what stands out, the worst first, with the way out of it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from console import hints
from console.server.status import ServerStatus, State
from console.tui.stories import labelled, trouble_aside, trouble_title
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.notices import Notice

_MARKS = {"bad": ("✖", "bad"), "warn": ("▲", "warn"), "info": ("·", "dim")}
_ROWS_OF_A_TALL_SCREEN = 2


def standing(notices: Sequence[Notice], width: int, *, tall: bool) -> list[Line]:
    """The block above the keys: on a low terminal the worst in a line, else the two worst with what to do."""
    shown = notices[: _ROWS_OF_A_TALL_SCREEN if tall else 1]
    lines: list[Line] = []
    for i, notice in enumerate(shown):
        mark, tone = _MARKS[notice.severity]
        more = len(notices) - len(shown)
        hint = "" if i else f"  n: {f'{more} more' if more else 'why'} "
        room = max(0, width - 3 - len(hint))
        text = notice.what if cell_len(notice.what) <= room else set_cell_size(notice.what, max(0, room - 1)) + "…"
        lines.append(((f" {mark} ", tone), (set_cell_size(text, room), tone), (hint, "dim")))
        if tall:
            lines.append(((f"   {hints.told(notice.fix)}", "dim"),))
    return lines


def full(notices: Sequence[Notice], status: ServerStatus, width: int) -> list[Line]:
    """All of them with what, why and what to do; a server that failed is the first."""
    lines = _failure(status, width)
    if not notices and not lines:
        return [line("nothing stands out", "dim")]
    for notice in notices:
        mark, tone = _MARKS[notice.severity]
        again = f" (the {notice.episode}. time)" if notice.episode > 1 else ""
        lines += labelled(mark, notice.what + again, width, tone)
        lines += labelled("why", notice.why, width)
        lines += [*labelled("fix", notice.fix, width, "strong"), ()]
    return lines[:-1]


def _failure(status: ServerStatus, width: int) -> list[Line]:
    """Why there is no server, or why it does not answer."""
    if status.state not in (State.FAILED, State.STALLED) and status.restart_in_s is None:
        return []
    title = " ".join(word for word in (trouble_title(status), trouble_aside(status)) if word)
    lines = list(labelled("✖", title, width, "bad"))
    if (found := status.diagnosis) is not None:
        lines += [*labelled("why", found.what, width), *(labelled("", found.why, width) if found.why else ())]
        lines += labelled("fix", found.fix, width, "strong") if found.fix else ()
    return [*lines, ()]
