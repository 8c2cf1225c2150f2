"""Stopping a life whole: the keeper is asked; a console acts itself only when the keeper is gone."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.server.access import in_the_way
from console.server.ending import LOOK_EVERY_S, Ending, why_left
from console.server.process import Identity, alive, identify, send
from console.server.state import ExitRecord, ServerRecord, StopRequest, now_utc, read_exit, stop_path, write

SWEEP_S = 15.0
"""Beyond the grace period: what SIGKILL and the sweep may take before we report what stays."""
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a stop went."""

    how: str
    """A sentence: who stopped it."""
    seconds: float
    left: tuple[tuple[int, str], ...] = ()
    """What is still there (pid, reason); empty when the stop was whole."""
    escalated: bool = False
    """Whether SIGKILL was needed."""
    notes: tuple[str, ...] = ()
    """What the next start should know: memory that somebody else took meanwhile."""


def stop_life(
    record: ServerRecord, files: Path, exit_path: Path, *, reason: str, on_event: Tell | None = None
) -> StopReport:
    """Bring a life to its end; returns when nothing of it is left, or when its time is over.

    Args:
        record: whose life.
        files: the path of that record; the request to stop is written beside it.
        exit_path: where its keeper writes how it ended.
        reason: what goes on record as who asked.
    """
    tell = on_event or (lambda _text: None)
    begun = time.monotonic()
    request = StopRequest(record.life, reason, identify(os.getpid()), now_utc())
    unwritten = _unwritten(stop_path(files), request)
    asked = _ask_keeper(record, begun + record.grace_s + SWEEP_S, tell)
    # Also after a keeper that did its work: the marker finds what descent and group cannot.
    ending = _sweep(record, begun, tell, fresh=not asked)
    escalated = ending.escalated
    end, _ = read_exit(exit_path)
    if end and end.life == record.life:
        escalated = escalated or end.escalated
    else:
        told = ExitRecord(record.life, None, None, now_utc(), True, reason, escalated)
        unwritten = _unwritten(exit_path, told) or unwritten
    return StopReport(_how(asked, record), time.monotonic() - begun, _left(ending.left), escalated, unwritten)


def _unwritten(path: Path, record: StopRequest | ExitRecord) -> tuple[str, ...]:
    """Put it on record; that it could not be, in words: a stop is none the less whole for it."""
    try:
        write(path, record)
    except OSError as error:
        why = (in_the_way(path) or (str(error.strerror or error), ""))[0]
        return (f"that it was stopped is not on record, {path.name} could not be written: {why}",)
    return ()


def _how(asked: bool, record: ServerRecord) -> str:
    if asked:
        return "its keeper stopped it"
    if alive(record.keeper):
        return "its keeper was asked and is still at it"
    return "its keeper was lost: stopped by its recorded identity"


def _ask_keeper(record: ServerRecord, deadline: float, tell: Tell) -> bool:
    """Signal the keeper and wait until it has ended; `False` when it is not there to do it, or died over it."""
    keeper = record.keeper
    if not send(keeper, signal.SIGTERM):
        return False
    # One that somebody stopped (SIGSTOP) could not hear it.
    send(keeper, signal.SIGCONT)
    tell("the keeper was asked to stop the server")
    wait_gone(keeper, deadline)
    return not alive(keeper) and not record.kin.find()


def _sweep(record: ServerRecord, begun: float, tell: Tell, *, fresh: bool) -> Ending:
    """End what is left by our own hand, unless the keeper is still at it."""
    grace_s = record.grace_s if fresh else 1.0
    kin = record.kin
    ending = Ending(lambda: kin.find(search=True), record.child, grace_s, time.monotonic(), tell)
    deadline = (begun if fresh else time.monotonic()) + grace_s + SWEEP_S
    if alive(record.keeper):
        ending.left = tuple(kin.find()) or (record.keeper,)
        return ending
    while not ending.step(time.monotonic()) and time.monotonic() < deadline:
        time.sleep(LOOK_EVERY_S)
    return ending


def _left(identities: tuple[Identity, ...]) -> tuple[tuple[int, str], ...]:
    reasons = ((who.pid, why_left(who)) for who in identities)
    return tuple((pid, why) for pid, why in reasons if why)


def wait_gone(who: Identity, deadline: float) -> bool:
    """Wait, without polling where the kernel can tell, until this process has ended (monotonic `deadline`)."""
    try:
        handle = os.pidfd_open(who.pid)
    except ProcessLookupError:
        return True
    except OSError:
        while alive(who) and time.monotonic() < deadline:
            time.sleep(LOOK_EVERY_S)
        return not alive(who)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        while alive(who) and (rest := deadline - time.monotonic()) > 0:
            poll.poll(rest * 1000)
        return not alive(who)
    finally:
        os.close(handle)
