"""Boxes over the dashboard: a question, an error with what, why and fix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen

from console.errors import ConsoleError
from console.tui import stories
from console.tui.commands import bindings_of_boxes
from console.tui.search import text_of
from console.tui.widgets.lines import Line, Lines

T = TypeVar("T")
INTERRUPT = "^C"
_FRAME = 2
"""Rows of a box's frame."""
Keys = Sequence[tuple[str, str]]
"""Key and what it does, for the box's last line."""


class Box(ModalScreen[T]):
    """A framed box of lines; what is SIMULATED says so in its frame."""

    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("escape", "close", show=False),
        Binding("ctrl+c", "interrupt", show=False),
        Binding("ctrl+q", "app.command('quit', '')", show=False),
        Binding("up,k", "scroll_body(-1)", show=False),
        Binding("down,j", "scroll_body(1)", show=False),
    ]
    WIDTH = 64

    def __init__(self, title: str, keys: Keys) -> None:
        super().__init__()
        self._heading = title
        self._keys = keys

    def body(self, width: int) -> list[Line]:
        """What stands in the box, for a width in cells."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        with Vertical(id="box") as box:
            box.border_title = self._heading
            box.border_subtitle = "SIMULATED" if getattr(self.app, "simulated", False) else ""
            with VerticalScroll(id="box-text", can_focus=False):
                yield Lines(id="box-body")
            yield Lines(id="box-keys")

    def on_mount(self) -> None:
        """Fill it for the width there is."""
        self.query_one("#box").styles.width = self._width + 4
        self.query_one("#box-body", Lines).show(self.body(self._width - 1))
        self.tell_keys()

    @property
    def _width(self) -> int:
        return min(self.WIDTH, self.app.size.width - 4)

    def on_resize(self) -> None:
        """The keys stay in view, what is said scrolls above them."""
        room = self.app.size.height - _FRAME - len(self.query_one("#box-keys", Lines).shown)
        self.query_one("#box-text").styles.max_height = max(1, room)

    def tell_keys(self, hint: str = "") -> None:
        """The last rows: keys and what they do, or why the one pressed does nothing."""
        # Keys that do the same stand together.
        keys: dict[str, str] = {}
        for key, word in self._keys:
            keys[word] = f"{keys[word]}/{key}" if word in keys else key
        rows: list[Line] = [()]
        for word, key in keys.items():
            said: Line = ((key, "strong"), (f" {word}   ", "dim"))
            if rows[-1] and len(text_of((*rows[-1], *said)).rstrip()) > self._width:
                rows.append(())
            rows[-1] = (*rows[-1], *said)
        self.query_one("#box-keys", Lines).show([((hint, "warn"),), *rows])

    def action_close(self) -> None:
        """Nothing was decided."""
        self.dismiss(None)

    def action_interrupt(self) -> None:
        """^C in a box: away with it."""
        self.action_close()

    def action_scroll_body(self, by: int) -> None:
        """What has no room scrolls."""
        self.query_one("#box-text", VerticalScroll).scroll_relative(y=by, animate=False)


class Question(Box[str]):
    """A question with its answers; the result is the key of the answer, `None` for a no.

    Args:
        title: what is asked, in short.
        text: what the answer leads to; the first sentence stands out.
        answers: key and what it does.
        no: what not doing it is called: the safe choice, which `enter` takes.
    """

    def __init__(self, title: str, text: Sequence[str], answers: Keys, *, no: str = "no") -> None:
        super().__init__(title, [*answers, ("n/enter", no)])
        self._text = text
        self._answers = {key for key, _ in answers}
        for key in self._answers - {INTERRUPT}:
            self._bindings.bind(key, f"answer('{key}')", show=False)
        for key in {"n", "q", "enter"} - self._answers:
            self._bindings.bind(key, "close", show=False)

    def body(self, width: int) -> list[Line]:
        """The paragraphs; the first one stands out."""
        lines: list[Line] = []
        for i, part in enumerate(self._text):
            lines += [*([()] if i == 1 else []), *stories.wrapped(part, width, "strong" if i == 0 else "")]
        return lines

    def on_key(self, event: Key) -> None:
        """Another key decides nothing, and says which ones do."""
        if event.key not in self._bindings.key_to_bindings:
            self.tell_keys(f"press {' or '.join(sorted(self._answers - {INTERRUPT}))}, or n for no")

    def action_interrupt(self) -> None:
        """^C answers only a question that offers it."""
        self.dismiss(INTERRUPT if INTERRUPT in self._answers else None)

    def action_answer(self, key: str) -> None:
        """Decided."""
        self.dismiss(key)


class Trouble(Box[None]):
    """Something that did not work: what, why, fix."""

    BINDINGS: ClassVar[list[Binding | tuple[str, str] | tuple[str, str, str]]] = [
        Binding("enter,q,space", "close", show=False),
        *bindings_of_boxes(),
    ]

    def __init__(self, title: str, error: ConsoleError) -> None:
        super().__init__(title, [("esc", "back")])
        self.error = error

    def body(self, width: int) -> list[Line]:
        """The error's three sentences."""
        return stories.error_story(self.error, width)

    def action_leave(self, name: str, argument: str) -> None:
        """Something else is to be done: it was read."""
        self.dismiss(None)
        self.app.call_later(self.app.run_action, f"command('{name}', '{argument}')")
