"""The console on this process's terminal, from its first frame to its last word."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from console import units
from console.tui.app import ConsoleApp
from console.tui.driver import ThriftyDriver
from console.tui.farewell import farewell
from console.tui.leaving import die_of_quit

if TYPE_CHECKING:
    from console.tui.services import Services

_TURN_S = 0.001


def run(services: Services) -> int:
    """Run the console until its user leaves; what goes on without it is said on the way out.

    Returns:
        0 after a quit, 128 + the signal after one that ends programs, 1 after a fault of the console itself. SIGQUIT
        does not return: the process dies of it.
    """
    # A look that reads a flooded log holds the interpreter for this long at each of its turns: a key must not wait
    # through several of the usual 5 ms.
    sys.setswitchinterval(_TURN_S)
    app = ConsoleApp(services)
    ThriftyDriver.only_ascii = services.config.wants_ascii
    code = app.run(mouse=services.config.wants_mouse)
    with suppress(OSError):
        for text in farewell(app.situation):
            print(units.printable(text), file=sys.stderr)
    die_of_quit(code or 0)
    # Every way out of ours gives a code; without one Textual gave up.
    return 1 if code is None else code
