"""What each command of the table does: ask first where something would be lost, then act."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from console.errors import ConsoleError
from console.server.status import State
from console.tui import run_lines
from console.tui.commands import by_name
from console.tui.help_lines import help_lines
from console.tui.log_lines import pretty
from console.tui.pollers import in_thread
from console.tui.screens.modal import INTERRUPT, Question, Trouble
from console.tui.screens.pager import Pager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.lab.plan import Plan
    from console.presets import Preset
    from console.tui.app import ConsoleApp
    from console.tui.widgets.lines import Line

_RUNS = {"mtp": "MTP on and off", "chunk": "chunk budgets", "aa": "the same setting twice: the noise floor"}


class Intents:
    """One `do_` method a command: the page to read beside the table of commands."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app

    def do_start(self) -> None:
        """Start the selected preset, or switch to it."""
        entry = self._app.dashboard.lower.selected
        if entry is None:
            return
        if entry.preset is None:
            if entry.error:
                self._app.push_screen(Trouble(entry.name, entry.error))
            return
        preset, now = entry.preset, self._app.situation
        if not now.alive:
            self._app.act(f"starting {preset.name}", partial(self._app.actions.start, preset))
        elif now.status.preset == preset.name and now.status.state in (State.READY, State.STARTING):
            self._app.tell_refusal(f"{preset.name} is {now.status.state.value} already; r restarts it")
        else:
            self._ask(
                f"Switch to {preset.name}?",
                [
                    f"{now.status.preset or 'the server'} is stopped: {now.interrupts}.",
                    "Then the other preset is started.",
                ],
                "switch",
                lambda: self._app.act(f"switching to {preset.name}", partial(self._app.actions.switch, preset)),
            )

    def do_stop(self) -> None:
        """Stop the run, else the server."""
        now = self._app.situation
        if now.run:
            text = [
                "What was measured stays, and what it measured stays in its report.",
                "What ran before is started again.",
            ]
            self._ask(
                "Stop the A/B run?",
                text,
                "stop the run",
                lambda: self._app.act("stopping the A/B run", self._app.actions.stop_run),
            )
            return
        name = now.status.preset or "the server"
        self._ask(
            f"Stop {name}?",
            [f"{now.interrupts.capitalize()}."],
            "stop it",
            lambda: self._app.act(f"stopping {name}", self._app.actions.stop),
        )

    def do_restart(self) -> None:
        """Stop the running preset and start it again."""
        name = self._app.situation.status.preset or "the server"
        job = partial(self._app.act, f"restarting {name}", partial(self._app.actions.restart, name))
        if self._app.situation.alive:
            self._ask(f"Restart {name}?", [f"{self._app.situation.interrupts.capitalize()}."], "restart", job)
        else:
            job()

    def do_mtp(self) -> None:
        """MTP off and on."""
        self._plan("mtp")

    def do_chunk(self) -> None:
        """Chunk budgets."""
        self._plan("chunk")

    def do_aa(self) -> None:
        """The noise floor."""
        self._plan("aa")

    def _plan(self, kind: str) -> None:
        entry = self._app.dashboard.lower.selected
        if entry and entry.preset:
            self._app.run_worker(
                self._plan_and_ask(kind, entry.preset), group="plan", exclusive=True, exit_on_error=False
            )

    async def _plan_and_ask(self, kind: str, preset: Preset) -> None:
        try:
            plan = (
                await in_thread(partial(self._app.services.plan_run, kind, preset))
                if self._app.services.plan_run
                else None
            )
        except ConsoleError as error:
            self._app.push_screen(Trouble(f"no {kind} run", error))
            return
        begin = partial(self._app.act, f"starting the {kind} run", partial(self._app.actions.run, kind, preset))
        self._ask(f"Compare {_RUNS[kind]}?", self._what_a_run_does(preset, plan), "start the run", begin)

    def _what_a_run_does(self, preset: Preset, plan: Plan | None) -> list[str]:
        now = self._app.situation
        lines = [f"Preset {preset.name}."] if plan is None else run_lines.plan_text(plan)
        if now.alive:
            name = now.status.preset or "The server"
            lines.append(f"{name} is stopped meanwhile ({now.interrupts}) and started again afterwards.")
        return [*lines, "The run goes on without this console; x stops it."]

    def do_adopt(self) -> None:
        """Write the winner as a preset."""
        if self._app.situation.winner:
            run_id, arm = self._app.situation.winner
            self._app.act(f"adopting {arm}", partial(self._app.actions.adopt, run_id, arm))

    def do_details(self) -> None:
        """The run over the whole screen."""

        def content(width: int) -> tuple[str, Sequence[Line]]:
            run = self._app.dashboard.lower.run
            return run_lines.title(run), run_lines.full(run, width) if run else run_lines.nothing()

        self._app.push_screen(Pager(content, follow=False, simulated=self._app.simulated))

    def do_log(self) -> None:
        """The log over the whole screen."""

        def content(_: int) -> tuple[str, Sequence[Line]]:
            lower = self._app.dashboard.lower
            return f"log {lower.log_path or ''}", [pretty(text) for text in lower.log_text]

        self._app.push_screen(Pager(content, follow=True, simulated=self._app.simulated))

    def do_next_view(self) -> None:
        """The other half of the lower area."""
        self._app.dashboard.lower.other_half()

    def do_up(self) -> None:
        """The preset above."""
        self._select(lambda: self._app.dashboard.lower.move(-1))

    def do_down(self) -> None:
        """The preset below."""
        self._select(lambda: self._app.dashboard.lower.move(1))

    def do_select(self, number: str) -> None:
        """The preset of that number."""
        self._select(lambda: self._app.dashboard.lower.select(int(number) - 1))

    def _select(self, move: Callable[[], None]) -> None:
        move()
        self._app.know()

    def do_help(self) -> None:
        """All keys."""
        self._app.push_screen(Pager(lambda _: ("keys", help_lines()), follow=False, simulated=self._app.simulated))

    def do_palette(self) -> None:
        """Find a command by its name."""
        self._app.action_command_palette()

    def do_quit(self) -> None:
        """Leave; nothing else ends."""
        self._app.exit(0)

    def do_suspend(self) -> None:
        """To the shell; what is shown rests meanwhile."""
        self._app.action_suspend_process()

    def do_ask_quit(self) -> None:
        """^C means different things to different people: ask. A second one, whoever gets it first, means it."""
        if isinstance(self._app.screen, Question):
            self._app.screen.action_interrupt()
            return
        now = self._app.situation
        stays = "The A/B run goes on." if now.run else "The server stays up." if now.alive else "No server runs."

        def answered(key: str | None) -> None:
            if key in ("q", INTERRUPT):
                self._app.exit(0)
            elif key == "x":
                self._app.carry_out(by_name("stop"))

        answers = [("q", "quit"), (INTERRUPT, "quit")]
        if now.run or now.alive:
            answers.append(("x", "stop the run" if now.run else "stop the server"))
        self._app.push_screen(Question("quit?", [f"Leave the console? {stays}"], answers), answered)

    def _ask(self, title: str, text: list[str], yes: str, do: Callable[[], None]) -> None:
        self._app.push_screen(Question(title, text, [("y", yes)]), lambda key: do() if key == "y" else None)
