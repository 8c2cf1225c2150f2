"""The one screen on which the console lives."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen

from console.metrics.reading import Reading
from console.server.status import ServerStatus, State
from console.tui import drawings, figures, notice_lines, preset_lines, sizes, stories
from console.tui.commands import Bindings, KeyMap, bindings, footer
from console.tui.messages import (
    CardsSeen,
    CatalogSeen,
    LogSeen,
    NoticesSeen,
    PollFailed,
    ReadingLost,
    ReadingSeen,
    RunSeen,
    StatusSeen,
)
from console.tui.screens.lower import Lower
from console.tui.screens.story import Story
from console.tui.silences import Silences, refused
from console.tui.ticking import Ticking
from console.tui.widgets.cards import Cards
from console.tui.widgets.footer import KeyLine
from console.tui.widgets.form import Form
from console.tui.widgets.lines import Lines
from console.tui.widgets.notes import Notes

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.notices import Notice
    from console.presets import Preset
    from console.series import Series
    from console.tui.situation import Situation
    from console.tui.widgets.graphs import Graphs

_SURE_S = 3.0
"""Figures younger than this are not called old: the next look may say that the server was stopped on purpose."""
_FRAME_S = 1.0
_SERVING = (State.READY, State.FOREIGN)


class Dashboard(Screen[None]):
    """Header, cards, figures, and below them presets, A/B run and log: all at once where they fit, else in turns."""

    BINDINGS: ClassVar[Bindings] = [*bindings(), Binding("escape", "app.forget_told", show=False)]

    class Up(Message):
        """All parts are there."""

    class Painted(Message):
        """Other figures stand on the screen."""

    def __init__(
        self, *, simulated: bool, default_preset: str, watched: str | None = None, keys: KeyMap | None = None
    ) -> None:
        super().__init__(id="dashboard")
        self._header = Form(drawings.HEADER, id="header")
        self._cards = Cards(id="cards")
        self._reading = Form(drawings.READING, other=drawings.LOW_READING, id="reading")
        self._side: Graphs | None = None
        """Graphs beside the figures, on a vast screen; made when there is one."""
        self._story = Story("", id="story")
        self._tiny = Lines(id="tiny")
        self.lower = Lower(default_preset=default_preset)
        self._standing = Lines(id="standing")
        self._notice = Notes(id="notice")
        self._keys = KeyLine(id="keys")
        self._simulated = simulated
        self._status = ServerStatus()
        self._watched = watched
        self._key_map = keys or {}
        self._intended = False
        """Whether this console or a run is at work on the server: that it goes away is no fault then."""
        self._back: Preset | None = None
        self.reading = Reading()
        """The figures on the screen."""
        self.report: GpuReport | None = None
        """The cards on the screen."""
        self._silences = Silences()
        self._refused = False
        """Whether the server's port took no connection at the last look."""
        self._ticking = Ticking()
        self.notices: tuple[Notice, ...] = ()
        """What stands, the worst first."""

    def compose(self) -> ComposeResult:
        # Textual sets its own breakpoints only after a first layout, which would be painted and thrown away.
        self._show_reading(Reading())
        if self._watched:
            self._show_header()
        self._fit(self.app.size)
        yield self._tiny
        yield self._header
        yield self._cards
        with Horizontal(id="middle"):
            yield self._reading
            yield self._story
        yield self.lower
        yield self._standing
        yield self._notice
        yield self._keys

    def on_mount(self) -> None:
        """The frame before anything is known."""
        self.post_message(self.Up())
        self.set_interval(2.0, self._look_at_the_clock)
        self.set_interval(_FRAME_S, self.paint)

    def on_resize(self, event: Resize) -> None:
        """What stands in place of the figures is wrapped anew once it has its size."""
        self._fit(event.size)
        self._tell_standing()
        self._notice.draw()
        self.call_after_refresh(self._tell_server)

    def _fit(self, size: Size) -> None:
        fits = sizes.classes(*size)
        for name, holds in fits.items():
            self.set_class(holds, name)
        self._reading.use_other(fits["-low"])
        if fits["-tiny"]:
            self._tiny.show(stories.too_small((size.width, size.height), sizes.LEAST))

    def _side_graphs(self) -> Graphs:
        if self._side is None:
            from console.tui.graphs import MEASURES
            from console.tui.widgets.graphs import Graphs

            self._side = Graphs(MEASURES, id="side")
            self.query_one("#middle").mount(self._side)
        return self._side

    # --- what the app knows, told downwards

    def tell_situation(self, now: Situation) -> None:
        """Keys that make sense, and what this console is doing."""
        self._intended = bool(now.acting or now.run)
        self._keys.tell(footer(now, self._key_map))

    def tell_rings(self, rings: Callable[[str], Series]) -> None:
        """A second more of every figure, for the graphs."""
        if self.is_current:
            self.lower.tell_rings(rings, self.report)
            if self.has_class("-vast"):
                self._side_graphs().tell(rings, self.report)

    def tell_note(self, source: str, text: str) -> None:
        """One line above the keys for what is going on or wrong; an empty text takes it back."""
        self._notice.tell(source, text)

    @property
    def forms(self) -> tuple[Form, ...]:
        """Where figures stand: the cards first, the reading last."""
        return (*self._cards.rows, self._reading)

    @property
    def simulated(self) -> bool:
        """Whether any figure on this screen is."""
        return self._simulated or self._status.simulated

    # --- what the pollers saw

    @on(StatusSeen)
    def _show_status(self, event: StatusSeen) -> None:
        """Header, and the story that stands in place of the figures while there are none."""
        status, before = event.status, self._status
        self._status, self._back = status, event.back
        self._hear("status", "" if self._unreachable else status.note or "")
        if (status.pid, status.url) != (before.pid, before.url):
            self._refused = False
            self._doubt_cards()
        self._header.set_old(self._refused and status.state in _SERVING)
        self._tell_server()
        self.lower.tell_status(status)

    def _doubt_cards(self) -> None:
        """Simulated cards are those of a server: what stands here is of one that may be gone."""
        if self._simulated:
            self._ticking.drop("cards")
            self._cards.set_old(True)

    def _show_header(self) -> None:
        room, arm = self._header.room("preset"), self.lower.arm(self._status.preset)
        shown = figures.header(self._status, simulated=self.simulated, watched=self._watched, arm=arm, room=room)
        for name, text, tone in shown:
            self._header.show(name, text, tone)

    @property
    def _unreachable(self) -> bool:
        """Whether a watched server does not answer."""
        return self._watched is not None and self._status.state is State.STOPPED and self._status.url is not None

    @on(CatalogSeen)
    def _show_presets(self, event: CatalogSeen) -> None:
        self.tell_note("presets", "")
        self.lower.tell_presets(preset_lines.entries(event.catalog))

    @on(RunSeen)
    def _show_run(self, event: RunSeen) -> None:
        self.tell_note("run", "")
        self.lower.tell_run(event.run, live=event.live)
        self._show_header()

    @on(LogSeen)
    def _show_log(self, event: LogSeen) -> None:
        self.tell_note("log", "")
        self.lower.tell_log(event.path, event.lines)
        self._ticking.add("log", self.lower.draw_log)

    @on(NoticesSeen)
    def _show_notices(self, event: NoticesSeen) -> None:
        if event.notices != self.notices:
            self.notices = event.notices
            self._tell_standing()

    def _tell_standing(self) -> None:
        tall = self.has_class("-tall")
        self._standing.show(notice_lines.standing(self.notices, self.size.width, tall=tall))

    @on(PollFailed)
    def _show_failed_poll(self, event: PollFailed) -> None:
        self.tell_note(event.source, f"{event.source}: {event.error}")

    def _hear(self, source: str, note: str = "") -> None:
        """A source has answered."""
        self._silences.hear(source)
        self.tell_note(source, note)

    def paint(self) -> None:
        """Print what has come in since the last frame."""
        self._ticking.paint()

    @on(CardsSeen)
    def _show_cards(self, event: CardsSeen) -> None:
        self._hear("cards")
        self._ticking.add("cards", partial(self._tell_cards, event.report))

    def _tell_cards(self, report: GpuReport) -> None:
        self.report = report
        self._cards.set_old(False)
        self._cards.tell(report)
        self.post_message(self.Painted())

    @on(ReadingSeen)
    def _show_fresh(self, event: ReadingSeen) -> None:
        self._ticking.add("reading", partial(self._tell_fresh, event.reading or Reading()))

    def _tell_fresh(self, reading: Reading) -> None:
        self._refused = False
        self._reading.set_old(False)
        self.tell_note("reading", "")
        self._show_reading(reading)
        self.post_message(self.Painted())

    @on(ReadingLost)
    def _show_stale(self, event: ReadingLost) -> None:
        self._ticking.drop("reading")
        self._reading.set_old(True)
        moving = self._status.state not in _SERVING
        if not (self._intended or moving) and refused(event.error):
            # Nobody listens on its port any more: until its state is known, what stands here is doubtful.
            self._refused = True
            self._header.set_old(True)
            self._doubt_cards()
        if self._intended or moving or (event.age_s is not None and event.age_s < _SURE_S):
            return
        age = "no figures yet" if event.age_s is None else f"figures are {figures.coarse(event.age_s)} old"
        self.tell_note("reading", f"{age}: {event.error.what} ({event.error.why})")

    def _look_at_the_clock(self) -> None:
        for source, told in self._silences.look():
            (self._cards if source == "cards" else self._header).set_old(True)
            self.tell_note(source, told)

    # --- drawing

    def _show_reading(self, reading: Reading) -> None:
        self.reading = reading
        for name, text, tone in figures.reading(reading):
            self._reading.show(name, text, tone)

    def _tell_server(self) -> None:
        self._show_header()
        told = self._story.tell_status(self._status, self._back, unreachable=self._unreachable)
        self.set_class(told, "-story")
