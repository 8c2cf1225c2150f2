"""What the console knows at this moment, as far as it decides which commands make sense."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from console.server.status import ServerStatus, State

if TYPE_CHECKING:
    from console.presets import Preset


@dataclass(frozen=True, slots=True)
class Situation:
    """The ground on which commands are offered or refused."""

    status: ServerStatus = field(default_factory=ServerStatus)
    known: bool = False
    """Whether the server has been looked at yet."""
    listed: bool = False
    """Whether the presets have been read yet."""
    selected: str | None = None
    """The preset under the cursor."""
    broken: bool = False
    """Its file holds no usable preset."""
    lacking: bool = False
    """A variable that it needs is not set."""
    requests: int | None = None
    """Requests that run or wait now; `None` when that cannot be told."""
    run: str | None = None
    """The A/B run that lives."""
    run_ended: bool = False
    """The newest run has ended: which of its arms to adopt can be told, or that none is advised."""
    back: Preset | None = None
    """The preset that was ready before the one at hand."""
    acting: str | None = None
    """What this console is doing to the server right now."""
    raising: Literal["", "server", "run"] = ""
    """What that brings up: a start and a run that begins can be broken off at any time."""
    probing: bool = False
    """It only asks the server something: a stop may cut that off."""
    coming: str = ""
    """The preset that is on its way up."""
    draining: bool = False
    """That is: waiting for the requests in flight before a stop."""
    hidden: str = ""
    """What `tab` would bring into view."""
    watching: bool = False
    """A server elsewhere is watched (`--url`)."""

    @property
    def unknown(self) -> str:
        """What has not been looked at yet, of all that a key may be about."""
        lacking = [] if self.listed else ["the presets"]
        return " and ".join([*lacking, *([] if self.known else ["the server's state"])])

    @property
    def alive(self) -> bool:
        """Whether a server of ours has processes."""
        return self.status.state in (State.STARTING, State.READY, State.STOPPING, State.STALLED)

    @property
    def interrupts(self) -> str:
        """What a stop of the server would cut off, as the end of a sentence."""
        if self.status.state is State.STARTING:
            return "its start is broken off"
        if self.probing and (self.requests or 0) <= 1:
            return "the prefix test is cut off"
        if self.requests is None:
            return "requests in flight are cut off, how many is not known"
        if not self.requests:
            return "no request is in flight"
        return f"{self.requests} request{'s are' if self.requests > 1 else ' is'} in flight and will be cut off"
