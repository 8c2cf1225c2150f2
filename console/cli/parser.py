"""The words of the command line. Verbs are imported only when one runs: the first frame must not wait for them."""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from console import __version__, hints
from console.cli.lab_words import add_lab
from console.cli.voice import silence
from console.errors import Exit
from console.units import printable

_EPILOG = """\
examples:
  qwen-console --demo                     the console on the embedded stand-in engine, no GPU needed
  qwen-console up qwen3.8-27b-nvfp4-100k  start a preset and watch it become ready
  qwen-console status --json --window 30  what the server did in the next 30 s
  qwen-console ab mtp --rounds 3          is MTP really better here? measured, with an interval

exit codes: 0 fine, 1 it did not work, 2 usage or bad preset, 3 nothing to act on, 4 busy, 130 interrupted
"""

Verb = Callable[[argparse.Namespace], int]
_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)")
_OPTION = re.compile(r"unrecognized arguments: (?P<word>--[\w-]+)")


class _Parser(argparse.ArgumentParser):
    def _print_message(self, message: str, file: Any = None) -> None:
        """Help that cannot be written is no success; a complaint that cannot be is still told by its code."""
        file = file or sys.stderr
        if not message or file is None:
            return
        try:
            file.write(printable(message))
            file.flush()
        except OSError:
            if file is not sys.stderr:
                raise
            silence(file.fileno())

    def error(self, message: str) -> NoReturn:
        near = self._near(message)
        fix = (f"did you mean `{near}`? " if near else "") + hints.told(f"`{self.prog} --help` lists what it takes")
        self.exit(Exit.USAGE, f"{self.prog}: {message}\n  fix: {fix}\n")

    def _near(self, message: str) -> str | None:
        """The verb or option that may have been meant."""
        import difflib

        choice, option = _CHOICE.search(message), _OPTION.search(message)
        if choice:
            found = difflib.get_close_matches(choice["word"], re.findall(r"[\w-]+", choice["known"]), n=1)
        else:
            found = difflib.get_close_matches(option["word"], self._option_string_actions, n=1) if option else []
        return found[0] if found else None


def _verb(module: str, name: str) -> Verb:
    def run(args: argparse.Namespace) -> int:
        verb: Verb = getattr(importlib.import_module(f"console.cli.{module}"), name)
        return verb(args)

    return run


