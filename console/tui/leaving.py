"""Ways out that nobody asked for: a signal, a terminal that is gone. The terminal is restored, nothing spins."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App

_PATIENCE_S = 2.0
_LOOK_EVERY_S = 1.0
_RESTORE = b"\x1b[<u\x1b[?1000l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h"


class Leaving:
    """Ends the app on a signal or on a lost terminal. Textual by itself does neither: a SIGTERM leaves the alternate
    screen on, and after a hang-up its input thread would spin on a dead file descriptor."""

    def __init__(self, app: App[int]) -> None:
        self._app = app
        self._attributes: list[int | list[bytes | int]] | None = None

    def watch(self) -> None:
        """From now on."""
        if self._app.is_headless:
            return
        loop = asyncio.get_running_loop()
        # SIGINT is somebody's `kill`: the keys that send signals come as keys.
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, self._leave, number)
        self._app.set_interval(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        stdin = sys.__stdin__
        try:
            if stdin is not None:
                termios.tcgetattr(stdin.fileno())
        except (termios.error, ValueError):
            self._leave(signal.SIGHUP)

    def _leave(self, number: int) -> None:
        code = 128 + number
        # If the terminal takes no more output, Textual's own way out blocks on it: then this one does not.
        last = threading.Timer(_PATIENCE_S, _leave_at_once, (code,))
        last.daemon = True
        last.start()
        self._app.exit(code, return_code=code)


def _leave_at_once(code: int) -> None:
    with suppress(OSError, ValueError):
        if sys.__stdout__ is not None:
            os.set_blocking(sys.__stdout__.fileno(), False)
            os.write(sys.__stdout__.fileno(), _RESTORE)
    die_of_quit(code)
    os._exit(code)


def die_of_quit(code: int) -> None:
    """Whoever sent SIGQUIT wants the process to die of it, with a core where the system keeps one."""
    if code == 128 + signal.SIGQUIT:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGQUIT)


def someone_continues_us() -> bool:
    """Whether a shell with job control is behind us.

    Not so under `ssh -t HOST qwen-console`: who is suspended there stays so, and the terminal with it.
    """
    group, session, above = os.getpgrp(), os.getsid(0), os.getppid()
    # Whoever started us and is of our own group is suspended with us: a shell of another group is looked for.
    with suppress(OSError, ValueError, IndexError):
        while above > 1 and os.getpgid(above) == group:
            above = int(Path(f"/proc/{above}/stat").read_text().rpartition(")")[2].split()[1])
        return above > 1 and os.getsid(above) == session
    return False
