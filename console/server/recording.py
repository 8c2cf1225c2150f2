"""The recorder of the history as a child of the keeper: started, started again, ended; what becomes of it is a note.

Imports what the keeper may import.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from console.server.state import SCHEMA, recorder_path, write_json

STARTS = 4
"""The first and three more."""
RESET = (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGXFSZ)
"""Signals that a child of the keeper gets as they are by default."""
_KEY = "VLLM_API_KEY"


class Recording:
    """One life's recorder.

    Args:
        spec: what the keeper was told; without `recorder` nothing is recorded.
        env: the server's environment, of which only the key is passed on.
    """

    def __init__(self, spec: Mapping[str, Any], env: Mapping[str, str]) -> None:
        self._command: list[str] | None = spec.get("recorder")
        self._record = Path(spec["record"])
        self._life = spec["life"]
        self._env = {**os.environ, **({_KEY: env[_KEY]} if _KEY in env else {})}
        self._pid: int | None = None
        self._starts = 0

    def start(self) -> None:
        """Start it, unless it has died too often; whatever happens to it, the server goes on."""
        if not self._command:
            return
        if self._starts >= STARTS:
            note = f"the recorder of the history ended {self._starts} times and is not started again"
            with suppress(OSError):
                write_json(recorder_path(self._record), {"schema": SCHEMA, "life": self._life, "note": note})
            return
        self._starts += 1
        log = str(self._record.with_name("recorder.log"))
        with suppress(OSError):
            self._pid = os.posix_spawn(
                self._command[0],
                self._command,
                self._env,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDWR, 0),
                    (os.POSIX_SPAWN_DUP2, 0, 1),
                    (os.POSIX_SPAWN_OPEN, 2, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
                ],
                setpgroup=0,
                setsigmask=(),
                setsigdef=RESET,
            )

    def reaped(self, pid: int, *, again: bool) -> None:
        """A child of the keeper was collected; if it was the recorder, start another one where that makes sense."""
        if pid != self._pid:
            return
        self._pid = None
        if again:
            self.start()

    def end(self) -> None:
        """Ask it to end: it does at once, and nobody has to wait for it."""
        if self._pid is not None:
            # Ours and not yet reaped, so the number is still its own.
            os.kill(self._pid, signal.SIGTERM)
