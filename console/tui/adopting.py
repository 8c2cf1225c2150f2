"""The question before a winner becomes a preset: which keys change, and what the file is called."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.tui import run_lines
from console.tui.keycaps import cap
from console.tui.pollers import in_thread
from console.tui.screens.modal import Question, Trouble

if TYPE_CHECKING:
    from console.lab.view import RunView
    from console.tui.app import ConsoleApp


def adopt(app: ConsoleApp, run: RunView | None) -> None:
    """Adopt what the run advises; where it advises nothing, say how an arm is written all the same."""
    if run is None or run.state == "running":
        app.tell("no run that has ended")
    elif arm := run_lines.winner(run):
        app.lead_to_question(_adopt_and_ask(app, run.id, arm))
    else:
        app.push_screen(Trouble("nothing to adopt", run_lines.no_advice(run)))


async def _adopt_and_ask(app: ConsoleApp, run_id: str, arm: str) -> None:
    """Show what would be written, and write it after a yes; what is there already is said in a line."""
    try:
        draft = await in_thread(partial(app.services.draft, run_id, arm))
    except ConsoleError as error:
        app.push_screen(Trouble("nothing to adopt", error))
        return
    if draft.there is not None:
        app.dashboard.lower.await_preset(draft.there.stem)
        app.know()
        runs = draft.there.stem == app.situation.status.preset and app.situation.alive
        then = "and runs" if runs else f"{cap('start')} starts it"
        app.tell(f"{draft.there.stem} is there already, with the same settings; {then}")
        return
    base = draft.body["extends"]
    text = [
        f"A new preset {draft.path.stem}: {base} with {', '.join(draft.differences or draft.changes)}.",
        f"Its file: {draft.path}",
    ]

    def answered(key: str | None) -> None:
        if key == "y":
            app.dashboard.lower.await_preset(draft.path.stem)
            app.act(f"adopting {arm}", partial(app.actions.adopt, run_id, arm))

    app.push_screen(Question(f"Adopt {arm}?", text, [("y", "write it")]), answered)
