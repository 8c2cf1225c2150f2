"""The one table of commands: key bindings, footer, help and palette are all made from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from console.server.status import State
from console.tui.situation import Situation

if TYPE_CHECKING:
    from console.tui.app import ConsoleApp

Guard = Callable[[Situation], str | None]
"""Why a command makes no sense now, in a sentence; `None` when it does."""


def _always(_: Situation) -> str | None:
    return None


def _ours(now: Situation) -> str | None:
    if now.watching or now.status.state is State.FOREIGN:
        return "this server was not started by this console: it is watched, never touched"
    return f"still at it: {now.acting}" if now.acting else None


def _can_start(now: Situation) -> str | None:
    if refused := _ours(now):
        return refused
    if now.run:
        return "an A/B run is going on and owns the server; x stops the run"
    if now.selected is None:
        return "no preset is selected"
    if now.status.state is State.STOPPING:
        return "the server is still stopping"
    return None


def _can_stop(now: Situation) -> str | None:
    if refused := _ours(now):
        return refused
    return None if now.run or now.alive or not now.known else "nothing runs"


def _can_restart(now: Situation) -> str | None:
    if refused := _ours(now):
        return refused
    if now.run:
        return "an A/B run is going on and owns the server; x stops the run"
    return None if now.alive or now.status.state is State.FAILED else "nothing runs; enter starts the selected preset"


def _can_run(now: Situation) -> str | None:
    if refused := _ours(now):
        return refused
    if now.run:
        return "one A/B run at a time; x stops this one"
    if now.selected is None or now.broken:
        return "select a preset that can start"
    if now.status.state in (State.STARTING, State.STOPPING):
        return f"the server is {now.status.state.value}; wait until it is ready or stopped"
    return None


def _can_adopt(now: Situation) -> str | None:
    return None if now.winner else "no finished run advises to adopt an arm"


@dataclass(frozen=True, slots=True)
class Command:
    """Something the user can do."""

    name: str
    """The method `do_<name>` of the app carries it out."""
    keys: tuple[str, ...]
    """Textual's names of the keys."""
    shown: str
    """The keys as the help writes them."""
    title: str
    help: str
    group: str
    footer: str = ""
    """The word in the footer; commands without one are left to the help."""
    rank: int = 0
    """Where the footer does not fit, the highest rank goes first; 0 stays."""
    guard: Guard = _always
    argument: str = ""


_SERVER, _RUNS, _VIEW, _CONSOLE = "Server", "A/B runs", "View", "Console"


def _number(n: int) -> Command:
    shown = "1-9" if n == 1 else ""
    return Command("select", (str(n),), shown, f"preset {n}", "select a preset by its number", _VIEW, argument=str(n))


