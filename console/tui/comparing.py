"""An A/B run of one key: plan it, ask with the plan in the question, start what was shown."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.tui.keycaps import cap
from console.tui.pollers import in_thread
from console.tui.screens.modal import Question, Trouble

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.presets import Preset
    from console.tui.app import ConsoleApp

_RUNS = {"mtp": "MTP on and off", "chunk": "chunk budgets", "aa": "the same setting twice: the noise floor"}


def plan(app: ConsoleApp, kind: str, preset: Preset, rounds: int | None = None) -> None:
    """Plan a run in the background and ask; of several the last one counts.

    Args:
        app: whose screens ask.
        kind: `mtp`, `chunk` or `aa`.
        preset: what the run is about.
        rounds: how many; by default the usual.
    """
    app.lead_to_question(_plan_and_ask(app, kind, preset, rounds))


async def _plan_and_ask(app: ConsoleApp, kind: str, preset: Preset, rounds: int | None) -> None:
    from console.lab.verdict import LEAST_ROUNDS

    try:
        found = await in_thread(partial(app.services.plan_run, kind, preset, rounds))
    except ConsoleError as error:
        app.push_screen(Trouble(f"no {kind} run", error))
        return
    longer = str(LEAST_ROUNDS)

    def answered(key: str | None) -> None:
        if key == "y":
            app.act(f"starting the {kind} run", partial(app.actions.run, found), raising="run")
        elif key == longer:
            plan(app, kind, preset, LEAST_ROUNDS)

    answers = [("y", "start the run")]
    if found.rounds < LEAST_ROUNDS and kind != "aa":
        # The key reads on into its words: 3 rounds.
        answers.append((longer, "rounds, enough to adopt"))
    app.push_screen(Question(f"Compare {_RUNS[kind]}?", _what_it_does(app, found), answers), answered)


def _what_it_does(app: ConsoleApp, found: Plan) -> list[str]:
    from console.tui import run_lines

    now, lines = app.situation, run_lines.plan_text(found)
    if now.alive:
        name = now.status.preset or "The server"
        lines.append(f"{name} will be stopped meanwhile ({now.interrupts}) and started again afterwards.")
    return [*lines, f"The run goes on without this console; {cap('stop')} stops it."]
