"""A finished run as report.json (the contract of `ab show --json`) and report.md: one source, so the same numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from console import __version__
from console.errors import NothingError
from console.lab.history import write_spread
from console.lab.jobs import GREEDY
from console.lab.journal import FILE, read_events, write_json
from console.lab.judge import noise_floor
from console.lab.markdown import render
from console.lab.measures import MEASURES
from console.lab.own_arm import own_arm
from console.lab.pictures import picture_names, write_pictures
from console.lab.probes.divergence import diverge
from console.lab.results import BootResult, Results, read_results
from console.lab.trace import Trace
from console.lab.view import RunView, readable, run_state, view_of
from console.presets.secrecy import covered
from console.units import finite

SCHEMA = 1
JSON_FILE, MARKDOWN_FILE = "report.json", "report.md"


def to_json(run_dir: Path) -> dict[str, Any]:
    """The run as `ab show ID --json` prints it, whether it has ended or not.

    Raises:
        NothingError: the folder holds no run.
        UnreadableRun: its journal is not what a lab writes.
    """
    with readable(run_dir):
        report: dict[str, Any] = finite(_report(run_dir))
        return report


def _report(run_dir: Path) -> dict[str, Any]:
    events = read_events(run_dir)
    results = read_results(run_dir, events)
    if results is None:
        raise NothingError(
            f"there is no run {run_dir.name}", "its folder or its plan is missing", "`qwen-console ab list` shows all"
        )
    view = view_of(results, run_state(run_dir, events), time.time())
    return _json(results, view, run_dir)


def write_reports(run_dir: Path) -> None:
    """Write report.json, report.md and its pictures from the journal; may be done again at any time."""
    results = read_results(run_dir)
    if results is not None:
        write_pictures(run_dir, results)
        leave_spread(run_dir, results)
    report = to_json(run_dir)
    write_json(run_dir / JSON_FILE, report)
    (run_dir / MARKDOWN_FILE).write_text(render(report), encoding="utf-8")


def leave_spread(run_dir: Path, results: Results) -> None:
    """What later runs may borrow of this one."""
    valid = [boot for boot in results.boots if boot.valid]
    if not valid:
        return
    env = valid[0].env
    if any(boot.env.get(key) != env.get(key) for boot in valid for key in ("vllm", "driver")):
        # Boots of two versions: their spread is neither's.
        return
    spreads = {name: metric.own for name, metric in results.metrics.items()}
    write_spread(run_dir, results.plan, env, spreads, noise_floor(results), _boot_seconds(results))


def _boot_seconds(results: Results) -> float:
    starts = {event["n"]: event["at"] for event in results.events if event["event"] == "boot-start"}
    spans = [event["at"] - starts[event["n"]] for event in results.events if event["event"] == "boot-end"]
    # By the wall clock, which may have been set within one of them.
    return float(median([span for span in spans if span > 0] or [0.0]))


def _json(results: Results, view: RunView, run_dir: Path) -> dict[str, Any]:
    plan = results.plan
    names = [arm.name for arm in plan.arms]
    return {
        "schema": SCHEMA,
        "id": results.id,
        "kind": plan.kind,
        "preset": plan.base.name,
        "simulated": view.simulated,
        "state": view.state,
        "versions": _versions(results),
        "plan": {
            "arms": [{"name": arm.name, "overrides": covered(plan.shown(arm.overrides))} for arm in plan.arms],
            "own_arm": own_arm(plan),
            "differs": list(plan.differs),
            "rounds": plan.rounds,
            "order": list(plan.order),
            "seed": plan.seed,
            "size": plan.size,
            "workloads": list(plan.workloads),
            "estimate_s": plan.estimate_s,
            "time_budget_s": plan.time_budget_s,
            "may_end_early": plan.early,
        },
        "boots": [_boot(boot) for boot in view.boots],
        "metrics": {
            name: {
                "title": MEASURES[name].title,
                "unit": MEASURES[name].unit,
                "judged": MEASURES[name].judged,
                "arms": {arm: asdict(figure) for arm, figure in metric.arms.items()},
                "compare": [asdict(pair) | {"warnings": list(pair.warnings)} for pair in metric.compare],
            }
            for name, metric in view.metrics.items()
        },
        "mtp": {name: _mtp(results, name) for name in names},
        "probes": {name: _probes(results, name) for name in names},
        "divergence": {name: _divergence(results, name) for name in names[1:]},
        "noise_floor": None if results.lent.floor is None else asdict(results.lent.floor),
        "pooled_runs": list(results.lent.runs),
        "settled": view.settled,
        "verdict": None
        if view.verdict is None
        else {
            "overall": view.verdict.overall,
            "sentence": view.verdict.sentence,
            "arm": view.verdict.arm,
            "why": list(view.verdict.why),
        },
        "warnings": [*view.warnings, *_ending(view)],
        "pictures": [
            {"file": name, "shows": text} for name, text in picture_names(results) if (run_dir / name).is_file()
        ],
        "journal": str(run_dir / FILE),
    }


def _versions(results: Results) -> dict[str, Any]:
    def seen(key: str) -> list[str]:
        found = {str(boot.env[key]) for boot in results.boots if boot.env.get(key) is not None}
        # A boot that died early tells only what its log says, which has no build (`+cpu`) behind the number.
        return sorted(one for one in found if not any(other.startswith(f"{one}+") for other in found))

    return {"console": __version__, "vllm": seen("vllm"), "driver": seen("driver")}


def _boot(boot: BootResult) -> dict[str, Any]:
    return {
        "n": boot.n,
        "arm": boot.arm,
        "round": boot.round,
        "valid": boot.valid,
        "reason": boot.reason,
        "crash": None if boot.crash is None else dict(boot.crash),
        "outcomes": dict(boot.outcomes),
        "env": dict(boot.env),
    }


def _mtp(results: Results, arm: str) -> Mapping[str, Any] | None:
    if results.plan.preset_of(arm).speculative is None:
        return None
    start, end, whole = results.drafts(arm)
    long = results.after_long(arm)
    boots = results.valid(arm)
    return {
        "acceptance_start": start.acceptance if start else None,
        "acceptance_end": end.acceptance if end else None,
        "acceptance_after_long_prompt": long.acceptance if long else None,
        "mean_acceptance_length": whole.mean_length if whole else None,
        "per_position": list(whole.rates) if whole else None,
        "tokens_past_natural_end": sum(boot.past_natural for boot in boots),
    }


def _probes(results: Results, arm: str) -> dict[str, Any]:
    notes = results.probe_notes(arm)
    return {
        probe: {"passed": passed, "of": of, "note": notes.get(probe)}
        for probe, (passed, of) in results.probes(arm).items()
    }


def _divergence(results: Results, arm: str) -> Mapping[str, Any] | None:
    found = diverge(_greedy(results, arm), _greedy(results, results.plan.arms[0].name))
    return None if found is None else {**asdict(found), "first": list(found.first), "median_first": found.median_first}


def _greedy(results: Results, arm: str) -> dict[str, Trace]:
    """The greedy answers of an arm by round and place."""
    return {
        f"{boot.round}/{request.key}": request.trace
        for boot in results.valid(arm)
        for request in boot.sent
        if request.phase == GREEDY and request.trace.ok
    }


def _ending(view: RunView) -> list[str]:
    return [text for text in (view.problem,) if text]
