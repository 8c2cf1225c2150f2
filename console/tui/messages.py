"""Everything that crosses from a worker to the screen. The newest of a kind replaces what has not been handled yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from console.errors import ConsoleError

if TYPE_CHECKING:
    from console.gpu.sample import GpuReport
    from console.lab.view import RunView
    from console.metrics.reading import Reading
    from console.notices import Look, Notice
    from console.notices.past import Past
    from console.presets import Catalog, Preset
    from console.server.status import ServerStatus


class Seen(Message):
    """A look at a source; the newest look of a kind is the only one that matters."""

    def can_replace(self, message: Message) -> bool:
        return type(message) is type(self)


@dataclass
class StatusSeen(Seen):
    """What the server is doing."""

    status: ServerStatus
    back: Preset | None = None
    """The preset that was ready before the one at hand."""


@dataclass
class CardsSeen(Seen):
    """The cards, now."""

    report: GpuReport


@dataclass
class ReadingSeen(Seen):
    """The figures of the window that just ended; `None` when there is no server to read."""

    reading: Reading | None


@dataclass
class ReadingLost(Seen):
    """`/metrics` could not be read: the figures on the screen are `age_s` old."""

    error: ConsoleError
    age_s: float | None


@dataclass
class LogSeen(Seen):
    """The last lines of the server's log."""

    path: str | None
    lines: tuple[str, ...]


@dataclass
class NoticesSeen(Message):
    """What all looks of this second came to. Every one counts: none replaces another."""

    look: Look
    notices: tuple[Notice, ...]
    """What stands, the worst first."""
    begun: tuple[Notice, ...]
    """What has just begun."""
    past: Past | None = None
    """What was recorded before this console came; told once."""


@dataclass
class RunSeen(Seen):
    """The A/B run that lives, else the newest one that ended, else nothing."""

    run: RunView | None
    live: bool
    news: bool = False
    """It has ended, and no console has shown that yet."""


@dataclass
class RunBegun(Seen):
    """This console has begun an A/B run; before its first step is seen it can be stopped already."""

    run_id: str


@dataclass
class CatalogSeen(Seen):
    """The presets and the files that hold none."""

    catalog: Catalog


@dataclass
class PollFailed(Message):
    """A source broke in a way it should not: said once, and the poll goes on."""

    source: str
    error: str


@dataclass
class Said(Seen):
    """What an action is doing, in one line; empty when there is nothing to say."""

    text: str


@dataclass
class Ended(Message):
    """An action has ended."""

    job: int
    """Its number: only the newest action speaks for the console."""
    title: str
    outcome: str | None
    """What to tell; `None` when the screen shows it anyway."""
    error: ConsoleError | None = None
