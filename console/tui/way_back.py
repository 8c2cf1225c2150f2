"""What `b` goes back to: as `qwen-console restart --back`, the preset that was ready before the one at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.server.status import ServerStatus, State

if TYPE_CHECKING:
    from console.presets import Preset
    from console.server.life import Server


class WayBack:
    """The preset to go back to. To find it may take the reading of all presets: it is looked for when something has
    changed, and not at every look at the server."""

    def __init__(self) -> None:
        self._of: object = None
        self._found: Preset | None = None

    def look(self, server: Server, status: ServerStatus) -> Preset | None:
        """The preset that was ready before, `None` where none is known; blocking."""
        from console.server.worked import at_hand, worked_file

        if status.state is State.FOREIGN:
            return None
        try:
            kept = worked_file(server.paths).stat().st_mtime_ns
        except OSError:
            kept = None
        of = (status.state, status.preset, status.pid, kept)
        if of != self._of:
            self._of, self._found = of, server.worked()
        found = self._found
        # A start that was refused leaves no life: what was ready last may be that very preset, and `r` tries it again.
        refused = status.state is State.FAILED and at_hand(server.paths, server.preset()) is None
        return None if refused and found is not None and found.name == status.preset else found
