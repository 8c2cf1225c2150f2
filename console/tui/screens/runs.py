"""The A/B runs, newest first: a list on top, below it the chosen one with nothing left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from console.tui import run_lines
from console.tui.adopting import adopt
from console.tui.commands import Bindings
from console.tui.screens.live import LivePage
from console.tui.widgets.footer import Key
from console.tui.widgets.lines import Line, line

if TYPE_CHECKING:
    from console.lab.view import RunView
    from console.tui.app import ConsoleApp

_EVERY_S = 1.0
_LISTED = 6
"""Rows of the list: the chosen run and its neighbours."""


class RunsPage(LivePage[tuple["RunView", ...]]):
    """`<` and `>` choose a run, `o` adopts what its verdict advises."""

    BINDINGS: ClassVar[Bindings] = [
        Binding("less_than_sign,comma,shift+tab", "other(1)", show=False),
        Binding("greater_than_sign,full_stop,tab", "other(-1)", show=False),
        Binding("o", "adopt", show=False, id="adopt"),
    ]
    KEYS = (
        ("esc", "back", True, 0),
        ("< >", "older, newer run", True, 0),
        ("o", "adopt", True, 0),
        ("x", "stop run", True, 1),
        ("↑↓", "line", True, 3),
        ("pgup pgdn", "page", True, 1),
        ("/", "find", True, 2),
        ("w", "write", True, 2),
    )

    def __init__(self, app: ConsoleApp) -> None:
        self._shows = app
        self._chosen: str | None = None
        super().__init__(
            "details", "A/B runs", app.sources.runs.listed, self._page, every_s=_EVERY_S, simulated=app.simulated
        )

    def _page(self, runs: tuple[RunView, ...], width: int) -> Sequence[Line]:
        run = self._run
        if run is None:
            return run_lines.nothing()
        at = runs.index(run)
        first = max(0, min(at - _LISTED // 2, len(runs) - _LISTED))
        self.tell_keys()
        rows = [run_lines.listed(one, width, chosen=one is run) for one in runs[first : first + _LISTED]]
        if len(runs) > _LISTED:
            rows.append(line(f"{at + 1} of {len(runs)} runs", "dim"))
        return [*rows, (), line(run_lines.title(run), "title"), *run_lines.full(run, width)]

    @property
    def _run(self) -> RunView | None:
        """The chosen run, else the newest."""
        runs = self._seen or ()
        return next((run for run in runs if run.id == self._chosen), runs[0] if runs else None)

    def offered(self) -> Sequence[Key]:
        """Only what the chosen run, or the one that lives, makes sense of."""
        run = self._run
        refused = {"o": not (run and run_lines.winner(run)), "x": not self._shows.situation.run}
        refused["< >"] = len(self._seen or ()) < 2
        return [key for key in self.KEYS if not refused.get(key[0])]

    def action_other(self, by: int) -> None:
        """An older or a newer one."""
        run, runs = self._run, self._seen or ()
        if run is not None:
            self._chosen = runs[max(0, min(len(runs) - 1, runs.index(run) + by))].id
            self._top = 0
            self.tell()

    def action_adopt(self) -> None:
        """Write the arm that its verdict advises as a preset."""
        run = self._run
        if run and run_lines.winner(run):
            self.dismiss(None)
        adopt(self._shows, run)
