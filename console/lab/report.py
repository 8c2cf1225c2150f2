"""A finished run as report.json (the contract of `ab show --json`) and report.md: one source, so the same numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from console.errors import NothingError
from console.lab.journal import FILE, read_events, write_json
from console.lab.markdown import render
from console.lab.results import BootResult, Results, read_results
from console.lab.view import RunView, run_state, view_of

SCHEMA = 1
JSON_FILE, MARKDOWN_FILE = "report.json", "report.md"


def to_json(run_dir: Path) -> dict[str, Any]:
    """The run as `ab show ID --json` prints it, whether it has ended or not.

    Raises:
        NothingError: the folder holds no run.
    """
    events = read_events(run_dir)
    results = read_results(run_dir, events)
    if results is None:
        raise NothingError(
            f"there is no run {run_dir.name}", "its folder or its plan is missing", "`qwen-console ab list` shows all"
        )
    view = view_of(results, run_state(run_dir, events), time.time())
    return _json(results, view, run_dir)


def write_reports(run_dir: Path) -> None:
    """Write report.json and report.md from the journal; may be done again at any time."""
    report = to_json(run_dir)
    write_json(run_dir / JSON_FILE, report)
    (run_dir / MARKDOWN_FILE).write_text(render(report), encoding="utf-8")


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
        "plan": {
            "arms": [{"name": arm.name, "overrides": dict(arm.overrides)} for arm in plan.arms],
            "differs": list(plan.differs),
            "rounds": plan.rounds,
            "order": list(plan.order),
            "seed": plan.seed,
            "size": plan.size,
            "workloads": list(plan.workloads),
        },
        "boots": [_boot(boot) for boot in view.boots],
        "metrics": {
            name: {
                "arms": {arm: asdict(figure) for arm, figure in metric.arms.items()},
                "compare": [asdict(pair) | {"warnings": list(pair.warnings)} for pair in metric.compare],
            }
            for name, metric in view.metrics.items()
        },
        "mtp": {name: _mtp(results, name) for name in names},
        "probes": {
            name: {probe: {"passed": passed, "of": of} for probe, (passed, of) in results.probes(name).items()}
            for name in names
        },
        "verdict": None
        if view.verdict is None
        else {
            "overall": view.verdict.overall,
            "sentence": view.verdict.sentence,
            "why": list(view.verdict.why),
        },
        "warnings": [*view.warnings, *_ending(view)],
        "journal": str(run_dir / FILE),
    }


def _boot(boot: BootResult) -> dict[str, Any]:
    return {
        "n": boot.n,
        "arm": boot.arm,
        "round": boot.round,
        "valid": boot.valid,
        "reason": boot.reason,
        "crash": None if boot.crash is None else dict(boot.crash),
        "env": dict(boot.env),
    }


def _mtp(results: Results, arm: str) -> Mapping[str, Any] | None:
    if results.plan.preset_of(arm).speculative is None:
        return None
    start, end, whole = results.drafts(arm)
    return {
        "acceptance_start": start.acceptance if start else None,
        "acceptance_end": end.acceptance if end else None,
        "mean_acceptance_length": whole.mean_length if whole else None,
        "per_position": list(whole.rates) if whole else None,
    }


def _ending(view: RunView) -> list[str]:
    return [text for text in (view.problem,) if text]
