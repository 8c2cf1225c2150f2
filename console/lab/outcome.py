"""How a boot can end: counted, void with a reason, or with the arm's server dead, which is a result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, NoReturn

from console.server.life import Server
from console.server.status import Diagnosis, ServerStatus, State

_DEATH_S = 20.0
"""How long a server whose engine is dead may take to end by itself."""
_CALM_S = 4.0
"""A server that answers for so long after a failed request lives on."""


class ArmCrashed(Exception):
    """The arm's server died: a result, not an error."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        super().__init__(diagnosis.what)
        self.diagnosis = diagnosis


class BootVoid(Exception):
    """This boot does not count, and why."""


@dataclass(slots=True)
class BootEnd:
    """How a boot ended; the fields of its `boot-end` event."""

    n: int
    arm: str
    round: int
    valid: bool = False
    reason: str | None = None
    crash: dict[str, Any] | None = None
    env: dict[str, Any] = field(default_factory=dict)
    drafts: dict[str, Any] | None = None
    drafts_after_long: dict[str, Any] | None = None
    """Speculation in a short answer after the prompt near the context's end."""
    prefill_tokens_per_s: float | None = None
    probes: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        """Note something to know, once."""
        if text not in self.warnings:
            self.warnings.append(text)


def diagnosis_of(status: ServerStatus | None) -> Diagnosis:
    """What the server's own diagnosis says; a plain one where there is none."""
    if status is not None and status.diagnosis is not None:
        return status.diagnosis
    state = status.state if status else State.STOPPED
    return Diagnosis("unknown", f"the server is {state}", "its log names no cause", "read the boot's log")


def ended(status: ServerStatus | None) -> ArmCrashed | BootVoid:
    """What it means that the server is no more: a death is a result of its arm, a stop by somebody else is not."""
    if status is not None and status.state is State.STOPPED and status.diagnosis is None:
        return BootVoid("the server was stopped, in order and not by this run, while it was measured")
    return ArmCrashed(diagnosis_of(status))


def look_for_death(server: Server, why: str) -> NoReturn:
    """After a request that failed: wait for the server's end, which is a crash, or for signs that it lives.

    Raises:
        ArmCrashed: the server died of it.
        BootVoid: it lives, but the boot does not count.
    """
    end = time.monotonic() + _DEATH_S
    well_since: float | None = None
    while time.monotonic() < end:
        status = server.status()
        if status.state in (State.FAILED, State.STOPPED, State.STALLED):
            raise ended(status)
        now = time.monotonic()
        well_since = (well_since or now) if status.state is State.READY and not status.note else None
        if well_since is not None and now - well_since > _CALM_S:
            break
        time.sleep(0.25)
    raise BootVoid(f"a request failed although the server lives: {why}")
