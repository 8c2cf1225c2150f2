"""The one table of commands: key bindings, footer, help and palette are all made from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from textual.binding import Binding

from console.tui import guards
from console.tui.situation import Situation


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
    guard: guards.Guard = guards.always
    argument: str = ""


_SERVER, _RUNS, _VIEW, _CONSOLE = "Server", "A/B runs", "View", "Console"


def _number(n: int) -> Command:
    shown = "1-9" if n == 1 else ""
    about = "select a preset by its number; up and down reach the others"
    return Command("select", (str(n),), shown, f"preset {n}", about, _VIEW, argument=str(n))


COMMANDS: tuple[Command, ...] = (
    Command(
        "start",
        ("enter", "s"),
        "enter s",
        "start or switch",
        "start the selected preset, or switch to it (asks)",
        _SERVER,
        "start",
        0,
        guards.can_start,
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
        guards.can_stop,
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
        guards.can_restart,
    ),
    Command(
        "back",
        ("b",),
        "b",
        "go back",
        "start the preset that was ready before this one (asks)",
        _SERVER,
        guard=guards.can_go_back,
    ),
    Command(
        "probe",
        ("p",),
        "p",
        "prefix self-test",
        "send one prompt three times: does the prefix cache hit?",
        _SERVER,
        guard=guards.can_probe,
    ),
    Command(
        "mtp",
        ("m",),
        "m",
        "compare MTP",
        "A/B run: the selected preset with MTP off and on",
        _RUNS,
        "MTP",
        2,
        guards.can_run,
    ),
    Command(
        "chunk",
        ("c",),
        "c",
        "compare chunks",
        "A/B run: chunk budgets of the selected preset",
        _RUNS,
        "chunk",
        2,
        guards.can_run,
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
        guards.can_run,
    ),
    Command(
        "adopt",
        ("o",),
        "o",
        "adopt",
        "write the arm that the verdict advises as a new preset",
        _RUNS,
        guard=guards.can_adopt,
    ),
    Command("details", ("v",), "v", "runs", "all runs: measures, intervals, reasons, warnings of each", _RUNS),
    Command("preset", ("d",), "d", "presets", "what each changes, lint, plan, its exact command", _VIEW),
    Command("notices", ("n",), "n", "notices", "what stands out now: what, why, and what to do", _VIEW),
    Command("trends", ("t",), "t", "trends", "how measures and cards went, as graphs", _VIEW),
    Command(
        "chain",
        ("e",),
        "e",
        "execution chain",
        "the server's address, and what really runs, with its proofs",
        _VIEW,
    ),
    Command("cards", ("g",), "g", "cards", "the whole of each card: memory, processes, link, clocks", _VIEW),
    Command("history", ("h",), "h", "history", "what the server did in the last days, by boot", _VIEW),
    Command("explain", ("i",), "i", "explain", "a figure: its definition, its source, its window, its n", _VIEW),
    Command("log", ("l",), "l", "log", "the server's log over the whole screen", _VIEW, "log", 1),
    Command(
        "next_view",
        ("tab",),
        "tab",
        "what is hidden",
        "log or graphs; on a small terminal presets and log, or the run",
        _VIEW,
        "view",
        1,
    ),
    Command("up", ("up", "k"), "up k", "previous preset", "move the selection up", _VIEW),
    Command("down", ("down", "j"), "down j", "next preset", "move the selection down", _VIEW),
    *(_number(n) for n in range(1, 10)),
    Command("write", ("w",), "w", "write", "text and figures of the screen into a file; of a page all of it", _CONSOLE),
    Command("copy", ("y",), "y", "copy", "the text of the screen to the terminal's clipboard", _CONSOLE),
    Command("help", ("question_mark",), "?", "help", "all keys", _CONSOLE, "help"),
    Command("palette", ("colon",), ":", "commands", "find a command by its name", _CONSOLE),
    Command(
        "quit", ("q", "ctrl+q"), "q ctrl+q", "quit", "leave the console; server and A/B run go on", _CONSOLE, "quit"
    ),
    Command("redraw", ("ctrl+l",), "ctrl+l", "draw anew", "where something else has written over the screen", _CONSOLE),
    Command("suspend", ("ctrl+z",), "ctrl+z", "suspend", "to the shell; `fg` comes back", _CONSOLE),
    Command("ask_quit", ("ctrl+c",), "ctrl+c", "quit?", "ask: quit, or stop the server first", _CONSOLE),
)


def by_name(name: str) -> Command:
    """The command of that name."""
    return next(command for command in COMMANDS if command.name == name)


Bindings = list[Binding | tuple[str, str] | tuple[str, str, str]]
_PAGES = ("preset", "notices", "trends", "log", "chain", "cards", "history", "details", "help")
"""Commands whose page takes the place of another one: from any page one key leads to any other."""
_ALSO_ON_PAGES = ("write", "copy", "stop")
_EVERYWHERE = ("palette", "quit", "ask_quit", "redraw", "suspend")
_PAGE_MOVES = (
    "escape",
    "q",
    "up",
    "k",
    "down",
    "j",
    "pageup",
    "b",
    "pagedown",
    "space",
    "home",
    "end",
    "left",
    "right",
)
_PAGE_FINDS = ("slash", "n", "N", "ampersand", "exclamation_mark", "z")
PAGE_KEYS = frozenset((*_PAGE_MOVES, *_PAGE_FINDS))
"""What the pages mean by keys themselves: none of them can be given to a command that works there."""
KeyMap = Mapping[str, tuple[str, ...]]
"""Command → the keys that the user has given it instead of its own."""
_SIGNS = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "exclamation_mark": "!",
    "ampersand": "&",
    "full_stop": ".",
    "comma": ",",
    "minus": "-",
    "plus": "+",
    "semicolon": ";",
}


def key_named(sign: str) -> str:
    """Textual's name of a key that is written as its sign."""
    from textual.keys import _character_to_key

    return _character_to_key(sign) if len(sign) == 1 else sign


