"""What is said on the terminal after the console has left it: what goes on, and how to end it."""

from __future__ import annotations

from collections.abc import Iterator

from console.server.status import State
from console.tui.situation import Situation


def farewell(now: Situation) -> Iterator[str]:
    """One line for everything that goes on without the console."""
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
