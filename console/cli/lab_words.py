"""The words of `ab` and `probe`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from console.errors import UsageError

Add = Callable[[str, str, str, str], argparse.ArgumentParser]
_NONE: frozenset[str] = frozenset()
_TAKES: Mapping[str, tuple[int, frozenset[str]]] = {
    "list": (0, frozenset({"json"})),
    "show": (1, frozenset({"json"})),
    "compare": (99, frozenset({"json", "preset"})),
    "resume": (1, frozenset({"json", "interrupt", "no_wait"})),
    "stop": (1, _NONE),
    "adopt": (2, frozenset({"yes"})),
    "recover": (1, _NONE),
}
"""What acts on runs that were made: how many words it takes, and which options mean something to it."""
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", re.IGNORECASE)
_SPAN = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[smh](?:[0-9]+[smh])*)?", re.IGNORECASE)
_WHOLE = re.compile(r"[-+]?[0-9]{1,20}")


def add_lab(add: Add) -> None:
    """`ab` and `probe`."""
    ab = add("ab", "lab", "ab", "A/B runs: mtp, chunk, prefix, aa, custom, a key of lab:; list, show, resume, adopt …")
    ab.add_argument(
        "what",
        nargs="?",
        metavar="WHAT",
        help="mtp | chunk | prefix | graphs | aa | custom | NAME | "
        "replay FILE.jsonl | list | show ID | compare [ID …] | resume ID | stop | adopt ID ARM",
    )
    ab.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    ab.add_argument("--preset", help="the preset to vary; else the one that runs, else the default")
    ab.add_argument("--rounds", type=int, metavar="N", help="starts of every arm, at most")
    ab.add_argument("--size", choices=("small", "normal", "full"), help="how much work an arm gets in a round")
    ab.add_argument("--quick", action="store_true", help="one small round: can only suggest")
    ab.add_argument("--time-budget", type=span, metavar="T", help="size and rounds that fit, such as 45m or 2h")
    ab.add_argument("--all-rounds", action="store_true", help="go on to the last round even if the verdict is settled")
    ab.add_argument(
        "--workloads", type=_listed, metavar="A,B", help="some of agent, decode, interference, concurrent, replay"
    )
    ab.add_argument("--replay", type=Path, metavar="FILE.jsonl", help="your own recorded requests as a workload")
    ab.add_argument("--arms", type=_listed, metavar="A,B", help="chunk budgets, or numbers of speculative tokens")
    ab.add_argument("--a", action="append", default=[], metavar="K=V", help="custom: the first arm")
    ab.add_argument("--b", action="append", default=[], metavar="K=V", help="custom: the second arm")
    ab.add_argument("--set", action="append", default=[], metavar="K=V", dest="changes", help="for both arms")
    ab.add_argument("--seed", type=_seed, metavar="N", help="the same prompts and the same order of arms again")
    ab.add_argument("--interrupt", action="store_true", help="even while the server answers requests")
    ab.add_argument("--no-wait", action="store_true", help="return once the run lives")
    ab.add_argument("--dry-run", action="store_true", help="say what would be done, and how long it would take")
    ab.add_argument("--yes", action="store_true", help="adopt: do not ask, even if the verdict does not advise the arm")
    ab.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")
    probe = add("probe", "probe", "probe", "the prefix cache tested on the running server; two requests held together")
    probe.add_argument("what", choices=("prefix", "layout"), help="prefix | layout A.json B.json")
    probe.add_argument("files", nargs="*", type=Path, default=[], metavar="FILE", help="layout: two requests as JSON")
    probe.add_argument("--blocks", type=int, metavar="K", help="prefix: whole cache blocks of the prompt (3)")
    probe.add_argument(
        "--block-tokens", type=_count, metavar="N", help="the cache block, where the server does not tell"
    )
    probe.add_argument("--json", action="store_true", help="for scripts: one JSON object on stdout")


def see_that_all_means_something(args: argparse.Namespace) -> None:
    """Nothing that was said to `ab` may be passed over in silence.

    Raises:
        UsageError: a word or an option that this kind of `ab` does not know.
    """
    what, rest = args.what, args.rest
    if what not in _TAKES:
        if args.yes:
            raise UsageError(f"`ab {what}` takes no --yes", "it asks nothing", "--yes is for `ab adopt ID ARM`")
        if what == "replay" and args.replay is not None:
            raise UsageError("`ab replay FILE` takes no --replay", "it names its file already", _AB_HELP)
        return
    words, options = _TAKES[what]
    if len(rest) > words:
        takes = {0: "no more words", 1: "one run"}.get(words, "a run and an arm")
        raise UsageError(f"`ab {what}` takes {takes}", f"{' '.join(rest[words:])!r} is too much", _AB_HELP)
    for name, flag in _OPTIONS.items():
        value = getattr(args, name)
        given = value is not None and value is not False and value != []
        if given and name not in options:
            raise UsageError(f"`ab {what}` takes no {flag}", "it means nothing there", _AB_HELP)


_AB_HELP = "`qwen-console ab --help`"
_NAMES = (
    "preset rounds size quick time_budget all_rounds workloads replay arms a b changes "
    "seed interrupt no_wait dry_run yes json"
)
_OPTIONS: Mapping[str, str] = {
    name: "--set" if name == "changes" else f"--{name.replace('_', '-')}" for name in _NAMES.split()
}
"""Every option of `ab` by the name its value is kept under."""


def _listed(text: str) -> str:
    if not text.strip(", "):
        raise argparse.ArgumentTypeError(f"{text!r} names nothing: leave it out, or name some")
    return text


def _seed(text: str) -> int:
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number of at most 64 bits")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of tokens: 1 or more, such as 1600")
    return int(text)


def span(text: str) -> float:
    """`90`, `90s`, `45m`, `2h` or `2h30m` in seconds."""
    if not _SPAN.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no span of time: write it as 45m, 2h or 2h30m")
    value = sum(float(number) * _UNITS.get(unit.lower(), 1.0) for number, unit in _PART.findall(text))
    if not 1 <= value <= 30 * 86400:
        raise argparse.ArgumentTypeError("a time from a second to a month")
    return value