def works_on_pages(name: str) -> bool:
    """Whether the keys of a command count on the pages, too."""
    return name in (*_PAGES, *_ALSO_ON_PAGES, *_EVERYWHERE)


def shown_keys(command: Command, keys: KeyMap) -> str:
    """The keys as the help writes them."""
    if command.name not in keys or not command.shown:
        return command.shown
    return " ".join(_SIGNS.get(key, key) for key in keys[command.name])


def keymap(keys: KeyMap) -> dict[str, str]:
    """The same as Textual wants it."""
    return {name: ",".join(words) for name, words in keys.items()}


def ways_out(keys: KeyMap) -> list[str]:
    """Keys that leave the console, for good or for a while."""
    return [key for name in ("quit", "ask_quit", "suspend") for key in keys.get(name) or by_name(name).keys]


def bindings() -> Bindings:
    """One Textual binding a command, for the dashboard."""
    return [_binding(command, command.keys) for command in COMMANDS]


def bindings_everywhere() -> Bindings:
    """What holds on every screen: keys that no screen means otherwise."""
    return [_binding(c, tuple(key for key in c.keys if len(key) > 1)) for c in COMMANDS if c.name in _EVERYWHERE]


def bindings_of_pages() -> Bindings:
    """What holds on the pages: the way to every other page, and what can be done with any."""
    return [_binding(c, c.keys) for c in COMMANDS if c.name in (*_PAGES, *_ALSO_ON_PAGES)]


def bindings_of_boxes() -> Bindings:
    """What leads out of a box that only tells something: it goes away, and the command is carried out."""
    stay = ("start", "up", "down", "select", "next_view", "write", "copy", "explain", *_EVERYWHERE)
    return [_binding(c, c.keys, "leave") for c in COMMANDS if c.name not in stay]


def _binding(command: Command, keys: tuple[str, ...], action: str = "app.command") -> Binding:
    action = f"{action}('{command.name}', '{command.argument}')"
    name = f"{command.name}{command.argument}"
    return Binding(",".join(keys), action, command.title, show=False, id=name, tooltip=command.help)


def footer(now: Situation, keys: KeyMap) -> Iterator[tuple[str, str, bool, int]]:
    """Key, word, that it makes sense now, and rank, of the commands in the footer; what would be refused is none."""
    for command in COMMANDS:
        if command.footer and command.guard(now) is None:
            word = command.footer
            if command.name == "start" and not now.run:
                word = "what is wrong" if now.broken or now.lacking else "switch" if now.alive else word
            if command.name == "stop" and now.run:
                word = "stop run"
            if command.name == "next_view":
                word = now.hidden
            if not word:
                continue
            yield shown_keys(command, keys).split()[0], word, True, command.rank


def help_rows(keys: KeyMap) -> Iterator[tuple[str, list[tuple[str, Command]]]]:
    """Groups with their keys and commands, in the order of the table."""
    groups: dict[str, list[tuple[str, Command]]] = {}
    for command in COMMANDS:
        if command.shown:
            groups.setdefault(command.group, []).append((shown_keys(command, keys), command))
    yield from groups.items()
