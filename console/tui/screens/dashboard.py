"""The one screen on which the console lives."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen

from console.metrics.reading import Reading
from console.server.status import ServerStatus, State
from console.tui import drawings, figures, preset_lines, stories
from console.tui.commands import Bindings, bindings, footer
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
from console.tui.screens.lower import Lower
from console.tui.widgets.cards import Cards
from console.tui.widgets.footer import KeyLine
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Lines
from console.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.tui.situation import Situation

_WIDE, _TALL = 120, 34
_FRAME_S = 1.0
_OLD_S = 6.0
"""A source silent for longer is stale: its figures are greyed."""


class Dashboard(Screen[None]):
    """Header, cards, figures, and below them presets, A/B run and log: all at once where they fit, else in turns."""

    BINDINGS: ClassVar[Bindings] = bindings()

    class Up(Message):
        """All parts are there."""

    # Textual declares these as plain attributes of a screen, so they cannot be marked as the class's own.
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (_WIDE, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-short"), (_TALL, "-tall")]  # noqa: RUF012

    def __init__(self, *, simulated: bool, default_preset: str) -> None:
        super().__init__(id="dashboard")
        self._header = Form(drawings.HEADER, id="header")
        self._cards = Cards(id="cards")
        self._reading = Form(drawings.READING, id="reading")
        self._story = Panel("", id="story")
        self.lower = Lower(default_preset=default_preset)
        self._notice = Lines(id="notice")
        self._keys = KeyLine(id="keys")
        self._simulated = simulated
        self._status = ServerStatus()
        self._heard: dict[str, float] = {}
        self._notes: dict[str, str] = {}
        self._painted: set[str] = set()
        self._pending: dict[str, Callable[[], None]] = {}

    def compose(self) -> ComposeResult:
        # Textual sets these only after a first layout, which would be painted and thrown away.
        width, height = self.app.size
        self.add_class("-wide" if width >= _WIDE else "-narrow", "-tall" if height >= _TALL else "-short")
        yield self._header
        yield self._cards
        yield self._reading
        yield self._story
        yield self.lower
        yield self._notice
        yield self._keys

    def on_mount(self) -> None:
        """The frame before anything is known."""
        self._show_reading(Reading())
        self.post_message(self.Up())
        self.set_interval(2.0, self._look_at_the_clock)
        self.set_interval(_FRAME_S, self.paint)

    def on_resize(self, _: Resize) -> None:
        """What stands in place of the figures is wrapped anew once it has its size."""
        self.call_after_refresh(self._tell_story)

    # --- what the app knows, told downwards

    def tell_situation(self, now: Situation) -> None:
        """Keys that make sense, and what this console is doing."""
        self._keys.tell(footer(now))

    def tell_note(self, source: str, text: str) -> None:
        """One line above the keys for what is going on or wrong; an empty text takes it back."""
        before = dict(self._notes)
        self._notes.pop(source, None)
        if text:
            self._notes[source] = text
        if before != self._notes:
            newest = list(self._notes.values())[-1:]
            self._notice.show([((" ▸ ", "strong"), (text, "warn")) for text in newest])

    @property
    def simulated(self) -> bool:
        """Whether any figure on this screen is."""
        return self._simulated or self._status.simulated

    # --- what the pollers saw

    @on(StatusSeen)
    def _show_status(self, event: StatusSeen) -> None:
        """Header, and the story that stands in place of the figures while there are none."""
        self._hear("status", event.status.note or "")
        self._header.set_class(False, "-stale")
        self._status = status = event.status
        for name, text, tone in figures.header(status, simulated=self.simulated, elapsed_s=status.uptime_s):
            self._header.show(name, text, tone)
        self._tell_story()
        self.lower.tell_status(status)

    @on(CatalogSeen)
    def _show_presets(self, event: CatalogSeen) -> None:
        self.tell_note("presets", "")
        self.lower.tell_presets(preset_lines.entries(event.catalog))

    @on(RunSeen)
    def _show_run(self, event: RunSeen) -> None:
        self.tell_note("run", "")
        self.lower.tell_run(event.run, live=event.live)

    @on(LogSeen)
    def _show_log(self, event: LogSeen) -> None:
        self.tell_note("log", "")
        self.lower.tell_log(event.path, event.lines)
        self._in_a_frame("log", self.lower.draw_log)

    @on(PollFailed)
    def _show_failed_poll(self, event: PollFailed) -> None:
        self.tell_note(event.source, f"{event.source}: {event.error}")

    def _hear(self, source: str, note: str = "") -> None:
        """A source has answered."""
        self._heard[source] = time.monotonic()
        self.tell_note(source, note)

    def _in_a_frame(self, name: str, paint: Callable[[], None]) -> None:
        """Figures that tick are painted together, once a second: one pass of the compositor instead of three."""
        if name in self._painted:
            self._pending[name] = paint
        else:
            self._painted.add(name)
            paint()

    def paint(self) -> None:
        """Print what has come in since the last frame."""
        pending, self._pending = self._pending, {}
        for paint in pending.values():
            paint()

    @on(CardsSeen)
    def _show_cards(self, event: CardsSeen) -> None:
        self._hear("cards")
        self._in_a_frame("cards", partial(self._tell_cards, event.report))

    def _tell_cards(self, report: GpuReport) -> None:
        self._cards.set_class(False, "-stale")
        self._cards.tell(report)

    @on(ReadingSeen)
    def _show_fresh(self, event: ReadingSeen) -> None:
        self._in_a_frame("reading", partial(self._tell_fresh, event.reading or Reading()))

    def _tell_fresh(self, reading: Reading) -> None:
        self._reading.set_class(False, "-stale")
        self.tell_note("reading", "")
        self._show_reading(reading)

    @on(ReadingLost)
    def _show_stale(self, event: ReadingLost) -> None:
        self._pending.pop("reading", None)
        self._reading.set_class(True, "-stale")
        age = "no figures yet" if event.age_s is None else f"figures are {figures.coarse(event.age_s)} old"
        self.tell_note("reading", f"{age}: {event.error.what} ({event.error.why})")

    def _look_at_the_clock(self) -> None:
        """A source that hangs sends nothing: its silence is what tells."""
        now = time.monotonic()
        for source, part, what in (("status", self._header, "the server's state"), ("cards", self._cards, "the cards")):
            silent = now - self._heard.get(source, now)
            if silent > _OLD_S:
                part.set_class(True, "-stale")
                self.tell_note(source, f"{what}: no answer for {figures.coarse(silent)}, what stands here is old")

    # --- drawing

    def _show_reading(self, reading: Reading) -> None:
        for name, text, tone in figures.reading(reading):
            self._reading.show(name, text, tone)

    def _tell_story(self) -> None:
        status, story = self._status, self._story
        starting = status.state is State.STARTING
        trouble = status.diagnosis if status.state in (State.FAILED, State.STALLED) else None
        self.set_class(starting or trouble is not None, "-story")
        if trouble is not None:
            height = max(story.body_height, 8)
            body = stories.diagnosis_story(trouble, self.size.width - 3, height)
            story.tell(stories.trouble_title(status), body)
        elif starting:
            story.tell(stories.start_title(status), stories.start_story(status), stories.elapsed(status))
