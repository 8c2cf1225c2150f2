"""What is said on the terminal after the console has left it: what goes on, and how to end it."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING

from console import hints
from console.errors import ConsoleError
from console.server.status import State

if TYPE_CHECKING:
    from console.paths import Paths
    from console.tui.situation import Situation


def farewell(now: Situation) -> Iterator[str]:
    """One line for everything that goes on without the console."""
    return map(hints.told, _goes_on(now))


def _goes_on(now: Situation) -> Iterator[str]:
    if now.run:
        yield f"qwen-console: the A/B run {now.run} goes on; `qwen-console ab stop` ends it, `qwen-console` shows it"
    elif now.alive and not now.watching:
        name = now.status.preset or "the server"
        where = f" on {now.status.url}" if now.status.url else ""
        verb = {State.STARTING: "goes on starting", State.STOPPING: "goes on stopping"}.get(
            now.status.state, "keeps running"
        )
        end = "" if now.status.state is State.STOPPING else "; `qwen-console down` stops it"
        yield f"qwen-console: {name} {verb}{where}{end}"
    elif not now.watching and now.known:
        yield "qwen-console: no server runs"


def crash_report(paths: Paths, error: Exception | None) -> list[str]:
    """What a user reads after a fault of the console; the traceback goes to a file."""
    path = paths.state / "crash.log"
    what = f"{type(error).__name__}: {error}" if error else "the reason is not known"
    try:
        paths.make()
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error) if error else [])
        kept = f"server and runs are not touched; report {path}, then start it again"
    except OSError as problem:
        kept = f"server and runs are not touched; the traceback could not be written: {problem}"
    return ConsoleError("qwen-console: the console itself failed", what, kept).lines()
