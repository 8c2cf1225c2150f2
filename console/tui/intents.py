"""What each command of the table does: ask first where something would be lost, then act."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from console.tui.asking import WAIT, ask, ask_about_requests, if_still_so, of_others
from console.tui.commands import by_name
from console.tui.keycaps import cap
from console.tui.screens.modal import INTERRUPT, Question, Trouble
from console.tui.starting import as_written, if_whole

if TYPE_CHECKING:
    from console.presets import Preset
    from console.tui.app import ConsoleApp
    from console.tui.preset_lines import Entry


_AROUND = len(" ▸ wrote ") + 1
"""Cells of a row that a path shares with what is said of it."""


class Intents:
    """One `do_` method a command: the page to read beside the table of commands."""

    def __init__(self, app: ConsoleApp) -> None:
        self._app = app

    def do_start(self) -> None:
        """Start the selected preset, or switch to it."""
        as_written(self._app, self._start_written)

    def _start_written(self, entry: Entry) -> None:
        if entry.preset is None:
            if entry.error:
                self._app.push_screen(Trouble(entry.name, entry.error))
        else:
            if_whole(self._app, entry.preset, partial(self._start_or_ask, entry.preset))

    def _start_or_ask(self, preset: Preset) -> None:
        now = self._app.situation
        start = partial(self._raise, "starting", preset.name, partial(self._app.actions.start, preset))
        if not now.alive and now.hidden == "presets":
            # Nobody sees which one is selected.
            text = [
                f"It is the one selected in the list behind {cap('next_view')}.",
                "No server runs now: nothing is stopped.",
            ]
            ask(self._app, f"Start {preset.name}?", text, "start it", if_still_so(self._app, "start", start))
        elif not now.alive:
            start()
        else:
            switch = partial(self._raise, "switching to", preset.name, partial(self._app.actions.switch, preset))
            stops = f"{now.status.preset or 'The server'} will be stopped: {now.interrupts}."
            text = [stops, "Then the other preset is started."]
            ask_about_requests(self._app, f"Switch to {preset.name}?", text, "start", {"y": ("switch", switch)})

    def do_stop(self) -> None:
        """Stop the run, else the server, also while it is still on its way up."""
        now = self._app.situation
        if now.run or now.raising == "run":
            self._ask_stop_run(just_begun=not now.run)
        elif now.raising == "server":
            ask(
                self._app,
                f"Stop {now.coming}?",
                ["Its start is broken off, and if it is ready by then, it is stopped; then no server runs."],
                "stop it",
                lambda: self._app.act(f"stopping {now.coming}", self._app.actions.break_off),
            )
        elif now.draining:
            self._app.actions.enough.set()
        else:
            self._ask_stop()

    def _ask_stop_run(self, *, just_begun: bool) -> None:
        text = [
            "What was measured stays, and `qwen-console ab resume` goes on from there.",
            "What ran before, if anything did, is started again.",
        ]
        job = partial(self._app.actions.stop_run, just_begun=just_begun)
        stop = partial(self._app.act, "stopping the A/B run", job)
        yes = stop if just_begun else if_still_so(self._app, "stop", stop)
        ask(self._app, "Stop the A/B run?", text, "stop the run", yes)

    def _ask_stop(self) -> None:
        now = self._app.situation
        name = now.status.preset or "the server"
        jobs = {"y": self._app.actions.stop, "d": self._app.actions.drain_and_stop}
        answers = [("y", "stop it"), *([WAIT] if of_others(now) else [])]

        def stop(key: str) -> None:
            self._app.act(f"stopping {name}", jobs[key], draining=key == "d")

        stops = {key: if_still_so(self._app, "stop", partial(stop, key)) for key in jobs}

        def answered(key: str | None) -> None:
            if key is not None:
                stops[key]()

        self._app.push_screen(Question(f"Stop {name}?", [f"{now.interrupts.capitalize()}."], answers), answered)

    def do_back(self) -> None:
        """What was ready before, again."""
        now = self._app.situation
        if back := now.back:
            job = partial(self._raise, "going back to", back.name, partial(self._app.actions.go_back, back))
            stops = f"{now.status.preset or 'The server'} will be stopped: {now.interrupts}."
            text = [
                f"{back.name} will be started, as it was when it was ready before.",
                stops if now.alive else "No server runs now: nothing is stopped.",
            ]
            yes = "switch" if now.alive else "start it"
            ask_about_requests(self._app, f"Go back to {back.name}?", text, "back", {"y": (yes, job)})

    def do_restart(self) -> None:
        """Stop the running preset and start it again."""
        from console.tui.restarting import restart

        self._app.lead_to_question(restart(self._app))

    def do_mtp(self) -> None:
        """MTP off and on."""
        self._plan_selected("mtp")

    def do_chunk(self) -> None:
        """Chunk budgets."""
        self._plan_selected("chunk")

    def do_aa(self) -> None:
        """The noise floor."""
        self._plan_selected("aa")

    def _plan_selected(self, kind: str) -> None:
        as_written(self._app, partial(self._plan_written, kind))

    def _plan_written(self, kind: str, entry: Entry) -> None:
        if entry.preset is not None:
            from console.tui.comparing import plan

            plan(self._app, kind, entry.preset)
        elif entry.error:
            self._app.push_screen(Trouble(entry.name, entry.error))

    def do_adopt(self) -> None:
        """Write the winner as a preset."""
        from console.tui.adopting import adopt

        adopt(self._app, self._app.dashboard.lower.run)

    def do_probe(self) -> None:
        """One prompt three times."""
        self._app.act("testing the prefix cache", self._app.actions.probe, probing=True)

    def do_preset(self) -> None:
        """The selected preset in full."""
        self._open("preset")

    def do_notices(self) -> None:
        """What stands out now."""
        self._open("notices")

    def do_trends(self) -> None:
        """Graphs."""
        self._open("trends")

    def do_chain(self) -> None:
        """What really runs."""
        self._open("chain")

    def do_cards(self) -> None:
        """The whole of each card."""
        self._open("cards")

    def do_history(self) -> None:
        """The last days."""
        self._open("history")

    def do_details(self) -> None:
        """The run over the whole screen."""
        self._open("details")

    def do_log(self) -> None:
        """The log over the whole screen."""
        self._open("log")

    def do_write(self) -> None:
        """Text and figures into a file."""
        from console.tui import shortened
        from console.tui.keeping import write_screen

        try:
            path = write_screen(self._app, self._app.screen)
        except OSError as error:
            self._app.tell(f"not written: {error.strerror or error}")
        else:
            self._app.tell(f"wrote {shortened.path(path, self._app.size.width - _AROUND)}")

    def do_copy(self) -> None:
        """The text to the clipboard."""
        from console.tui.keeping import copy_screen

        self._app.tell(copy_screen(self._app, self._app.screen))

    def do_help(self) -> None:
        """All keys."""
        self._open("keys")

    def _open(self, name: str) -> None:
        # Imported here, as below: the first frame must not wait for what is on no screen yet.
        from console.tui.opening import open_page

        open_page(self._app, name)

    def do_explain(self) -> None:
        """Choose a figure and read what it is."""
        from console.tui.screens.explain import Explain, explicable

        if not explicable(self._app.dashboard):
            self._app.tell("no figure stands here now that could be explained")
            return
        self._app.push_screen(Explain(self._app.dashboard))

    def do_next_view(self) -> None:
        """The other half of the lower area."""
        self._app.dashboard.lower.other_half()
        self._app.know()

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

    def do_palette(self) -> None:
        """Find a command by its name."""
        self._app.action_command_palette()

    def do_quit(self) -> None:
        """Leave; nothing else ends."""
        self._app.exit(0)

    def do_redraw(self) -> None:
        """The whole screen again."""
        self._app.paint_anew()

    def do_suspend(self) -> None:
        """To the shell; what is shown rests meanwhile."""
        from console.tui.leaving import someone_continues_us

        if someone_continues_us():
            self._app.action_suspend_process()
        else:
            self._app.tell(f"not suspended: no shell behind this terminal could bring it back; {cap('quit')} quits")

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
        self._app.push_screen(Question("quit?", [f"Leave the console? {stays}"], answers, no="stay"), answered)

    def _raise(self, verb: str, name: str, job: Callable[[], str | None]) -> None:
        """Bring a server up; x breaks it off."""
        self._app.act(f"{verb} {name}", job, raising="server", coming=name)
        self._app.tell(f"begun: {verb} {name}; {cap('stop')} breaks it off")
