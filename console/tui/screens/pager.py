"""Lines over the whole screen: the log, an A/B run in full."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.events import Resize
from textual.widgets import Input

from console import units
from console.tui.commands import Bindings
from console.tui.keycaps import cap
from console.tui.screens.page import Page
from console.tui.search import errors, found_in, marked, next_line, part_of, text_of
from console.tui.widgets.footer import Key, KeyLine
from console.tui.widgets.lines import Line
from console.tui.widgets.panel import Panel

_FOUND_KEYS = (
    ("esc", "all again", True, 0),
    ("n N", "next, previous", True, 0),
    ("&", "only these, all", True, 0),
    ("/", "find", True, 0),
)
_COMMANDS = {"w": "write", "y": "copy", "x": "stop", "o": "adopt", "enter": "start"}
"""Keys of pages that are those of commands."""
_ASKED = "find; capitals count where you type one"
_FRAME = 8
"""Cells of a rule around its title and what stands at the right."""
_FAR = 1_000_000
_ASIDE = 20
"""Cells that a key moves long lines sideways."""
Rows = Callable[[Line, int], Sequence[Line]]
Content = Callable[[int], tuple[str, Sequence[Line]]]
"""Width in cells → title and lines."""


def _one(line: Line, _width: int) -> Sequence[Line]:
    """A line that was cut to the width already."""
    return (line,)


class Pager(Page):
    """A window on lines that may grow; at their end it follows them, elsewhere it stands still.

    Args:
        page: the command that opens it, whose key closes it again.
        content: asked whenever something changed.
        rows: a line and the width in cells → its rows, where lines are longer than the screen; they are found whole.
        follow: begin at the end.
        simulated: the figures are the stand-in engine's.
    """

    BINDINGS: ClassVar[Bindings] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,b", "page(-1)", show=False),
        Binding("pagedown,space", "page(1)", show=False),
        Binding("home", f"move(-{_FAR})", show=False),
        Binding("end", f"move({_FAR})", show=False),
        Binding("slash", "find", show=False),
        Binding("n", "found(1)", show=False),
        Binding("N", "found(-1)", show=False),
        Binding("ampersand", "only", show=False),
        Binding("exclamation_mark", "error", show=False),
        Binding("z", "wrap", show=False),
        Binding("right", f"aside({_ASIDE})", show=False),
        Binding("left", f"aside(-{_ASIDE})", show=False),
    ]

    KEYS: ClassVar[tuple[Key, ...]] = (
        ("esc", "back", True, 0),
        ("↑↓", "line", True, 4),
        ("pgup pgdn", "page", True, 1),
        ("home end", "first, last", True, 3),
        ("/", "find", True, 0),
        ("!", "error", True, 1),
        ("z", "cut lines", True, 1),
        ("w", "write", True, 2),
        ("y", "copy", True, 2),
    )
    """What may stand in the footer."""

    def __init__(
        self, page: str, content: Content, *, rows: Rows = _one, follow: bool = False, simulated: bool
    ) -> None:
        super().__init__(page)
        self._panel = Panel("", id="page")
        self._find = Input(id="find", placeholder=_ASKED, compact=True)
        # Else it has the keys before it is seen.
        self._find.display = False
        self._keys = KeyLine(id="keys")
        self._content = content
        self._rows_of = rows
        self._follows = follow
        self._top: int | None = None if follow else 0
        self._before = self._top
        """Where one was when the search began."""
        self._at = -1
        """The line to which the last search led."""
        self._led_to: Line = ()
        self._needle = ""
        self._only = False
        self._wraps = True
        self._left = 0
        """Cells by which lines that are not wrapped are moved aside."""
        self._simulated = simulated
        self._lines: Sequence[Line] = ()
        self._rows: Sequence[Line] = ()
        """What stands there of them, longer lines over several rows."""
        self._first: Sequence[int] = ()
        """Of each line its first row."""

    def compose(self) -> ComposeResult:
        yield self._panel
        yield self._find
        yield self._keys

    def on_mount(self) -> None:
        """Nothing is looked for yet."""
        self._find.display = False
        self.tell_keys()

    def offered(self) -> Sequence[Key]:
        """The keys that make sense here and now; an error is looked for in a log."""
        words = {} if self._wraps else {"z": "wrap lines", "↑↓": "line, ←→ aside"}
        keys = [(key, words.get(key, word), yes, rank) for key, word, yes, rank in self.KEYS]
        return [key for key in keys if self._follows or key[0] != "!"]

    def tell_keys(self) -> None:
        """The keys for what stands here now; what is a command has the key that the user gave it."""
        keys = _FOUND_KEYS if self._needle else self.offered()
        own = {key: cap(command) for key, command in _COMMANDS.items()}
        self._keys.tell((own.get(key, key), word, sensible, rank) for key, word, sensible, rank in keys)

    def on_resize(self, _: Resize) -> None:
        """Wrapped anew."""
        self.call_after_refresh(self.tell)

    def tell(self) -> None:
        """Something may have changed."""
        panel, needle = self._panel, self._needle
        title, lines = self._content(panel.body_width if self._wraps else _FAR)
        self._lines = [line for line in lines if found_in(line, needle)] if needle and self._only else lines
        self._lay_out(panel.body_width)
        self._keep_mark()
        top = self._last if self._top is None else min(self._top, self._last)
        shown = self._rows[top : top + panel.body_height]
        end = "end" if self._last or self._follows else "all"
        where = end if top == self._last else f"{top + len(shown)} of {len(self._rows)}"
        if self._left:
            where = f"from column {self._left + 1} · {where}"
        count = sum(found_in(line, needle) for line in lines) if needle else 0
        found = f"{count} with {needle!r}" if count else self._nowhere
        words = (found if needle else self._which_error, where)
        aside = " · ".join(word for word in (*words, "SIMULATED" if self._simulated else "") if word)
        # What stands at the right says that figures are simulated: it is the title that gives way.
        title = units.clip(title, max(8, panel.size.width - len(aside) - _FRAME))
        panel.tell(title, shown, aside, mark=self._first[self._at] - top if self._at >= 0 else -1)

    def _lay_out(self, width: int) -> None:
        """Lines to rows, with what was looked for standing out, also where a row ends within it."""
        rows: list[Line] = []
        first: list[int] = []
        for whole in self._lines:
            line = marked(whole, self._needle)
            first.append(len(rows))
            rows += self._rows_of(line, width) if self._wraps else (part_of(line, self._left),)
        self._rows, self._first = rows, first

    @property
    def _last(self) -> int:
        """The first row of the last screenful."""
        return max(0, len(self._rows) - self._panel.body_height)

    def action_page(self, by: int) -> None:
        """A page less one line."""
        self.action_move(by * max(1, self._panel.body_height - 1))

    def action_move(self, by: int) -> None:
        """Some lines; at the end it follows again."""
        self._at = -1
        self._go((self._last if self._top is None else self._top) + by)

    def _go(self, top: int) -> None:
        top = max(0, min(top, self._last))
        self._top = None if top == self._last and self._last else top
        self.tell()

    def action_wrap(self) -> None:
        """Long lines over several rows, or cut at the edge."""
        self._wraps, self._left = not self._wraps, 0
        self.tell_keys()
        self.tell()

    def action_aside(self, by: int) -> None:
        """Lines that are cut, moved aside."""
        self._wraps = False
        self._left = max(0, self._left + by)
        self.tell_keys()
        self.tell()

    def whole(self) -> Sequence[Line]:
        """All lines, or all with what was looked for."""
        return self._lines

    # --- finding

    def action_find(self) -> None:
        """Ask what for; it is looked for while it is typed."""
        self._find.display = True
        self._find.value = ""
        self._before = self._top
        self._find.focus()

    @on(Input.Changed)
    def _look_for(self, event: Input.Changed) -> None:
        event.stop()
        if self._find.display:
            self._needle, self._at, self._top = event.value, -1, self._before
            self._jump(self._with_it(), 1) if self._needle else self.tell()

    @on(Input.Submitted)
    def _found(self, event: Input.Submitted) -> None:
        event.stop()
        self._end_typing()

    def _end_typing(self) -> None:
        self._find.display = False
        self.set_focus(None)
        self.tell_keys()
        self.tell()

    async def action_found(self, by: int) -> None:
        """The next line with it; without a search the key means what it means on every page."""
        if self._needle and self._nothing_found():
            return
        if self._needle:
            self._jump(self._with_it(), by)
        elif by > 0:
            await self.app.run_action("command('notices', '')")

    def action_only(self) -> None:
        """Only the lines with it, or all again."""
        if not self._needle:
            self.say("nothing is looked for: / finds text")
        elif self._only or not self._nothing_found():
            self._only = not self._only
            self.tell()

    def _with_it(self) -> list[bool]:
        return [found_in(line, self._needle) for line in self._lines]

    def _nothing_found(self) -> bool:
        """Whether no line has what is looked for; then that is said."""
        if any(self._with_it()):
            return False
        self.say(self._nowhere)
        return True

    @property
    def _nowhere(self) -> str:
        """That it is in no line, or only where one sentence goes on in the next row."""
        prose: Line = ((" ".join(text_of(line).strip() for line in self._lines), ""),)
        over = found_in(prose, self._needle)
        return f"{self._needle!r} stands over the end of a row" if over else f"no line has {self._needle!r}"

    def action_error(self) -> None:
        """The next line at which something bad begins."""
        wanted = errors(self._lines)
        if not any(wanted):
            self.say("no line here tells of an error")
        self._jump(wanted, 1)

    @property
    def _which_error(self) -> str:
        """`error 2 of 7`, where one was led to."""
        wanted = errors(self._lines) if self._at >= 0 else []
        return f"error {sum(wanted[: self._at + 1])} of {sum(wanted)}" if wanted and wanted[self._at] else ""

    def _jump(self, wanted: Sequence[bool], by: int) -> None:
        """Bring the nearest such line into view, and remember it for the next jump."""
        top = self._last if self._top is None else self._top
        start = self._at if self._at >= 0 else bisect_left(self._first, top) - 1
        at = next_line(self._lines, wanted, start, by)
        if at is None:
            self.tell()
            return
        self._at, self._led_to = at, self._lines[at]
        row = self._first[at]
        visible = top <= row < top + self._panel.body_height
        self._go(top if visible else row - self._panel.body_height // 3)

    def _keep_mark(self) -> None:
        """The line that was led to, where it is now: a log that grows drops its first lines."""
        if self._at >= 0 and self._lines[self._at : self._at + 1] != [self._led_to]:
            self._at = next((i for i, line in enumerate(self._lines) if line == self._led_to), -1)

    def action_close(self) -> None:
        """First the search ends, then the page."""
        if self._find.display or self._needle:
            self._needle, self._only, self._at = "", False, -1
            self._end_typing()
        else:
            super().action_close()