def build() -> tuple[_Parser, Mapping[str, argparse.ArgumentParser]]:
    """The parser of the whole command line, and that of every verb."""
    parser = _Parser(
        prog="qwen-console",
        description="Console for one vLLM workstation: presets, live numbers, A/B runs with evidence.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[_shared()],
    )
    parser.add_argument("--version", action="version", version=f"qwen-console {__version__}")
    parser.add_argument("--url", type=_address, metavar="U", help="watch a server elsewhere; it is never signalled")
    parser.add_argument("--low-bandwidth", action="store_true", help="draw less often, for thin lines")
    parser.set_defaults(verb=_verb("screen", "tui"), demo=False, presets=None, name=None)
    verbs = parser.add_subparsers(metavar="VERB", parser_class=_Parser)

    def add(name: str, module: str, function: str, text: str) -> argparse.ArgumentParser:
        verb = verbs.add_parser(name, help=text, description=text, parents=[_shared()])
        verb.set_defaults(verb=_verb(module, function), name=name)
        return verb

    _presets(add)
    _server(add)
    add_lab(add)
    shell = add("completion", "completion", "completion", "a completion script for bash, zsh or fish")
    shell.add_argument(
        "shell", choices=("bash", "zsh", "fish", "presets", "runs"), help="presets, runs: the names of all of them"
    )
    verbs.add_parser("sim", help="the stand-in engine, with vllm serve's argv", add_help=False)
    return parser, verbs.choices


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; without a verb it is the TUI."""
    parser, verbs = build()
    args, unknown = parser.parse_known_args(list(words))
    if unknown:
        # Said by the verb's own parser: its help is what one needs.
        (verbs.get(args.name) or parser).error(f"unrecognized arguments: {' '.join(unknown)}")
    if (empty := _empty(words)) is not None:
        # Taken for none given, `--arms ""` would start something else than was meant.
        (verbs.get(args.name) or parser).error(
            f"an empty word{empty} means nothing: leave it out, or say what is meant"
        )
    if args.url is not None and args.name not in (None, "status"):
        parser.error(
            f"`{args.name}` takes no --url: it acts on this machine's own server; the console itself and `status` "
            "can look at one elsewhere"
        )
    if args.low_bandwidth and args.name is not None:
        parser.error(f"`{args.name}` takes no --low-bandwidth: it is for the console itself")
    return args


def _empty(words: Sequence[str]) -> str | None:
    """Where an empty word was given (`""`: not to an option), such as `$ARMS` of a script that never set it."""
    before = ["", *words]
    for option, word in zip(before, words, strict=False):
        if not word.strip():
            return f" for {option}" if option.startswith("--") else ""
        name, equals, value = word.partition("=")
        if name.startswith("--") and equals and not value.strip():
            return f" for {name}"
    return None


def _shared() -> _Parser:
    """Options that may stand before and after the verb; made anew, since parsers would share their defaults."""
    shared = _Parser(add_help=False)
    shared.add_argument("--demo", action="store_true", default=argparse.SUPPRESS, help="on the stand-in engine")
    shared.add_argument("--presets", type=_folder, metavar="DIR", default=argparse.SUPPRESS, help="look here first")
    return shared


Add = Callable[[str, str, str, str], argparse.ArgumentParser]


def _presets(add: Add) -> None:
    listing = add("presets", "presets", "presets", "list the presets and the files that are broken")
    listing.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    show = add("show", "presets", "show", "the exact command, environment and plan of a preset")
    show.add_argument("preset", help="its name, as `presets` lists it")
    show.add_argument(
        "--set", action="append", default=[], metavar="K=V", dest="changes", help="an args key, env.X, server.X"
    )
    show.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    lint = add("lint", "lint", "run", "what is known to go wrong with a preset, and flags its vLLM does not know")
    lint.add_argument("preset", nargs="?", help="all presets if left out")
    lint.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")


def _server(add: Add) -> None:
    up = add("up", "server", "up", "start a preset, show its phases, return when it is ready")
    up.add_argument("preset", nargs="?", help="else the one that runs, else the default preset")
    up.add_argument(
        "--set", action="append", default=[], metavar="K=V", dest="changes", help="an args key, env.X, server.X"
    )
    up.add_argument("--no-wait", action="store_true", help="return once the server process runs")
    up.add_argument("--prove", action="store_true", help="then send one prompt of nearly the whole context")
    down = add("down", "server", "down", "stop the server, whole")
    down.add_argument("--drain", type=_seconds, metavar="S", help="first wait up to S seconds until no request runs")
    restart = add("restart", "server", "restart", "stop the server and start it again, or another preset")
    restart.add_argument("preset", nargs="?", help="another preset; else the one that runs")
    restart.add_argument(
        "--back", action="store_true", help="the preset that was ready before this one, as it was then"
    )
    restart.add_argument("--drain", type=_seconds, metavar="S", help="first wait up to S seconds until no request runs")
    restart.add_argument("--no-wait", action="store_true", help="return once the server process runs")
    doctor = add("doctor", "doctor", "doctor", "what of this machine a server depends on, each with a verdict")
    doctor.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    status = add("status", "status", "status", "the server, the cards, the reading")
    status.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    status.add_argument("--window", type=_window, metavar="S", help="measure over the next S seconds")
    status.add_argument("--chain", action="store_true", help="also what really runs, link by link, with its proof")
    status.add_argument("--url", type=_address, default=argparse.SUPPRESS, help="a server elsewhere")
    history = add("history", "history", "history", "what the servers of the last days did, recorded by the minute")
    history.add_argument("--since", type=_span, default=7 * 86400.0, metavar="AGE", help="such as 90m, 12h, 7d")
    history.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    logs = add("logs", "logs", "logs", "the server's log")
    logs.add_argument("-f", "--follow", action="store_true", help="go on, into the next start too, until it has ended")
    logs.add_argument("--all", action="store_true", help="also what our own consoles and A/B runs ask the server")
    logs.add_argument("-n", "--lines", type=_lines, default=40, metavar="N", help="how many of its last lines (40)")
    diagnose = add("diagnose", "diagnose", "diagnose", "what a vLLM log says went wrong")
    diagnose.add_argument("log", type=Path, help="a file")
    diagnose.add_argument("--alive", action="store_true", help="the process that wrote it still lives")
    diagnose.add_argument("--silent", type=_seconds, default=0.0, metavar="S", help="for how long it has said nothing")
    diagnose.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")


def _span(text: str) -> float:
    """`90m`, `12h`, `7d` in seconds."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    try:
        value = float(text[:-1]) * units[text[-1:]]
    except (ValueError, KeyError):
        raise argparse.ArgumentTypeError(f"{text!r} is no age: write it as 90m, 12h or 7d") from None
    if not 0 < value < 3e9:
        raise argparse.ArgumentTypeError("an age above 0")
    return value


def _address(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("an address is needed: http://HOST:PORT")
    return text


def _folder(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("a folder is needed: the empty word names none")
    return Path(text)


def _lines(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number of lines: 0, or as many as are wanted")
    return int(text)


def _window(text: str) -> float:
    if (value := _seconds(text)) == 0:
        raise argparse.ArgumentTypeError("a window is longer than 0 s; without --window the last look is told")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds") from None
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError("seconds from 0 to 86400")
    return value
