"""`ab`: plan a run, spawn it, follow it; look at runs, stop them, adopt a winner."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

from console import units
from console.cli.house import House
from console.cli.server import say
from console.errors import ConsoleError, Exit, UsageError
from console.presets import Preset, parse_assignments

if TYPE_CHECKING:
    from console.lab.plan import Plan
    from console.lab.view import RunView

_LOOK_EVERY_S = 0.5


def ab(args: argparse.Namespace) -> int:
    """One of the words that act on runs, or the kind of a new run."""
    words = {"list": _list, "show": _show, "stop": _stop, "adopt": _adopt, "recover": _recover}
    house = House.of(args)
    if word := words.get(args.what):
        return word(house, args)
    if args.rest:
        raise UsageError(f"`ab {args.what}` takes no {' '.join(args.rest)!r}", "", "`qwen-console ab --help`")
    return _run(house, args)


def _run(house: House, args: argparse.Namespace) -> int:
    from console.lab.launch import launch

    plan = _plan(house, args)
    run_id = launch(house.paths, plan, interrupt=args.interrupt)
    _announce(plan, run_id)
    if args.no_wait:
        print(run_id)
        return Exit.OK
    try:
        view = _follow(house.paths.run(run_id))
    except KeyboardInterrupt:
        say(f"\nleft alone: the run goes on; `qwen-console ab show {run_id}`, `qwen-console ab stop`")
        return Exit.INTERRUPTED
    _print(house.paths.run(run_id), as_json=args.json)
    return _outcome(view)


def _plan(house: House, args: argparse.Namespace) -> Plan:
    from console.lab.plan import make_plan

    preset = house.preset(args.preset)
    block, start_s = _known(house, preset)
    return make_plan(
        args.what,
        preset,
        rounds=args.rounds,
        size=args.size,
        quick=args.quick,
        arms=[arm.strip() for arm in args.arms.split(",") if arm.strip()] if args.arms else [],
        a=parse_assignments(args.a) or None,
        b=parse_assignments(args.b) or None,
        changes=parse_assignments(args.changes),
        seed=args.seed,
        block_tokens=block,
        start_s=start_s,
    )


def _known(house: House, preset: Preset) -> tuple[int | None, float | None]:
    """The cache block and the start time as the last life of this very preset told them."""
    record = house.server.record()
    if record is None or not record.preset or record.preset["name"] != preset.name:
        return None, None
    facts = house.server.facts()
    return facts.block_tokens, facts.init_seconds


def start_one_key_run(house: House, kind: str, preset: Preset) -> str:
    """The run behind one key of the console; its id. In a demo it is small, so that it ends while one looks."""
    from console.lab.launch import launch
    from console.lab.plan import make_plan

    block, start_s = _known(house, preset)
    size = "small" if house.demo else None
    plan = make_plan(kind, preset, size=size, block_tokens=block, start_s=start_s)
    return launch(house.paths, plan)


def _announce(plan: Plan, run_id: str) -> None:
    simulated = " SIMULATED" if plan.base.simulated else ""
    say(f"run {run_id}{simulated}: {plan.kind} on {plan.base.name}")
    say(f"  arms     {' · '.join(arm.name for arm in plan.arms)}; order {' '.join(plan.order)}")
    say(f"  differs  {', '.join(plan.differs) or 'nothing (this is the noise floor)'}")
    say(f"  about    {units.duration(plan.estimate_s)}; clients are refused meanwhile")
    for note in plan.notes:
        say(f"  note     {note}")


def _follow(run_dir: Path) -> RunView:
    """Narrate every step until the run has ended."""
    from console.lab.view import read_run

    said = ""
    while True:
        view = read_run(run_dir)
        if view.state != "running":
            return view
        if view.step and view.step != said:
            said = view.step
            eta = f" · about {units.duration(view.eta_s)} left" if view.eta_s is not None else ""
            say(f"{units.percent(view.progress, 0):>6}  {view.step}{eta}")
        time.sleep(_LOOK_EVERY_S)


def _print(run_dir: Path, *, as_json: bool) -> None:
    from console.lab.markdown import render
    from console.lab.report import to_json

    report = to_json(run_dir)
    print(json.dumps(report, indent=1) if as_json else render(report), end="\n" if as_json else "")


def _outcome(view: RunView) -> int:
    """0 when every arm was measured; the reasons of anything else on stderr."""
    if view.ok:
        return Exit.OK
    say(f"the run is {view.state}: {view.problem or (view.verdict.sentence if view.verdict else 'no verdict')}")
    for boot in view.boots:
        if boot.crash:
            say(f"  arm {boot.arm} crashed: {boot.crash.get('what') or ''} (cause: {boot.crash.get('cause')})")
    if view.restored:
        say(f"  {view.restored}")
    return Exit.FAILED


def _list(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import list_runs

    runs = list_runs(house.paths)
    if args.json:
        rows = [
            {
                "id": run.id,
                "kind": run.kind,
                "preset": run.preset,
                "state": run.state,
                "simulated": run.simulated,
                "verdict": run.verdict.overall if run.verdict else None,
            }
            for run in runs
        ]
        print(json.dumps({"schema": 1, "runs": rows}, indent=1))
        return Exit.OK
    for run in runs:
        verdict = run.verdict.overall if run.verdict else run.state
        print(f"{run.id}  {verdict:<11}  {run.kind} on {run.preset}{' SIMULATED' if run.simulated else ''}")
    if not runs:
        say("no run has been made yet; `qwen-console ab mtp` makes one")
    return Exit.OK


def _show(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import find_run

    _print(find_run(house.paths, args.rest[0] if args.rest else None), as_json=args.json)
    return Exit.OK


def _stop(house: House, args: argparse.Namespace) -> int:
    from console.lab.control import stop_run
    from console.server.run_lock import run_is_live

    if args.rest and (live := run_is_live(house.paths)) and not live.startswith(args.rest[0]):
        raise UsageError(f"the run {args.rest[0]} does not go on", f"{live} does", f"`qwen-console ab stop {live}`")
    view = stop_run(house.paths, on_event=lambda text: say(f"  {text}") if text else None)
    say(f"run {view.id} is {view.state}{'; ' + view.restored if view.restored else ''}")
    return Exit.OK


def _adopt(house: House, args: argparse.Namespace) -> int:
    from console.lab.adopt import adopt

    if len(args.rest) != 2:
        raise UsageError("`ab adopt` takes a run and an arm", "", "`qwen-console ab adopt ID ARM`")
    path = adopt(house.paths, args.rest[0], args.rest[1])
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
