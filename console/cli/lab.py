"""`ab`: plan a run, spawn it, follow it."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from console import units
from console.cli import runs
from console.cli.house import House
from console.cli.lab_words import see_that_all_means_something
from console.cli.voice import offer, say, show, show_json
from console.errors import Exit, UsageError
from console.presets import Preset, parse_assignments
from console.presets.secrecy import covered

if TYPE_CHECKING:
    from console.lab.jobs import Job
    from console.lab.plan import Known, Plan
    from console.lab.view import RunView

_LOOK_EVERY_S = 0.5
_STARTS = 5
"""The last starts that an estimate rests on."""


def ab(args: argparse.Namespace) -> int:
    """One of the words that act on runs, or the kind of a new run."""
    house = House.of(args)
    if args.what is None:
        raise UsageError(
            "`ab` needs to know what to compare",
            "",
            "`qwen-console ab mtp` compares MTP off and on; `qwen-console ab list` shows the runs that were made; "
            "`qwen-console ab --help` lists all",
        )
    see_that_all_means_something(args)
    runs.see_readable(house)
    if args.what == "resume":
        return _resume(house, args)
    if word := runs.WORDS.get(args.what):
        return word(house, args)
    if args.what == "replay":
        _replay(args)
    if args.rest:
        raise UsageError(f"`ab {args.what}` takes no {' '.join(args.rest)!r}", "", "`qwen-console ab --help`")
    return _run(house, args)


def _replay(args: argparse.Namespace) -> None:
    """`ab replay FILE`: the recorded requests on the arms that are given, or on equal ones."""
    if len(args.rest) != 1:
        raise UsageError("`ab replay` takes one file", "", "`qwen-console ab replay FILE.jsonl --b k=v`")
    args.replay, args.rest = Path(args.rest[0]), []
    args.what = "custom" if args.a or args.b else "aa"


def _run(house: House, args: argparse.Namespace) -> int:
    from console.lab.launch import launch
    from console.lab.replay import read_recorded

    recorded = read_recorded(args.replay) if args.replay else ()
    plan = _plan(house, args, recorded)
    if args.dry_run:
        if args.json:
            show_json(covered(plan.to_json()))
        else:
            show(plan_lines(plan))
        return Exit.OK
    run_id = launch(house.paths, plan, interrupt=args.interrupt, recorded=recorded)
    for line in (f"run {run_id}", *plan_lines(plan)):
        say(line)
    return _see(house, args, run_id)


def _resume(house: House, args: argparse.Namespace) -> int:
    from console.lab.resume import resume

    run_id = resume(house.paths, args.rest[0] if args.rest else None, interrupt=args.interrupt)
    say(f"run {run_id} goes on")
    return _see(house, args, run_id)


def _see(house: House, args: argparse.Namespace, run_id: str) -> int:
    """Follow a run to its end, unless nobody wants to wait."""
    if args.no_wait:
        offer(run_id)
        return Exit.OK
    try:
        view = _follow(house.paths.run(run_id))
    except KeyboardInterrupt:
        say(f"\nleft alone: the run goes on; `qwen-console ab show {run_id}`, `qwen-console ab stop`")
        return Exit.INTERRUPTED
    runs.print_report(house.paths.run(run_id), as_json=args.json)
    return _outcome(view)


def _plan(house: House, args: argparse.Namespace, recorded: tuple[Job, ...]) -> Plan:
    from console.lab.plan import make_plan

    preset = house.preset(args.preset)
    plan = make_plan(
        args.what,
        preset,
        rounds=args.rounds,
        size=args.size,
        quick=args.quick,
        arms=_words(args.arms),
        a=parse_assignments(args.a) or None,
        b=parse_assignments(args.b) or None,
        changes=parse_assignments(args.changes),
        seed=args.seed,
        known=known(house, preset),
        workloads=_words(args.workloads),
        replays=len(recorded),
        time_budget_s=args.time_budget,
        early=not args.all_rounds,
    )
    return _beside_what_runs(house, plan)


def _beside_what_runs(house: House, plan: Plan) -> Plan:
    """The plan with what the running server has otherwise than the file that is measured."""
    from console.lab.difference import changes_of_file

    changes = changes_of_file(house.server.running_preset(), plan.base)
    if not changes:
        return plan
    note = f"the file of {plan.base.name} is measured, and its server was started otherwise: {'; '.join(changes)}"
    return replace(plan, notes=(note, *plan.notes))


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def known(house: House, preset: Preset) -> Known:
    """What the last life of this very preset told, and what its last runs and starts did."""
    from console.lab.history import remembered
    from console.server.starts import past_starts

    past = remembered(house.paths, preset)
    spans = [start.total_s for start in past_starts(house.paths, preset.name)[-_STARTS:]]
    if spans:
        past = replace(past, start_s=median(spans))
    if past.block_tokens is None:
        past = replace(past, block_tokens=_computed_block(preset))
    record = house.server.record()
    if record is None or not record.preset or record.preset["name"] != preset.name:
        return past
    facts = house.server.facts()
    return replace(
        past,
        block_tokens=facts.block_tokens or _told_block(house) or past.block_tokens,
        start_s=past.start_s or facts.init_seconds,
        version=facts.version or past.version,
    )


def _told_block(house: House) -> int | None:
    """The cache block as that life's first page of metrics told it: not every log does."""
    from console.metrics.exposition import MetricsError, parse
    from console.metrics.vllm import read

    page = house.server.baseline()
    try:
        return read(parse(page), 0.0).facts.block_tokens if page else None
    except MetricsError:
        return None


def _computed_block(preset: Preset) -> int | None:
    """The cache block as it follows from the model's files, where they lie on this machine."""
    from console.lint.check import memory_plan
    from console.memory.files import find
    from console.presets import child_env

    memory, _, _ = memory_plan(preset, find(preset.model, child_env(preset)))
    return memory.block_tokens if memory else None


def plan_one_key_run(house: House, kind: str, preset: Preset, rounds: int | None = None) -> Plan:
    """The plan behind one key of the console: that of the verb; in a demo short, so that it ends while one looks.

    Args:
        rounds: how many; by default what the size wants, in a demo two.
    """
    from console.lab.plan import make_plan

    if not house.demo:
        return _beside_what_runs(house, make_plan(kind, preset, rounds=rounds, known=known(house, preset)))
    second = "interference" if kind == "chunk" else "decode"
    workloads = ("agent", second)
    plan = make_plan(kind, preset, size="small", rounds=rounds or 2, workloads=workloads, known=known(house, preset))
    return _beside_what_runs(house, plan)


def plan_lines(plan: Plan) -> list[str]:
    """A plan in words."""
    from console.lab.difference import arm_texts

    simulated = " SIMULATED" if plan.base.simulated else ""
    lines = [
        f"{plan.kind} on {plan.base.name}{simulated}",
        f"  arms     {' · '.join(arm.name for arm in plan.arms)}; order {' '.join(plan.order)}",
        f"  differs  {', '.join(plan.differs) or 'nothing (this is the noise floor)'}",
        *(f"           {text}" for text in arm_texts(plan)),
        f"  measures {', '.join(plan.workloads)}; size {plan.size}, {plan.rounds_text}",
        f"  about    {units.duration(plan.estimate_s)}; clients are refused meanwhile",
    ]
    return [*lines, *(f"  note     {note}" for note in plan.notes)]


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
    if view.resumable:
        say(f"  `qwen-console ab resume {view.id}` goes on with it")
    return Exit.FAILED
