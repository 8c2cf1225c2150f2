"""`ab list`, `show`, `compare`, `stop`, `adopt`, `recover`: what acts on runs that were made."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.house import House
from console.cli.voice import offer, say, show, show_json
from console.errors import BusyError, ConsoleError, Exit, NothingError, UsageError
from console.server.access import in_the_way

if TYPE_CHECKING:
    from console.lab.view import RunView

_COMPARED = 4
"""So many of the newest runs are compared when none are named."""


def see_readable(house: House) -> None:
    """See that runs which are there would be seen.

    Raises:
        ConsoleError: their folder is closed.
    """
    folder = house.paths.runs
    if not os.access(folder, os.R_OK | os.X_OK) and (problem := in_the_way(folder)):
        raise ConsoleError("the A/B runs cannot be read", *problem)


def print_report(run_dir: Path, *, as_json: bool) -> None:
    """The run on stdout."""
    from console.lab.report import to_json
    from console.lab.terminal import render
    from console.lab.view import readable

    report = to_json(run_dir)
    if as_json:
        show_json(report)
        return
    with readable(run_dir):
        text = render(report)
    show(text.splitlines())


def _list(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import list_runs

    found = list_runs(house.paths)
    if args.json:
        rows = [
            {
                "id": run.id,
                "kind": run.kind,
                "preset": run.preset,
                "state": run.state,
                "simulated": run.simulated,
                "verdict": run.verdict.overall if run.verdict else None,
                "sentence": run.verdict.sentence if run.verdict else None,
            }
            for run in found
        ]
        show_json({"schema": 1, "runs": rows})
        return Exit.OK
    if not found:
        say("no run has been made yet; `qwen-console ab mtp` makes one")
        return Exit.OK
    table = [_HEAD, *((run.id, run.word, run.kind, _where(run)) for run in found)]
    widths = [max(len(row[i]) for row in table) for i in range(3)]
    show("  ".join((*(f"{row[i]:<{widths[i]}}" for i in range(3)), row[3])) for row in table)
    return Exit.OK


_HEAD = ("run", "verdict", "kind", "preset")


def _where(run: RunView) -> str:
    """The preset; a run that did not come to its end has no verdict, and says how to go on."""
    tag = " SIMULATED" if run.simulated else ""
    return run.preset + tag + (f"; `qwen-console ab resume {run.id}` goes on with it" if run.resumable else "")


def _show(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import find_run

    print_report(find_run(house.paths, args.rest[0] if args.rest else None), as_json=args.json)
    return Exit.OK


def _compare(house: House, args: argparse.Namespace) -> int:
    from console.lab.compare import lines, side_by_side
    from console.lab.control import find_run, list_runs
    from console.lab.view import read_run

    if args.rest:
        folders = dict.fromkeys(find_run(house.paths, run_id) for run_id in args.rest)
        if len(folders) < len(args.rest):
            raise UsageError("one run is named twice", "it agrees with itself", "`qwen-console ab list` names others")
        views = [read_run(folder) for folder in folders]
    else:
        every = [view for view in list_runs(house.paths) if view.metrics and args.preset in (None, view.preset)]
        # The newest run, and the earlier ones that asked the same question.
        same = [view for view in every if _question(view) == _question(every[0])]
        views = same[:_COMPARED]
    if not views:
        raise NothingError("there is no run to compare", "", "`qwen-console ab list`")
    side = side_by_side(views)
    if args.json:
        show_json(side.to_json())
    else:
        show(lines(side))
    return Exit.OK


def _question(view: RunView) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    return view.kind, view.preset, view.arms, view.changes


def _stop(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import stop_run
    from console.server.run_lock import run_is_live

    if args.rest and (live := run_is_live(house.paths)) and not live.startswith(args.rest[0]):
        raise UsageError(f"the run {args.rest[0]} does not go on", f"{live} does", f"`qwen-console ab stop {live}`")
    view = stop_run(house.paths, on_event=lambda text: say(f"  {text}") if text else None)
    say(f"run {view.id} is {view.state}{'; ' + view.restored if view.restored else ''}")
    if view.resumable:
        say(f"  `qwen-console ab resume {view.id}` goes on with it")
    return Exit.OK


def _adopt(house: House, args: argparse.Namespace) -> int:
    from console.lab.adopt import adopt, caution
    from console.lab.control import find_run
    from console.lab.difference import difference
    from console.server.run_lock import run_is_live

    if len(args.rest) != 2:
        raise UsageError("`ab adopt` takes a run and an arm", "", "`qwen-console ab adopt ID ARM`")
    run_id, arm = args.rest
    if (live := run_is_live(house.paths)) and find_run(house.paths, run_id).name == live and not args.yes:
        raise BusyError(
            f"the run {live} goes on: it advises nothing yet",
            "its verdict comes with its last round",
            f"wait for it (`qwen-console ab show {live}`), or say --yes",
        )
    if (why := caution(house.paths, run_id, arm)) and not _meant(why, sure=args.yes):
        say("nothing was written")
        return Exit.FAILED
    base = measured_preset(house, run_id)
    path = adopt(house.paths, run_id, arm)
    presets = house.catalog().presets
    before, after = presets.get(base), presets.get(path.stem)
    if before is not None and after is not None:
        for row in difference(before, after):
            say(f"  {row.text}")
    say(f"written; start it with `qwen-console up {path.stem}`")
    offer(str(path))
    return Exit.OK


def measured_preset(house: House, run_id: str) -> str:
    """The preset that a run measured, which an adopted arm extends.

    Raises:
        NothingError: no such run.
        ConsoleError: the preset is not to be had any more.
    """
    from console.lab.control import find_run
    from console.lab.view import read_run

    base = read_run(find_run(house.paths, run_id)).preset
    if base not in house.catalog().presets:
        why = "what is adopted extends it, and its file is gone or cannot be used"
        raise ConsoleError(f"there is no preset {base} any more", why, "put its file back, then adopt the arm")
    return base


def _meant(why: str, *, sure: bool) -> bool:
    """Say what speaks against it, and ask; where nobody can be asked, the command is taken at its word."""
    say(why)
    if sure or not sys.stdin.isatty():
        return True
    print("write the preset all the same? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _recover(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import recover

    if len(args.rest) != 1:
        raise UsageError("`ab recover` takes a run", "", "`qwen-console ab recover ID`")
    if not recover(house.paths, args.rest[0], by_hand=True):
        raise ConsoleError(f"the run {args.rest[0]} has ended already", "there is nothing to recover", "")
    return Exit.OK


WORDS: Mapping[str, Callable[[House, argparse.Namespace], int]] = {
    "list": _list,
    "show": _show,
    "compare": _compare,
    "stop": _stop,
    "adopt": _adopt,
    "recover": _recover,
}
