"""The lower part of the dashboard: presets, A/B run and log, all at once where they fit, else in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Container
from textual.events import Resize

from console.server.status import ServerStatus, State
from console.tui import preset_lines, run_lines
from console.tui.graphs import MEASURES
from console.tui.keycaps import cap
from console.tui.log_lines import no_log, pretty
from console.tui.widgets.graphs import Graphs
from console.tui.widgets.lines import Line, line
from console.tui.widgets.panel import Panel

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.lab.view import RunView
    from console.series import Series

_TOLD_BY_LOG = (State.STARTING, State.STOPPING, State.FAILED)
"""In these the log tells more than the graphs."""
_TIMED = 60
"""A log narrower than this leaves out the time of its lines."""


class Lower(Container):
    """Three panels and what stands in them: the list with its cursor, the run, the log."""

    def __init__(self, *, default_preset: str) -> None:
        super().__init__(id="lower", classes="-graphs")
        self._presets = Panel("presets", id="presets")
        self._run_panel = Panel("A/B", id="run", join="┬")
        self._log_panel = Panel("log", id="log", join="┬", end=True)
        self._graphs = Graphs(MEASURES, id="graphs")
        self._default_preset = default_preset
        self._status = ServerStatus()
        self._seen = False
        self._entries: list[preset_lines.Entry] = []
        self._cursor = 0
        self._awaited = ""
        self._moved = False
        """Whether the user has moved the cursor."""
        self.run: RunView | None = None
        """The A/B run on the screen."""
        self._live = False
        self.log_path: str | None = None
        self.log_text: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield self._presets
        yield self._run_panel
        if self._roomy:
            yield self._graphs
        yield self._log_panel

    # --- what stands there

    def tell_status(self, status: ServerStatus) -> None:
        """Which preset runs."""
        # A vast screen has the graphs beside the figures.
        vast = self.screen.has_class("-vast")
        reads = vast or status.state in _TOLD_BY_LOG
        if reads != (vast or self._status.state in _TOLD_BY_LOG) or (vast and not self._seen):
            self._seen = True
            self.set_class(not reads, "-graphs")
        before, self._status = self._status.preset, status
        if not self._live or before is None:
            # Arms come and go, and what ran before comes back: none of it is the user's choice.
            self._go_along(before, status.preset)
        self._draw_presets()
        if not self.log_text:
            self.draw_log()

    def _go_along(self, before: str | None, now: str | None) -> None:
        """The cursor begins on the preset that runs and goes along with it, unless the user has put it elsewhere."""
        there = self.selected is not None and self.selected.name == before
        names = [entry.name for entry in self._entries]
        if now != before and now in names and (there or not self._moved):
            self._cursor = names.index(now)

    def tell_presets(self, entries: list[preset_lines.Entry]) -> None:
        """The list; the cursor stays on its preset, at first it is on the one that runs, else on the default."""
        wanted = self.selected.name if self.selected else self._status.preset or self._default_preset
        if self.selected and wanted not in [entry.name for entry in entries]:
            # It stays where it was as long as the cursor does: what a key is about must not change by itself.
            entries = [*entries[: self._cursor], preset_lines.gone(wanted), *entries[self._cursor :]]
        names = [entry.name for entry in entries]
        self._entries = entries
        self._cursor = names.index(wanted) if wanted in names else 0
        self.await_preset(self._awaited)

    def await_preset(self, name: str) -> None:
        """Put the cursor on this preset, now or as soon as it is there."""
        names = [entry.name for entry in self._entries]
        self._awaited = "" if name in names else name
        if name in names:
            self._cursor, self._moved = names.index(name), True
        self._draw_presets()

    def tell_run(self, run: RunView | None, *, live: bool) -> None:
        """The run; one that begins comes into view by itself."""
        # A run's folder is there before its process is: the same run may be seen dead first and alive then.
        known = self._live and run is not None and self.run is not None and self.run.id == run.id
        began = live and run is not None and not known
        self.run, self._live = run, live
        if began:
            self._show_half(run=True)
        self._draw_run()

    def tell_rings(self, rings: Callable[[str], Series], report: GpuReport | None) -> None:
        """A second more of every figure."""
        if self._graphs.display and self._graphs.size:
            self._graphs.tell(rings, report)

    def tell_log(self, path: str | None, lines: tuple[str, ...]) -> None:
        """The log as far as it is kept."""
        self.log_path, self.log_text = path, lines

    # --- what the user does with it

    @property
    def entries(self) -> Sequence[preset_lines.Entry]:
        """The whole list."""
        return self._entries

    @property
    def cursor(self) -> int:
        """Which one is under the cursor."""
        return self._cursor

    @property
    def selected(self) -> preset_lines.Entry | None:
        """What is under the cursor."""
        return self._entries[self._cursor] if self._entries else None

    def move(self, by: int) -> None:
        """Move the cursor; it stops at the ends."""
        self.select(max(0, min(len(self._entries) - 1, self._cursor + by)))

    def select(self, index: int) -> None:
        """Put the cursor on an entry; a number without one does nothing."""
        if 0 <= index < len(self._entries):
            self._cursor, self._moved = index, True
            if not self._roomy and self.has_class("-run"):
                # The cursor must not move where nobody sees it.
                self._show_half(run=False)
            self._draw_presets()

    @property
    def hidden(self) -> str:
        """What `other_half` would bring into view; empty where everything is."""
        if not self.is_attached:
            return ""
        if not self._roomy:
            return "presets" if self.has_class("-run") else "run"
        if self.screen.has_class("-high") or self.screen.has_class("-vast"):
            return ""
        return "log pane" if self.has_class("-graphs") else "graphs"

    def arm(self, preset: str | None) -> str | None:
        """Which arm of the run that goes on a server of this preset is."""
        return self.run.arm if self.run and self._live and self.run.preset == preset else None

    def other_half(self) -> None:
        """What is hidden where not all fits."""
        if not self._roomy:
            self._show_half(run=not self.has_class("-run"))
        elif self.hidden:
            self.toggle_class("-graphs")
            self.call_after_refresh(self.draw)

    # --- drawing

    @property
    def _roomy(self) -> bool:
        return self.screen.has_class("-wide") and self.screen.has_class("-tall")

    def _show_half(self, *, run: bool) -> None:
        self.set_class(run, "-run")
        self.call_after_refresh(self.draw)

    def on_resize(self, _: Resize) -> None:
        """Panels fold or unfold; their texts are cut anew once they have their size."""
        if self._roomy and not self._graphs.is_attached:
            # A small terminal never shows them, and does without a dozen widgets.
            self.mount(self._graphs, before=self._log_panel)
        self._run_panel.join("┬" if self._roomy else "")
        self._log_panel.join("" if self._roomy else "┬")
        self.call_after_refresh(self.draw)

    def draw(self) -> None:
        """Everything anew, for the sizes that the panels have now."""
        self._draw_presets()
        self._draw_run()
        self.draw_log()
        self._graphs.beside(f"{cap('next_view')} log" if self.hidden == "log pane" else "")

    def _draw_presets(self) -> None:
        panel = self._presets
        size = {"width": panel.body_width - 1, "height": panel.body_height}
        aside = preset_lines.beyond(len(self._entries), self._cursor, panel.body_height)
        panel.tell("presets", preset_lines.preset_lines(self._entries, self._cursor, self._status, **size), aside)

    def _draw_run(self) -> None:
        panel, run = self._run_panel, self.run
        body = run_lines.run_lines(run, panel.body_width - 1) if run else run_lines.nothing()
        shown = run_lines.fitting(body, panel.body_height)
        tab = cap("next_view")
        aside = (
            f"{cap('details')} all" if len(shown) < len(body) else "",
            "" if self._roomy else f"{tab} presets and log",
        )
        panel.tell(run_lines.title(run), shown, " · ".join(word for word in aside if word))

    def draw_log(self) -> None:
        """The end of the log."""
        panel = self._log_panel
        timed, rows = panel.body_width > _TIMED, max(1, panel.body_height)
        lines: list[Line] = [pretty(text, timed=timed) for text in self.log_text[-rows:]]
        nothing: list[Line] = [line(no_log(self.log_path, self._status), "dim")]
        beyond = {"graphs": "graphs", "run": "A/B" if self.run else ""}.get(self.hidden, "")
        aside = f"{cap('next_view')} {beyond}" if beyond else ""
        panel.tell("log", lines or nothing, aside)
