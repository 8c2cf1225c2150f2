"""Questions that a yes answers, and what it is worth when the world has moved on meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from console.tui.commands import by_name
from console.tui.screens.modal import Question

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp
    from console.tui.situation import Situation

WAIT = ("d", "first wait until none runs")


def ask(app: ConsoleApp, title: str, text: list[str], yes: str, do: Callable[[], None]) -> None:
    """Ask, and do it on a `y`."""
    app.push_screen(Question(title, text, [("y", yes)]), lambda key: do() if key == "y" else None)


def ask_about_requests(
    app: ConsoleApp, title: str, text: list[str], command: str, ways: Mapping[str, tuple[str, Callable[[], None]]]
) -> None:
    """Ask before a server is stopped for another start; where it answers requests, they may be waited for first.

    Args:
        app: whose screens ask.
        title: what is asked, in short.
        text: what it leads to.
        command: whose question it is; asked anew where something else goes on by then.
        ways: key → what it is called, and what it does.
    """
    answers = [(key, said) for key, (said, _) in ways.items()]
    waits = len(ways) == 1 and bool(of_others(app.situation))
    jobs = {key: if_still_so(app, command, do) for key, (_, do) in ways.items()}
    if waits:
        ((_, do),) = ways.values()
        drain = partial(app.actions.drain, "goes on at once")
        wait = partial(app.act, "waiting for the requests in flight", drain, then=do, draining=True)
        jobs[WAIT[0]] = if_still_so(app, command, wait)

    def answered(key: str | None) -> None:
        if key in jobs:
            jobs[key]()

    app.push_screen(Question(title, text, [*answers, *([WAIT] if waits else [])]), answered)


def _subject(now: Situation) -> object:
    """What is at work: a run, whose arms come and go, or a server."""
    return now.run or (now.status.preset, now.status.pid)


def of_others(now: Situation) -> int:
    """Requests that a stop would cut off; the one of our own test was said to be."""
    return max(0, (now.requests or 0) - (1 if now.probing else 0))


def if_still_so(app: ConsoleApp, command: str, do: Callable[[], None]) -> Callable[[], None]:
    """What a yes to a command's question does.

    The command, if it is still about the same run, else the same server, and cuts off no requests where none were said
    to be in flight; else it asks anew, about what goes on now.
    """
    asked = app.situation

    def answered() -> None:
        now = app.situation
        more = not now.run and bool(of_others(now)) > bool(of_others(asked))
        if _subject(now) == _subject(asked) and not more:
            do()
        else:
            app.carry_out(by_name(command))
            app.tell("not done yet: something else goes on now than when it was asked")

    return answered
