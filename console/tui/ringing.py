"""What is worth a bell: a run that has ended, a server that has died. Pure but for the bytes it returns."""

from __future__ import annotations

from console.server.status import ServerStatus, State

_LIVING = (State.READY, State.STALLED, State.STARTING)
_LONGEST = 120


def death(before: ServerStatus, now: ServerStatus) -> str | None:
    """A sentence when a server that lived has died; a stop that somebody asked for is no death."""
    if before.state not in _LIVING or now.state is not State.FAILED:
        return None
    cause = f": {now.diagnosis.what}" if now.diagnosis else ""
    return f"{now.preset or before.preset or 'the server'} failed{cause}"


def bell(text: str, notify: str) -> str:
    """What makes a terminal ring, and with `osc9` or `osc777` its desktop say why."""
    said = "".join(sign for sign in text if sign.isprintable() and sign != ";")[:_LONGEST]
    desktop = {"osc9": f"\x1b]9;{said}\x07", "osc777": f"\x1b]777;notify;qwen-console;{said}\x07"}.get(notify, "")
    return f"\x07{desktop}"
