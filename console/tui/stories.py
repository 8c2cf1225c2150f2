"""What stands in place of the figures when there are none: how far a start is, or why the server is down. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from console import units
from console.errors import ConsoleError
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.tui.log_lines import pretty
from console.tui.widgets.lines import Line, line

_LADDER = (
    (Phase.DOWNLOAD, "the model's files, if they are not here yet"),
    (Phase.START, "processes, configuration"),
    (Phase.LOAD, "weights onto the cards"),
    (Phase.COMPILE, "torch.compile, from its cache or anew"),
    (Phase.KV_CACHE, "memory profiled, blocks laid out"),
    (Phase.GRAPH_CAPTURE, "CUDA graphs"),
    (Phase.WARM_UP, "port open, one first request"),
    (Phase.READY, ""),
)
_LABEL = 6
_EVIDENCE_LINES = 3


def start_title(status: ServerStatus) -> str:
    """What is being started."""
    return f"starting {status.preset or 'the server'}"


def start_story(status: ServerStatus) -> list[Line]:
    """The phases as a ladder: passed, under way with what it is doing, still to come."""
    order = [phase for phase, _ in _LADDER]
    at = order.index(status.phase) if status.phase in order else -1
    lines: list[Line] = []
    for i, (phase, about) in enumerate(_LADDER):
        if i < at:
            lines.append((("✓ ", "good"), (phase.value, "dim")))
        elif i == at:
            lines.append((("▸ ", "strong"), (f"{phase.value:<15}", "strong"), (status.detail or about, "")))
        else:
            lines.append((("· ", "dim"), (f"{phase.value:<15}", "dim"), (about, "dim")))
    return lines


def trouble_title(status: ServerStatus) -> str:
    """That it failed, or that it hangs."""
    return f"{status.preset or 'the server'} {'does not answer' if status.state is State.STALLED else 'failed'}"


def diagnosis_story(found: Diagnosis, width: int, height: int) -> list[Line]:
    """What, why, fix and the lines that prove it, wrapped. Where it is tight evidence goes first, then part of why."""
    what = list(_wrapped("✖", found.what, width, "bad"))
    why = list(_wrapped("why", found.why, width, "")) if found.why else []
    fix = list(_wrapped("fix", found.fix, width, "strong")) if found.fix else []
    room = max(1, height - len(what) - len(fix) - 1)
    if len(why) > room:
        why = [*why[: room - 1], (*why[room - 1], (" …", "dim"))]
    lines = [*what, *why, *fix]
    room = max(0, height - len(lines) - 1)
    evidence = found.evidence[-min(room, _EVIDENCE_LINES) :] if room else ()
    lines += [((("log" if i == 0 else "").ljust(_LABEL), "dim"), *pretty(text)) for i, text in enumerate(evidence)]
    at = f"in phase {found.phase.value} · " if found.phase else ""
    return [*lines, line(f"{' ' * _LABEL}{at}cause {found.cause}", "dim")]


def error_story(error: ConsoleError, width: int) -> list[Line]:
    """An error of ours: what, why, fix."""
    lines = [*_wrapped("✖", error.what, width, "bad")]
    for label, text in (("why", error.why), ("fix", error.fix)):
        if text:
            lines += [(), *_wrapped(label, text, width, "strong" if label == "fix" else "")]
    return lines


def _wrapped(label: str, text: str, width: int, tone: str) -> Iterator[Line]:
    rows = [row for part in text.splitlines() or [""] for row in _wrap(part, width - _LABEL) or [""]]
    for i, row in enumerate(rows):
        yield ((label.ljust(_LABEL) if i == 0 else " " * _LABEL, tone if label == "✖" else "dim"), (row, tone))


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    # Not at hyphens: a flag in two pieces can be neither read nor copied.
    return textwrap.wrap(text, max(20, width), subsequent_indent=indent, break_on_hyphens=False)


def wrapped(text: str, width: int, tone: str = "", indent: str = "") -> list[Line]:
    """A paragraph."""
    return [line(row, tone) for row in _wrap(text, width, indent)]


def elapsed(status: ServerStatus) -> str:
    """How long a start has been going on."""
    return units.duration(status.uptime_s) if status.uptime_s is not None else ""
