"""What stands in place of the figures when there are none: how far a start is, or why the server is down. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from console import hints, units
from console.errors import ConsoleError
from console.server.status import Diagnosis, Phase, ServerStatus, State
from console.tui.figures import elapsed
from console.tui.keycaps import cap
from console.tui.log_lines import fold, pretty
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
    again = " again after a crash" if status.restarts else ""
    return f"starting {status.preset or 'the server'}{again}"


def start_aside(status: ServerStatus) -> str:
    """How long the start has been going on, and how long it usually takes yet."""
    words = [elapsed(status.uptime_s)] if status.uptime_s is not None else []
    words += [left(status.eta_s)] if status.eta_s is not None else []
    return " · ".join(words)


def about(seconds: float) -> str:
    """An estimate, no finer than it is."""
    if seconds < 57.5:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{max(1, round(seconds / 60))} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def left(seconds: float) -> str:
    """What is left of something, as the command line writes it; in steps of 5 s: every tick is bytes on the line."""
    return f"about {units.duration(max(5, round(seconds / 5) * 5))} left"


def too_small(size: tuple[int, int], least: tuple[int, int]) -> list[Line]:
    """What is said where nothing can be drawn."""
    return [
        line(f"{size[0]}x{size[1]} is too small: {least[0]}x{least[1]} at least", "warn"),
        line(f"{cap('quit')} quits; the server stays up", "dim"),
    ]


def unreachable_story(status: ServerStatus, width: int) -> list[Line]:
    """A watched server that does not answer."""
    return [
        *labelled("✖", f"{status.url} does not answer", width, "bad"),
        *labelled("why", status.note or "no answer", width),
        *labelled(
            "fix",
            "see that the server is up there and that its port is reachable from here, through an SSH "
            "tunnel for example: `ssh -L 8000:127.0.0.1:8000 HOST`",
            width,
            "strong",
        ),
        (),
        line("it is asked again every few seconds", "dim"),
    ]


def start_story(status: ServerStatus, width: int = 76, height: int = 9) -> list[Line]:
    """The phases as a ladder: passed, under way with what it is doing, still to come; and what a silence means.

    Where not all fits, what was passed is left out first.
    """
    ladder, at = _ladder(status)
    foot = _foot(status, width)
    room = max(1, height - len(foot))
    first = max(0, min(at, len(ladder) - room))
    return [*ladder[first : first + room], *foot]


def _ladder(status: ServerStatus) -> tuple[list[Line], int]:
    """A line a phase, and which one is under way."""
    order = [phase for phase, _ in _LADDER]
    at = order.index(status.phase) if status.phase in order else -1
    lines: list[Line] = []
    for i, (phase, what) in enumerate(_LADDER):
        if i < at:
            lines.append((("✓ ", "good"), (phase.value, "dim")))
        elif i == at:
            lines.append((("▸ ", "strong"), (f"{phase.value:<15}", "strong"), (status.detail or what, "")))
        else:
            lines.append((("· ", "dim"), (f"{phase.value:<15}", "dim"), (what, "dim")))
    return lines, at


def _foot(status: ServerStatus, width: int) -> list[Line]:
    """What went wrong, what a silence means, or how far it is."""
    if status.diagnosis:
        return list(labelled("▲", status.diagnosis.what, width, "warn"))
    if status.silence:
        return wrapped(status.silence, width, "warn")
    if status.progress is not None:
        return [progress_bar(status.progress, min(30, max(10, width // 3)))]
    return []


def progress_bar(part: float, cells: int) -> Line:
    """How far something is."""
    done = max(0, min(cells, int(part * cells)))
    return (("█" * done, "good"), ("░" * (cells - done), "dim"), (f" {part * 100:3.0f} %", "strong"))


def trouble_title(status: ServerStatus) -> str:
    """That it failed, or that it hangs."""
    if status.restart_in_s is not None:
        return f"{status.preset or 'the server'} crashed"
    return f"{status.preset or 'the server'} {'does not answer' if status.state is State.STALLED else 'failed'}"


def trouble_aside(status: ServerStatus) -> str:
    """When it failed: the same failure twice looks the same but for that."""
    return f"at {units.local_moment(status.failed_at)}" if status.failed_at else ""


def again_aside(status: ServerStatus) -> str:
    """When a crashed server is started again, and how that is called off."""
    return f"starts again in {elapsed(status.restart_in_s or 0.0)} · {cap('stop')} calls it off"


def diagnosis_story(found: Diagnosis, width: int, height: int, *, back: str | None = None) -> list[Line]:
    """What, why, fix and the lines that prove it, wrapped. Where it is tight evidence goes first, then part of why."""
    what = list(labelled("✖", found.what, width, "bad"))
    why = list(labelled("why", found.why, width, "")) if found.why else []
    fix = list(labelled("fix", found.fix, width, "strong")) if found.fix else []
    fix += labelled(cap("back"), f"goes back to {back}, which was ready before", width) if back else []
    room = max(1, height - len(what) - len(fix) - 1)
    if len(why) > room:
        why = [*why[: room - 1], (*why[room - 1], (" …", "dim"))]
    lines = [*what, *why, *fix]
    room = max(0, height - len(lines) - 1)
    # Our own looks at the server are no evidence of anything.
    evidence = tuple(fold(found.evidence))[-min(room, _EVIDENCE_LINES) :] if room else ()
    lines += [((("log" if i == 0 else "").ljust(_LABEL), "dim"), *pretty(text)) for i, text in enumerate(evidence)]
    at = f"in phase {found.phase.value} · " if found.phase else ""
    return [*lines, line(f"{' ' * _LABEL}{at}cause {found.cause}", "dim")]


def error_story(error: ConsoleError, width: int) -> list[Line]:
    """An error of ours: what, why, fix."""
    lines = [*labelled("✖", error.what, width, "bad")]
    for label, text in (("why", error.why), ("fix", error.fix)):
        if text:
            lines += [(), *labelled(label, text, width, "strong" if label == "fix" else "")]
    return lines


def labelled(label: str, text: str, width: int, tone: str = "") -> Iterator[Line]:
    """A paragraph with a word or sign on its left."""
    rows = [row for part in hints.told(text).splitlines() or [""] for row in _wrap(part, width - _LABEL) or [""]]
    for i, row in enumerate(rows):
        yield (
            (label.ljust(_LABEL) if i == 0 else " " * _LABEL, (tone or "strong") if len(label) == 1 else "dim"),
            (row, tone),
        )


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    # Not at hyphens: a flag in two pieces can be neither read nor copied.
    return textwrap.wrap(text, max(20, width), subsequent_indent=indent, break_on_hyphens=False)


def wrapped(text: str, width: int, tone: str = "", indent: str = "") -> list[Line]:
    """A paragraph."""
    return [line(row, tone) for row in _wrap(hints.told(text), width, indent)]
