"""Textual's driver for a Unix terminal, with less on the line, and no key lost on a slow one."""

from __future__ import annotations

import os
import termios
import tty
from codecs import IncrementalDecoder, getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver

from console.tui.ascii_signs import plain
from console.tui.keystrokes import Keystrokes
from console.tui.wire import Wire

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Around an update, so that the terminal shows it at once."""


def _forgiving(encoding: str) -> Callable[[], IncrementalDecoder]:
    """Of bytes that are no text in this encoding, such as an é typed in Latin-1, a sign in their place and no crash."""
    return partial(getincrementaldecoder(encoding), errors="replace")


class ThriftyDriver(LinuxDriver):
    """Sends of every update what the terminal does not show yet; an update without any is not sent at all."""

    only_ascii = False
    """Whether the terminal is told nothing but ASCII; set before the app runs."""
    _wire: Wire | None = None
    _begun = False

    def write(self, data: str) -> None:
        """Send, less what is there."""
        if data == _BEGIN:
            self._begun = True
            return
        if data == _END:
            if not self._begun:
                super().write(data)
            self._begun = False
            return
        if self.only_ascii:
            data = plain(data)
        if self._wire is None:
            self._wire = Wire()
        app_size = self._app.size
        needed = self._wire.take(data, (app_size.width, app_size.height))
        if needed and self._begun:
            self._begun = False
            super().write(_BEGIN)
        if needed:
            super().write(needed)

    def run_input_thread(self) -> None:
        """Read keys from now on."""
        # Textual's own takes parser and decoder from there, and offers no other way to give it one.
        linux_driver.XTermParser = Keystrokes  # type: ignore[attr-defined]
        linux_driver.getincrementaldecoder = _forgiving  # type: ignore[attr-defined,assignment]
        super().run_input_thread()

    def _sigcont_application(self, *_: object) -> None:
        """Go on. Whoever was held by SIGSTOP, or is only told to go on, never left application mode.

        To begin it anew would take the raw terminal for what to restore in the end, and start a second input thread.
        """
        if self._must_signal_resume or self._key_thread is None:
            self._forget_keys()
            super()._sigcont_application()
            return
        with suppress(termios.error):
            modes = termios.tcgetattr(self.fileno)
            modes[tty.LFLAG] = self._patch_lflag(modes[tty.LFLAG])
            modes[tty.IFLAG] = self._patch_iflag(modes[tty.IFLAG])
            modes[tty.CC][termios.VMIN] = 1
            termios.tcsetattr(self.fileno, termios.TCSANOW, modes)
        self.forget()
        self._app.call_later(self._app.refresh)

    def _forget_keys(self) -> None:
        """What was typed meanwhile was meant for whoever had the terminal; in the background it still is another's."""
        with suppress(OSError, termios.error):
            if os.tcgetpgrp(self.fileno) == os.getpgrp():
                termios.tcflush(self.fileno, termios.TCIFLUSH)

    def ring(self, data: str) -> None:
        """Bells and notifications: they change no cell, and are not part of a frame."""
        super().write(data)

    def forget(self) -> None:
        """The terminal may show anything now: the next frame is sent whole."""
        if self._wire is not None:
            self._wire.forget()
