"""`ab list`, `show`, `compare`, `stop`, `adopt`, `recover`: what acts on runs that were made."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from console.cli.house import House
from console.cli.server import say
from console.errors import ConsoleError, Exit, NothingError, UsageError

_COMPARED = 4
"""So many of the newest runs are compared when none are named."""


def print_report(run_dir: Path, *, as_json: bool) -> None:
    """The run on stdout."""
    from console.lab.markdown import render
    from console.lab.report import to_json

    report = to_json(run_dir)
    print(json.dumps(report, indent=1) if as_json else render(report), end="\n" if as_json else "")


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
        print(json.dumps({"schema": 1, "runs": rows}, indent=1))
        return Exit.OK
    for run in found:
        verdict = run.verdict.overall if run.verdict else run.state
        state = "" if run.state == "done" else f" ({run.state})"
        print(f"{run.id}  {verdict:<11}  {run.kind} on {run.preset}{' SIMULATED' if run.simulated else ''}{state}")
    if not found:
        say("no run has been made yet; `qwen-console ab mtp` makes one")
    return Exit.OK


def _show(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import find_run

    print_report(find_run(house.paths, args.rest[0] if args.rest else None), as_json=args.json)
    return Exit.OK


def _compare(house: House, args: argparse.Namespace) -> int:
    from console.lab.compare import lines, side_by_side
    from console.lab.control import find_run, list_runs
    from console.lab.view import read_run

    if args.rest:
        views = [read_run(find_run(house.paths, run_id)) for run_id in args.rest]
    else:
        every = [view for view in list_runs(house.paths) if view.metrics and args.preset in (None, view.preset)]
        # The newest run, and the earlier ones that asked the same question.
        same = [view for view in every if (view.kind, view.preset, view.arms) == _question(every[0])]
        views = same[:_COMPARED]
    if not views:
        raise NothingError("there is no run to compare", "", "`qwen-console ab list`")
    side = side_by_side(views)
    print(json.dumps(side.to_json(), indent=1) if args.json else "\n".join(lines(side)))
    return Exit.OK


def _question(view: object) -> tuple[str, str, tuple[str, ...]]:
    from console.lab.view import RunView

    assert isinstance(view, RunView)
    return view.kind, view.preset, view.arms


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
    from console.lab.adopt import adopt, difference
    from console.lab.control import find_run
    from console.lab.view import read_run

    if len(args.rest) != 2:
        raise UsageError("`ab adopt` takes a run and an arm", "", "`qwen-console ab adopt ID ARM`")
    run_id, arm = args.rest
    path = adopt(house.paths, run_id, arm)
    presets = house.catalog().presets
    before, after = presets.get(read_run(find_run(house.paths, run_id)).preset), presets.get(path.stem)
    if before is not None and after is not None:
        for row in difference(before, after):
            say(f"  {row.text}")
    say(f"written; start it with `qwen-console up {path.stem}`")
    print(path)
    return Exit.OK


def _recover(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import recover

    if len(args.rest) != 1:
        raise UsageError("`ab recover` takes a run", "", "`qwen-console ab recover ID`")
    if not recover(house.paths, args.rest[0]):
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
