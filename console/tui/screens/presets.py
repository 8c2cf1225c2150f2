"""The presets, one after the other, each from all sides; from here one is started."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding

from console.errors import ConsoleError
from console.tui.commands import Bindings, by_name
from console.tui.preset_lines import Entry
from console.tui.preset_page import Inspection, preset_page
from console.tui.screens.live import LivePage
from console.tui.widgets.footer import Key
from console.tui.widgets.lines import Line

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

_STANDS_S = 3600.0
"""A preset does not change while one looks at it."""


class PresetsPage(LivePage[Inspection]):
    """One preset in full; `<` and `>` lead to the others, and the dashboard's cursor goes along."""

    BINDINGS: ClassVar[Bindings] = [
        Binding("less_than_sign,comma,shift+tab", "other(-1)", show=False),
        Binding("greater_than_sign,full_stop,tab", "other(1)", show=False),
        Binding("enter,s", "start", show=False, id="start"),
        *(Binding(str(n), f"choose({n - 1})", show=False) for n in range(1, 10)),
    ]
    KEYS = (
        ("esc", "back", True, 0),
        ("< >", "other preset", True, 0),
        ("enter", "start", True, 0),
        ("↑↓", "line", True, 3),
        ("pgup pgdn", "page", True, 1),
        ("/", "find", True, 2),
        ("w", "write", True, 2),
        ("y", "copy", True, 2),
    )

    def __init__(self, app: ConsoleApp) -> None:
        self._shows = app
        super().__init__("preset", self._heading, self._inspect, self._page, every_s=_STANDS_S, simulated=app.simulated)

    @property
    def _entries(self) -> Sequence[Entry]:
        return self._shows.dashboard.lower.entries

    @property
    def _heading(self) -> str:
        lower = self._shows.dashboard.lower
        name = lower.selected.name if lower.selected else "preset"
        return f"{name} · {lower.cursor + 1} of {len(self._entries)} presets"

    def _inspect(self) -> Inspection:
        entry = self._shows.dashboard.lower.selected
        if entry is None or entry.preset is None:
            raise entry.error if entry and entry.error else ConsoleError("no preset is selected")
        # As it is written now: the list is read only now and then.
        found = self._shows.services.catalog()
        broken = next((problem.error for problem in found.problems if problem.name == entry.name), None)
        if broken is not None:
            raise broken
        return self._shows.services.inspect(found.presets.get(entry.name) or entry.preset)

    def _page(self, found: Inspection, width: int) -> Sequence[Line]:
        return preset_page(found, width)

    def offered(self) -> Sequence[Key]:
        """What `enter` would come to, if anything."""
        now = self._shows.situation
        word = "switch" if now.alive else "start"
        keys = [(key, word if key == "enter" else what, yes, rank) for key, what, yes, rank in self.KEYS]
        # What is wrong with one that cannot start stands on the page itself.
        useless = now.broken or now.lacking or by_name("start").guard(now) is not None
        refused = {"enter": useless, "< >": len(self._entries) < 2}
        return [key for key in keys if not refused.get(key[0])]

    def action_other(self, by: int) -> None:
        """The next one, or the one before."""
        self.action_choose((self._shows.dashboard.lower.cursor + by) % max(1, len(self._entries)))

    def action_choose(self, index: int) -> None:
        """The one of that number."""
        if index < len(self._entries):
            self._shows.dashboard.lower.select(index)
            self._shows.know()
            self.tell_keys()
            self.look_at(self._inspect, self._heading)

    def action_start(self) -> None:
        """Back to the dashboard, where its start is seen."""
        self.dismiss(None)
        self._shows.call_later(partial(self._shows.carry_out, by_name("start")))
