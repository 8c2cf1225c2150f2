"""Another preset on the same machine: stop, start, and the way back when the new one does not come up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from console.errors import ConsoleError
from console.presets import Preset
from console.server.keeping_secrets import keep_secrets
from console.server.life import Server
from console.server.room import make_state
from console.server.run_lock import refuse_during_a_run
from console.server.sockets import owner_of
from console.server.start import check_port, command_path
from console.server.status import ServerStatus, State
from console.server.stop import StopReport


@dataclass(frozen=True, slots=True)
class Switched:
    """How a switch ended."""

    status: ServerStatus
    """The last look at the start; failed when it did not come up."""
    stopped: StopReport | None
    """How what ran before was stopped; `None` when nothing ran."""
    back: Preset | None
    """The preset that worked before and is not this one: `server.start(back)` goes back to it. `None` when the new one
    is ready, or none is known."""
    error: ConsoleError | None = None
    """Why the start was refused after the stop: its port is taken, say."""

    @property
    def ok(self) -> bool:
        """Whether the new preset is ready."""
        return self.error is None and self.status.state is State.READY


class SwitchStuck(ConsoleError):
    """What ran before could not be stopped whole, so nothing was started."""

    def __init__(self, report: StopReport) -> None:
        left = "; ".join(f"pid {pid}: {why}" if pid else why for pid, why in report.left)
        super().__init__(
            "the server is not wholly stopped, so the other was not started",
            left,
            "see these processes; `qwen-console down` tries again",
        )
        self.report = report


def switch(
    server: Server,
    preset: Preset,
    *,
    say: Callable[[str], None] = lambda _text: None,
    tell: Callable[[ServerStatus], None] = lambda _status: None,
) -> Switched:
    """Stop what runs, start this preset and see it ready or failed.

    Args:
        server: the one server.
        preset: what to run.
        say: hears what is being done, in a line.
        tell: hears every change of the start.

    Raises:
        SwitchStuck: what ran could not be stopped whole.
        BusyError: a run goes on.
        ConsoleError: the preset's command is not there, or the state folder is no use; nothing was stopped.
    """
    refuse_during_a_run(server.paths)
    preset = with_secrets(server, preset, say)
    command_path(preset)
    # Seen before anything is stopped: what cannot be put on record cannot be started.
    make_state(server.paths)
    back = way_back(server, preset)
    stopped = stop_before(server, preset, say)
    last = ServerStatus()
    try:
        server.start(preset)
    except ConsoleError as error:
        return Switched(server.status(), stopped, back, error)
    for last in server.follow_start():
        tell(last)
    return Switched(last, stopped, None if last.state is State.READY else back)


def with_secrets(server: Server, preset: Preset, say: Callable[[str], None]) -> Preset:
    """The preset with the running server's secrets where this console has none; says which."""
    kept, names = keep_secrets(preset, server.running_preset())
    if names:
        say(f"{', '.join(names)}: not set here, the running server's is kept")
    return kept


def stop_before(server: Server, preset: Preset, say: Callable[[str], None]) -> StopReport | None:
    """Stop what runs, if anything does, so that this preset can start.

    Raises:
        SwitchStuck: something of it stays.
    """
    now = server.status(probe=False)
    if now.state in (State.STOPPED, State.FAILED, State.FOREIGN) and not server.leftovers():
        return None
    _see_port(preset, now)
    reason = "restart" if now.preset == preset.name else f"switch to {preset.name}"
    report = server.stop(on_event=say, coming=preset, reason=reason)
    if report.left:
        raise SwitchStuck(report)
    return report


def _see_port(preset: Preset, now: ServerStatus) -> None:
    """What a stranger holds is seen before anything is stopped for it."""
    port = preset.server.port
    owner = owner_of(port) if port else None
    if not port or (owner is not None and owner[0] in now.ours):
        return
    try:
        check_port(preset.server.host, port)
    except ConsoleError as error:
        error.what = f"{preset.name} cannot start, and nothing was stopped: {error.what}"
        raise


def way_back(server: Server, preset: Preset) -> Preset | None:
    """The preset to go back to: the last one that was ready and is not this one, what is ready now first."""
    ready = server.status(probe=False).state in (State.READY, State.STALLED)
    now = server.preset() if ready else None
    if now is not None and (now.name, now.args, now.env) != (preset.name, preset.args, preset.env):
        return now
    return server.worked(preset)
