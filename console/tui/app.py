"""The Textual application: workers, commands, and a clean way out."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.screen import Screen

from console import hints, units
from console.server.status import ServerStatus, State
from console.tui import ringing, run_lines
from console.tui.actions import Actions
from console.tui.commands import COMMANDS, Bindings, Command, bindings_everywhere, keymap, ways_out
from console.tui.driver import ThriftyDriver
from console.tui.farewell import crash_report
from console.tui.in_order import InOrder
from console.tui.intents import Intents
from console.tui.jobs import Job, Jobs
from console.tui.keycaps import keys_are
from console.tui.leaving import Leaving
from console.tui.messages import (
    CatalogSeen,
    Ended,
    LogSeen,
    NoticesSeen,
    PollFailed,
    ReadingLost,
    ReadingSeen,
    RunBegun,
    RunSeen,
    Said,
    StatusSeen,
)
from console.tui.palette import ConsoleCommands, Palette
from console.tui.pollers import in_a_line
from console.tui.rhythm import Rhythm
from console.tui.screens.dashboard import Dashboard
from console.tui.silences import refused
from console.tui.situation import Situation
from console.tui.sources import Sources
from console.tui.telling import LONG_S, TOLD_S, Telling
from console.tui.theme import THEMES

if TYPE_CHECKING:
    from console.notices import Rings
    from console.tui.services import Services

_TOAST_S = 8.0


class ConsoleApp(InOrder):
    """The console on a terminal. It owns nothing: server and runs go on when it leaves, however it leaves."""

    CSS_PATH = "console.tcss"
    TITLE = "qwen-console"
    COMMANDS: ClassVar = {ConsoleCommands}
    COMMAND_PALETTE_BINDING = "colon"
    BINDINGS: ClassVar[Bindings] = bindings_everywhere()

    def __init__(self, services: Services) -> None:
        # Said before Textual chooses its filters: under NO_COLOR it would else paint black on black.
        super().__init__(ansi_color=True, driver_class=ThriftyDriver, at_once=ways_out(services.config.keys))
        self.services = services
        self.animation_level = "none"
        for theme in THEMES:
            self.register_theme(theme)
        self.theme = services.config.theme
        self.situation = Situation(watching=services.watched is not None)
        keys_are(services.config.keys)
        self.dashboard = Dashboard(
            simulated=services.demo,
            default_preset=services.default_preset,
            watched=services.watched.url if services.watched else None,
            keys=services.config.keys,
        )
        self.actions = Actions(services, self._say, self._tell, self._tell_run)
        self._rings: Rings | None = None
        self.sources = Sources(services)
        self._rhythm = Rhythm(self.sources, lambda: self.situation.status.state, low_bandwidth=services.low_bandwidth)
        self._intents = Intents(self)
        self._leaving = Leaving(self)
        self._jobs = Jobs(self)
        self._followed = False
        self._telling = Telling(self)

    @property
    def simulated(self) -> bool:
        """Whether figures on the screen come from the stand-in engine."""
        return self.dashboard.simulated

    @property
    def awaited(self) -> str:
        """What there is to choose from, and the question to which the last key leads."""
        return self.situation.unknown or ("the question" if self.asking else "")

    @property
    def rings(self) -> Rings:
        """The series behind the graphs."""
        if self._rings is None:
            from console.notices import Rings

            self._rings = Rings()
        return self._rings

    @property
    def front(self) -> Screen[Any] | None:
        """The screen that is seen; on the way out there is none."""
        return self.screen_stack[-1] if self.screen_stack else None

    def get_default_screen(self) -> Dashboard:
        return self.dashboard

    def on_mount(self) -> None:
        """From here on a signal ends the console in order."""
        if self.services.config.keys:
            self.set_keymap(keymap(self.services.config.keys))
        self._leaving.watch()

    def on_resize(self) -> None:
        """Another size hides other things."""
        self.call_after_refresh(self.know)

    @on(Dashboard.Up)
    def _show_first_frame(self) -> None:
        """The first frame is painted before any source is touched."""
        self.dashboard.tell_situation(self.situation)
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        gc.freeze()
        gc.enable()
        self.app_suspend_signal.subscribe(self, lambda _: self._rhythm.pause())
        self.app_resume_signal.subscribe(self, lambda _: self._resume())
        self._rhythm.begin(self, self.dashboard.post_message, self._poll_failed)

    def _resume(self) -> None:
        """Back from a suspension: the terminal has forgotten everything, and Textual paints only what changed."""
        self._rhythm.resume()
        self.paint_anew()

    def action_command_palette(self) -> None:
        """Find a command by its name."""
        if not isinstance(self.front, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def paint_anew(self) -> None:
        """The terminal may show anything now: send the whole screen."""
        if isinstance(self._driver, ThriftyDriver):
            self._driver.forget()
        self.screen.refresh(layout=True)

    def _poll_failed(self, source: str, error: BaseException) -> None:
        self.dashboard.post_message(PollFailed(source, in_a_line(error)))

    # --- commands

    def action_command(self, name: str, argument: str) -> None:
        """A key of the table was pressed."""
        self.carry_out(next(c for c in COMMANDS if (c.name, c.argument) == (name, argument)))

    def carry_out(self, command: Command) -> None:
        """Do it, or say in a line why it makes no sense now."""
        self._telling.forget()
        refused = command.guard(self.situation)
        if refused:
            self.tell(refused)
            return
        do: Callable[..., None] = getattr(self._intents, f"do_{command.name}")
        do(command.argument) if command.argument else do()

    def tell(self, text: str, stands_s: float = TOLD_S) -> None:
        """What a key came to, or why it does nothing now; see `Telling`."""
        self._telling.tell(text, stands_s)

    def action_forget_told(self) -> None:
        """What was said has been read."""
        self._telling.forget()

    def act(self, title: str, job: Job, then: Callable[[], None] | None = None, **what: object) -> None:
        """Do a long job; see `Jobs.begin`."""
        self._jobs.begin(title, job, then, **what)

    def _say(self, text: str) -> None:
        self.post_message(Said(text))

    def _tell(self, status: ServerStatus) -> None:
        self.dashboard.post_message(StatusSeen(status))

    def _tell_run(self, run_id: str) -> None:
        self.post_message(RunBegun(run_id))

    @on(RunBegun)
    def _learn_begun(self, event: RunBegun) -> None:
        self.know(run=event.run_id)

    # --- what happened

    def ring(self, text: str) -> None:
        """Something that one was waiting for, or should know at once."""
        if self.services.config.bell:
            self.ring_terminal(ringing.bell(text, self.services.config.notify))

    def ring_terminal(self, data: str) -> None:
        """Past the frames: it changes no cell."""
        if isinstance(self._driver, ThriftyDriver):
            self._driver.ring(data)

    def know(self, **changes: object) -> None:
        """Learn something: the footer follows."""
        entry = self.dashboard.lower.selected
        changes |= {"selected": entry.name if entry else None, "hidden": self.dashboard.lower.hidden}
        changes |= {"broken": bool(entry and entry.error), "lacking": bool(entry and entry.lacking)}
        before, self.situation = self.situation, replace(self.situation, **changes)  # type: ignore[arg-type]
        if before != self.situation:
            self.dashboard.tell_situation(self.situation)

    @on(StatusSeen)
    def _learn_status(self, event: StatusSeen) -> None:
        before = self.situation.status
        if not self.situation.run and (text := ringing.death(before, event.status)):
            self.ring(text)
        self.know(status=event.status, back=event.back, known=True)
        self._jobs.see(event.status)
        if (before.state, before.pid) != (event.status.state, event.status.pid):
            self._rhythm.poke()
        if event.status.state is State.STARTING and not self._followed and not self.situation.acting:
            # Somebody has to apply the ready-timeout to a start that was begun before this console came.
            self._follow_found_start()

    def _follow_found_start(self) -> None:
        self._followed = True
        if self.situation.run is None and self.services.watched is None:
            coming = self.situation.status.preset or "the server"
            self.act(f"following the start of {coming}", self.actions.follow_found, raising="server", coming=coming)

    @on(ReadingSeen)
    def _learn_load(self, event: ReadingSeen) -> None:
        now = event.reading
        self.know(requests=now.running + (now.waiting or 0) if now and now.running is not None else None)

    @on(ReadingLost)
    def _forget_load(self, event: ReadingLost) -> None:
        if self.situation.requests is not None and refused(event.error):
            # The server that answered a moment ago is gone: its state is not waited for.
            self._rhythm.poke()
        self.know(requests=None)

    @on(CatalogSeen)
    def _learn_presets(self) -> None:
        self.know(listed=True)

    @on(RunSeen)
    def _learn_run(self, event: RunSeen) -> None:
        if self.situation.run and event.run and not event.live and event.run.id == self.situation.run:
            self.ring(f"the A/B run of {event.run.preset} has ended")
        if event.run and event.news:
            self._telling.tell(run_lines.news(event.run), LONG_S, page=False)
        ended = event.run is not None and not event.live
        self.know(run=event.run.id if event.run and event.live else None, run_ended=ended)
        self._tell_front()

    @on(NoticesSeen)
    def _learn_notices(self, event: NoticesSeen) -> None:
        self.rings.see(event.look, event.past)
        self.dashboard.tell_rings(self.rings.__getitem__)
        if self.front in (self.dashboard, None):
            return
        for notice in event.begun:
            if notice.severity != "info":
                fix, what = units.printable(hints.told(notice.fix)), units.printable(notice.what)
                self.notify(fix, title=what, severity="warning", timeout=_TOAST_S, markup=False)
        self._tell_front()

    @on(LogSeen)
    @on(Dashboard.Painted)
    def _tell_front(self) -> None:
        # Pages, and the pointer on the figures; what is in front of them asks a question.
        if tell := getattr(self.front, "tell", None):
            tell()

    @on(Said)
    def _show_progress(self, event: Said) -> None:
        self.dashboard.tell_note("action", event.text)

    @on(Ended)
    def _show_outcome(self, event: Ended) -> None:
        self._rhythm.poke()
        self._jobs.ended(event)

    def _fatal_error(self) -> None:
        """A fault of the console itself. Textual would print a traceback with every local variable, keys among them."""
        self.panic("\n".join(crash_report(self.services.paths, self._exception)))

    async def on_unmount(self) -> None:
        """Let go of the driver."""
        self.sources.close()
