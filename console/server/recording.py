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

from console.files import open_file
from console.server.state import SCHEMA, recorder_path, write_json

STARTS = 4
"""The first and three more."""
RESET = (signal.SIGHUP, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGCHLD, signal.SIGXFSZ)
"""Signals that a child of the keeper gets as they are by default."""
_KEY = "VLLM_API_KEY"
_LAST_BYTES = 4096
_LAST_CHARS = 200


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
        self._log = self._record.with_name("recorder.log")
        self.pid: int | None = None
        """The recorder's process, while there is one."""
        self._starts = 0
        self._why = ""

    def start(self) -> None:
        """Start it, unless it has died too often; whatever happens to it, the server goes on."""
        if not self._command:
            return
        if self._starts >= STARTS:
            self._give_up(f"the recorder of the history ended {self._starts} times and is not started again{self._why}")
            return
        self._starts += 1
        log = str(self._log)
        try:
            self.pid = os.posix_spawn(
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
        except OSError as error:
            self._give_up(f"the recorder of the history could not be started: {error.strerror or error}")

    def _give_up(self, note: str) -> None:
        told = {"schema": SCHEMA, "life": self._life, "note": note, "ended": True}
        with suppress(OSError):
            write_json(recorder_path(self._record), told)

    def reaped(self, pid: int, status: int, *, again: bool) -> None:
        """A child of the keeper was collected; if it was the recorder, start another one where that makes sense.

        Args:
            pid: who.
            status: how it ended, as `waitpid` tells it.
            again: whether the server goes on.
        """
        if pid != self.pid:
            return
        self.pid = None
        if again:
            self._why = self._told(os.waitstatus_to_exitcode(status))
            self.start()

    def _told(self, code: int) -> str:
        """How it ended, and the last it said."""
        how = f"signal {-code} ended it" if code < 0 else f"it ended with code {code}"
        said = b""
        with suppress(OSError), open_file(self._log) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LAST_BYTES))
            said = file.read().strip()
        last = said.rpartition(b"\n")[2].decode(errors="replace")[:_LAST_CHARS]
        return f" (the last time {how}{': ' + last if last else ''})"

    def end(self) -> None:
        """Ask it to end: it does at once, and nobody has to wait for it."""
        if self.pid is not None:
            # Ours and not yet reaped, so the number is still its own.
            os.kill(self.pid, signal.SIGTERM)
