"""Whether a command makes sense now: each guard gives the reason against it, or `None`. Pure."""

from __future__ import annotations

from collections.abc import Callable

from console.server.run_lock import PROBE_SPOILS
from console.server.status import State
from console.tui.keycaps import cap
from console.tui.situation import Situation

Guard = Callable[[Situation], str | None]
"""Why a command makes no sense now, in a sentence; `None` when it does."""


def always(_: Situation) -> str | None:
    """Whatever is going on."""
    return None


def ours(now: Situation) -> str | None:
    """What touches the server."""
    return _foreign(now) or (f"still at it: {now.acting}" if now.acting else None)


def _foreign(now: Situation) -> str | None:
    if now.watching or now.status.state is State.FOREIGN:
        return "this server was not started by this console: it is watched, never touched"
    return None


def can_start(now: Situation) -> str | None:
    """Start, switch."""
    if refused := _can_bring_up(now):
        return refused
    if now.selected == now.status.preset and now.status.state in (State.READY, State.STARTING):
        return f"{now.selected} is {now.status.state.value} already; {cap('restart')} restarts it"
    return None


def _can_bring_up(now: Situation) -> str | None:
    if refused := ours(now):
        return refused
    if now.run:
        return f"an A/B run is going on and owns the server; {cap('stop')} stops the run"
    if now.selected is None:
        return "no preset is selected"
    if now.status.state is State.STOPPING:
        return "the server is still stopping"
    return None


def can_stop(now: Situation) -> str | None:
    """Stop server or run."""
    if refused := _foreign(now):
        return refused
    if now.draining or now.raising or now.probing:
        return None
    if now.acting:
        return f"still at it: {now.acting}"
    return None if now.run or now.alive or not now.known else "nothing runs"


def can_restart(now: Situation) -> str | None:
    """Start again."""
    if refused := ours(now):
        return refused
    if now.run:
        return f"an A/B run is going on and owns the server; {cap('stop')} stops the run"
    nothing = f"nothing runs; {cap('start')} starts the selected preset"
    return None if now.alive or now.status.state is State.FAILED else nothing


def can_go_back(now: Situation) -> str | None:
    """Start what worked before."""
    if (refused := _can_bring_up(now)) or now.back:
        return refused
    again = f"; {cap('restart')} tries it again" if now.status.state is State.FAILED else ""
    return f"nothing to go back to: no other preset was ready before{again}"


def can_run(now: Situation) -> str | None:
    """Begin an A/B run."""
    if refused := ours(now):
        return refused
    if now.run:
        return f"one A/B run at a time; {cap('stop')} stops this one"
    if now.selected is None or now.broken:
        return "select a preset that can start"
    if now.status.state in (State.STARTING, State.STOPPING):
        return f"the server is {now.status.state.value}; wait until it is ready or stopped"
    return None


def can_probe(now: Situation) -> str | None:
    """Send requests of our own."""
    if refused := ours(now):
        return refused
    if now.run:
        return PROBE_SPOILS
    if now.status.state is not State.READY:
        return "no server is ready"
    return f"{now.requests} requests are in flight: a probe would slow them down" if now.requests else None


def can_adopt(now: Situation) -> str | None:
    """Write the winner, or say how an arm that is none is written."""
    if now.run:
        return f"the run under way advises nothing yet; {cap('details')} shows those before it"
    return None if now.run_ended else "no run has ended yet: none advises anything"
