"""The one screen on which the console lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Resize
from textual.screen import Screen

from console import units
from console.metrics.reading import Reading
from console.server.status import ServerStatus, State
from console.tui import drawings, figures, preset_lines, run_lines, stories
from console.tui.commands import footer
from console.tui.log_lines import pretty
from console.tui.messages import (
    CardsSeen,
    CatalogSeen,
    LogSeen,
    PollFailed,
    ReadingLost,
    ReadingSeen,
    RunSeen,
    StatusSeen,
)
from console.tui.widgets.cards import Cards
from console.tui.widgets.footer import KeyLine
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Line, Lines
from console.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.lab.view import RunView
    from console.tui.situation import Situation

VIEWS = ("presets", "run")
_WIDE, _TALL = 120, 34
_TIMED = 60
"""A log narrower than this leaves out the time of its lines."""
_FRAME_S = 1.0
_OLD_S = 6.0
"""A source silent for longer is stale: its figures are greyed."""


class Dashboard(Screen[None]):
    """Header, cards, figures, and below them presets, A/B run and log: all at once where they fit, else in turns."""

    # Textual declares these as plain attributes of a screen, so they cannot be marked as the class's own.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]  # noqa: RUF012

    def __init__(self, *, simulated: bool, default_preset: str) -> None:
        super().__init__(id="dashboard")
        self._default_preset = default_preset
        self._simulated = simulated
        self._status = ServerStatus()
        self._entries: list[preset_lines.Entry] = []
        self._selected = 0
        self._run: RunView | None = None
        self._log: tuple[str, ...] = ()
        self._log_path: str | None = None
        self._cards_at: float | None = None
        self._view = "presets"
        self._notes: dict[str, str] = {}
        self._painted: set[str] = set()
        self._pending: dict[str, Callable[[], None]] = {}

    def compose(self) -> ComposeResult:
        # Textual sets these only after a first layout, which would be painted and thrown away.
        width, height = self.app.size
        self.add_class("-wide" if width >= _WIDE else "-narrow", "-tall" if height >= _TALL else "-short")
        yield Form(drawings.HEADER, id="header")
        yield Cards(id="cards")
        yield Form(drawings.READING, id="reading")
        yield Panel("", id="story")
        with Container(id="lower"):
            yield Panel("presets", id="presets")
            yield Panel("A/B", id="run", join="┬")
            yield Panel("log", id="log", join="┬", end=True)
        yield Lines(id="notice")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        """The frame before anything is known."""
        self._show_reading(Reading())
        self.set_interval(2.0, self._look_at_the_clock)
        self.set_interval(_FRAME_S, self._paint)

    def on_resize(self, _: Resize) -> None:
        """Panels fold or unfold; their texts are cut anew once they have their size."""
        self._fold()
        self.call_after_refresh(self._draw_lower)

    # --- what the app knows, told downwards

    def tell_situation(self, now: Situation) -> None:
        """Keys that make sense, and what this console is doing."""
        self.query_one("#keys", KeyLine).tell(footer(now))

    def tell_note(self, source: str, text: str) -> None:
        """One line above the keys for what is going on or wrong; an empty text takes it back."""
        before = dict(self._notes)
        self._notes.pop(source, None)
        if text:
            self._notes[source] = text
        if before != self._notes:
            newest = list(self._notes.values())[-1:]
            self.query_one("#notice", Lines).show([((" ▸ ", "strong"), (text, "warn")) for text in newest])

    def next_view(self) -> None:
        """The other half of the lower area, where both do not fit."""
        self._view = VIEWS[(VIEWS.index(self._view) + 1) % len(VIEWS)]
        self._fold()
        self.call_after_refresh(self._draw_lower)

    # --- what the user looks at

    @property
    def selected(self) -> preset_lines.Entry | None:
        """What is under the cursor."""
        return self._entries[self._selected] if self._entries else None

    def move(self, by: int) -> None:
        """Move the cursor; it stops at the ends."""
        self.select(max(0, min(len(self._entries) - 1, self._selected + by)))

    def select(self, index: int) -> None:
        """Put the cursor on an entry; a number without one does nothing."""
        if 0 <= index < len(self._entries):
            self._selected = index
            self._draw_presets()

    @property
    def run_shown(self) -> RunView | None:
        """The A/B run on the screen."""
        return self._run

    @property
    def log_shown(self) -> tuple[str | None, tuple[str, ...]]:
        """Path and lines of the log."""
        return self._log_path, self._log

    @property
    def simulated(self) -> bool:
        """Whether any figure on this screen is."""
        return self._simulated or self._status.simulated

    # --- what the pollers saw

    @on(StatusSeen)
    def _show_status(self, event: StatusSeen) -> None:
        """Header, and the story that stands in place of the figures while there are none."""
        self._status = status = event.status
        header = self.query_one("#header", Form)
        for name, text, tone in figures.header(status, simulated=self.simulated, elapsed_s=status.uptime_s):
            header.show(name, text, tone)
        self.tell_note("status", status.note or "")
        self._tell_story()
        self._draw_presets()

    @on(CatalogSeen)
    def _show_presets(self, event: CatalogSeen) -> None:
        """The cursor stays on its preset; at first it is on the one that runs, else on the default."""
        wanted = self.selected.name if self.selected else self._status.preset or self._default_preset
        self._entries = preset_lines.entries(event.catalog)
        names = [entry.name for entry in self._entries]
        self._selected = names.index(wanted) if wanted in names else 0
        self._draw_presets()

    @on(RunSeen)
    def _show_run(self, event: RunSeen) -> None:
        """A run that begins comes into view by itself."""
        known = self._run.id if self._run else None
        self._run = event.run
        if event.live and event.run and event.run.id != known:
            self._view = "run"
            self._fold()
        self._draw_run()

    @on(PollFailed)
    def _show_failed_poll(self, event: PollFailed) -> None:
        self.tell_note(event.source, f"{event.source}: {event.error}")

    def _in_a_frame(self, name: str, paint: Callable[[], None]) -> None:
        """Figures that tick are painted together, once a second: one pass of the compositor instead of three."""
        if name in self._painted:
            self._pending[name] = paint
        else:
            self._painted.add(name)
            paint()

    def _paint(self) -> None:
        pending, self._pending = self._pending, {}
        for paint in pending.values():
            paint()

    @on(CardsSeen)
    def _show_cards(self, event: CardsSeen) -> None:
        self._cards_at = time.monotonic()
        self._in_a_frame("cards", partial(self._tell_cards, event.report))

    def _tell_cards(self, report: GpuReport) -> None:
        cards = self.query_one("#cards", Cards)
        cards.set_class(False, "-stale")
        cards.tell(report)

    @on(ReadingSeen)
    def _show_fresh(self, event: ReadingSeen) -> None:
        self._in_a_frame("reading", partial(self._tell_fresh, event.reading or Reading()))

    def _tell_fresh(self, reading: Reading) -> None:
        self.query_one("#reading").set_class(False, "-stale")
        self.tell_note("reading", "")
        self._show_reading(reading)

    @on(ReadingLost)
    def _show_stale(self, event: ReadingLost) -> None:
        self._pending.pop("reading", None)
        self.query_one("#reading").set_class(True, "-stale")
        age = "no figures yet" if event.age_s is None else f"figures are {figures.coarse(event.age_s)} old"
        self.tell_note("reading", f"{age}: {event.error.what} ({event.error.why})")

    @on(LogSeen)
    def _show_log(self, event: LogSeen) -> None:
        self._log, self._log_path = event.lines, event.path
        self._in_a_frame("log", self._draw_log)

    def _look_at_the_clock(self) -> None:
        """A source that hangs sends nothing: its silence is what tells."""
        silent = None if self._cards_at is None else time.monotonic() - self._cards_at
        if silent is not None and silent > _OLD_S:
            self.query_one("#cards").set_class(True, "-stale")
            self.tell_note("cards", f"the cards have not answered for {figures.coarse(silent)}")
        else:
            self.tell_note("cards", "")

    # --- drawing

    def _show_reading(self, reading: Reading) -> None:
        form = self.query_one("#reading", Form)
        for name, text, tone in figures.reading(reading):
            form.show(name, text, tone)

    def _tell_story(self) -> None:
        status, story = self._status, self.query_one("#story", Panel)
        starting = status.state is State.STARTING
        trouble = status.diagnosis if status.state in (State.FAILED, State.STALLED) else None
        self.set_class(starting or trouble is not None, "-story")
        if trouble is not None:
            height = max(story.body_height, 8)
            body = stories.diagnosis_story(trouble, self.size.width - 3, height)
            story.tell(stories.trouble_title(status), body)
        elif starting:
            story.tell(stories.start_title(status), stories.start_story(status), stories.elapsed(status))

    @property
    def _roomy(self) -> bool:
        return self.has_class("-wide") and self.has_class("-tall")

    def _fold(self) -> None:
        """Which panels of the lower area are there, and how they meet."""
        self.set_class(self._view == "run" and not self._roomy, "-run")
        self.query_one("#run", Panel).join("┬" if self._roomy else "")
        self.query_one("#log", Panel).join("" if self._roomy else "┬")

    def _draw_lower(self) -> None:
        self._tell_story()
        self._draw_presets()
        self._draw_run()
        self._draw_log()

    def _draw_presets(self) -> None:
        panel = self.query_one("#presets", Panel)
        body = preset_lines.preset_lines(
            self._entries, self._selected, self._status, width=panel.body_width - 1, height=panel.body_height
        )
        panel.tell("presets", body)

    def _draw_run(self) -> None:
        panel = self.query_one("#run", Panel)
        run = self._run
        body = run_lines.run_lines(run, panel.body_width - 1) if run else run_lines.nothing()
        panel.tell(run_lines.title(run), body, "tab presets and log" if self.has_class("-run") else "")

    def _draw_log(self) -> None:
        panel = self.query_one("#log", Panel)
        lines: list[Line] = [
            pretty(text, timed=panel.body_width > _TIMED) for text in self._log[-max(1, panel.body_height) :]
        ]
        empty: list[Line] = [((units.NA if self._log_path else "no server has run yet", "dim"),)]
        panel.tell("log", lines or empty, "tab A/B" if self._run and not self._roomy else "")
