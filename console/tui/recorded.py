"""The last hour as the server's recorder has it: graphs of a console that comes back do not begin empty."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from console.server.status import ServerStatus, State

if TYPE_CHECKING:
    from console.notices.past import Past
    from console.tui.services import Services

_REST_S = 3.0
"""The first figures come first."""
_PATIENCE_S = 20.0


class Recorded:
    """Looks once, a moment after a server of ours was seen ready; blocking.

    In a process of its own: SQLite would stay in this one's memory for the sake of one look.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._told = services.watched is not None
        self._ready_since: float | None = None

    def tell(self, status: ServerStatus) -> Past | None:
        """Samples of the graphs' rings from before this console came; `None` without any, or once they were told."""
        if self._told or status.state not in (State.READY, State.STALLED):
            return None
        now = time.monotonic()
        self._ready_since = now if self._ready_since is None else self._ready_since
        if now - self._ready_since < _REST_S:
            return None
        self._told = True
        return self._recall()

    def _recall(self) -> Past | None:
        words = [sys.executable, "-P", "-m", "console.notices.past", str(self._services.paths.state)]
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE_S, check=True, text=True
            )
            found = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            return None
        return {name: [(at, value) for at, value in samples] for name, samples in found.items()}