COMMANDS: tuple[Command, ...] = (
    Command(
        "start",
        ("enter", "s"),
        "enter s",
        "start or switch",
        "start the selected preset; switch to it if another one runs (asks)",
        _SERVER,
        "start",
        0,
        _can_start,
    ),
    Command(
        "stop",
        ("x",),
        "x",
        "stop",
        "stop the server, or the A/B run if one is going on (asks)",
        _SERVER,
        "stop",
        0,
        _can_stop,
    ),
    Command(
        "restart",
        ("r",),
        "r",
        "restart",
        "stop the running preset and start it again (asks)",
        _SERVER,
        "restart",
        2,
        _can_restart,
    ),
    Command(
        "mtp",
        ("m",),
        "m",
        "compare MTP",
        "A/B run: the selected preset with MTP off and on",
        _RUNS,
        "MTP",
        1,
        _can_run,
    ),
    Command(
        "chunk",
        ("c",),
        "c",
        "compare chunks",
        "A/B run: chunk budgets of the selected preset",
        _RUNS,
        "chunk",
        1,
        _can_run,
    ),
    Command(
        "aa",
        ("a",),
        "a",
        "noise floor",
        "A/A run: equal arms; what this machine cannot tell apart",
        _RUNS,
        "A/A",
        3,
        _can_run,
    ),
    Command(
        "adopt",
        ("o",),
        "o",
        "adopt",
        "write the arm that the verdict advises as a new preset",
        _RUNS,
        guard=_can_adopt,
    ),
    Command("details", ("v",), "v", "run in full", "the newest run: all measures, reasons, warnings", _RUNS),
    Command("log", ("l",), "l", "log", "the server's log over the whole screen", _VIEW, "log", 1),
    Command(
        "next_view", ("tab",), "tab", "lower half", "small terminals: presets and log, or the run", _VIEW, "view", 2
    ),
    Command("up", ("up", "k"), "up k", "previous preset", "move the selection up", _VIEW),
    Command("down", ("down", "j"), "down j", "next preset", "move the selection down", _VIEW),
    *(_number(n) for n in range(1, 10)),
    Command("help", ("question_mark",), "?", "help", "all keys", _CONSOLE, "help"),
    Command("palette", ("colon",), ":", "commands", "find a command by its name", _CONSOLE),
    Command(
        "quit", ("q", "ctrl+q"), "q ctrl+q", "quit", "leave the console; server and A/B run go on", _CONSOLE, "quit"
    ),
    Command("suspend", ("ctrl+z",), "ctrl+z", "suspend", "to the shell; `fg` comes back", _CONSOLE),
    Command("ask_quit", ("ctrl+c",), "ctrl+c", "quit?", "ask: quit, or stop the server first", _CONSOLE),
)


def by_name(name: str) -> Command:
    """The command of that name."""
    return next(command for command in COMMANDS if command.name == name)


Bindings = list[Binding | tuple[str, str] | tuple[str, str, str]]
_EVERYWHERE = ("palette", "quit", "ask_quit", "suspend")


def bindings() -> Bindings:
    """One Textual binding a command, for the dashboard."""
    return [_binding(command, command.keys) for command in COMMANDS]


def bindings_everywhere() -> Bindings:
    """What holds on every screen: keys that no screen means otherwise."""
    return [_binding(c, tuple(key for key in c.keys if len(key) > 1)) for c in COMMANDS if c.name in _EVERYWHERE]


def _binding(command: Command, keys: tuple[str, ...]) -> Binding:
    action = f"app.command('{command.name}', '{command.argument}')"
    name = f"{command.name}{command.argument}"
    return Binding(",".join(keys), action, command.title, show=False, id=name, tooltip=command.help)


def footer(now: Situation) -> Iterator[tuple[str, str, bool, int]]:
    """Key, word, whether it makes sense now, and rank, of the commands in the footer."""
    for command in COMMANDS:
        if command.footer:
            word = command.footer
            if command.name == "start" and now.alive and not now.run:
                word = "switch"
            if command.name == "stop" and now.run:
                word = "stop run"
            yield command.shown.split()[0], word, command.guard(now) is None, command.rank


def help_rows() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Groups with their keys and sentences, in the order of the table."""
    groups: dict[str, list[tuple[str, str]]] = {}
    for command in COMMANDS:
        if command.shown:
            groups.setdefault(command.group, []).append((command.shown, command.help))
    yield from groups.items()


class ConsoleCommands(Provider):
    """The palette: the commands that make sense now."""

    def _offers(self) -> Iterator[tuple[Command, Callable[[], None]]]:
        app: ConsoleApp = self.app  # type: ignore[assignment]
        for command in COMMANDS:
            if (
                command.shown
                and command.name not in ("palette", "up", "down", "select")
                and not command.guard(app.situation)
            ):
                yield command, partial(app.carry_out, command)

    async def discover(self) -> Hits:
        """Everything, before a letter is typed."""
        for command, run in self._offers():
            yield DiscoveryHit(f"{command.title}  ({command.shown})", run, help=command.help)

    async def search(self, query: str) -> Hits:
        """What matches, in its title or its sentence."""
        matcher = self.matcher(query)
        for command, run in self._offers():
            text = f"{command.title}  ({command.shown})"
            score = max(matcher.match(text), matcher.match(command.help) * 0.5)
            if score > 0:
                yield Hit(score, matcher.highlight(text), run, help=command.help)
