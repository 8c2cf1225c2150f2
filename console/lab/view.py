"""A run as a screen or a verb shows it, read from its folder; cheap enough to be asked every second."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from console.errors import ConsoleError
from console.lab.difference import arm_texts
from console.lab.eta import outlook, steps_done, steps_per_boot
from console.lab.history import Floor
from console.lab.journal import Event, read_events
from console.lab.judge import judge
from console.lab.own_arm import own_arm
from console.lab.results import BEGINNINGS, PLAN_FILE, BootResult, Metric, Results, read_results
from console.lab.to_know import warnings_of
from console.lab.verdict import Verdict
from console.lab.words import run_word
from console.paths import Paths
from console.presets import Preset
from console.server.run_lock import run_is_live

_TO_LIVE_S = 30.0
"""So long after its folder a run's process may need to say its first word."""


@dataclass(frozen=True, slots=True)
class RunView:
    """One run at one moment."""

    id: str
    state: str
    """running, done, interrupted, or failed (the run itself could not go on)."""
    kind: str = ""
    preset: str = ""
    simulated: bool = False
    arms: tuple[str, ...] = ()
    own_arm: str | None = None
    """The arm that is the preset as it is; `None` where none is."""
    differs: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    """What each arm sets otherwise than the first one, from what to what."""
    first: Preset | None = None
    """What the first arm runs: the preset with `--set` and the arm's own settings."""
    order: tuple[str, ...] = ()
    rounds: int = 0
    size: str = ""
    workloads: tuple[str, ...] = ()
    quick: bool = False
    done: int = 0
    """Steps done, of `planned`."""
    planned: int = 1
    step: str = ""
    """What happens now: `round 1/2 · on · decode 3/6`."""
    arm: str | None = None
    """The arm whose boot is under way; `None` between two."""
    elapsed_s: float | None = None
    eta_s: float | None = None
    """Seconds to the end of the last boot; `None` once it has ended."""
    part: float | None = None
    """Time gone of all it will take, 0..1, as the estimate has it; `None` once it has ended."""
    boots: tuple[BootResult, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    verdict: Verdict | None = None
    """Once everything is measured: what ran before may still be on its way up."""
    restored: str | None = None
    """What runs again afterwards, or why it does not."""
    warnings: tuple[str, ...] = ()
    problem: str | None = None
    """Why a run failed or was interrupted."""
    settled: str | None = None
    """Why it ended before its last round: the verdict was settled."""
    lent_runs: tuple[str, ...] = ()
    """Earlier runs whose boot-to-boot spread the intervals also rest on."""
    floor: Floor | None = None
    """The newest A/A noise floor of this preset."""

    @property
    def word(self) -> str:
        """One word for it: the verdict's; the state's, if the run did not come to its end; an A/A run's noise floor."""
        return run_word(self.kind, self.state, self.verdict.overall if self.verdict else None)

    @property
    def resumable(self) -> bool:
        """Whether `ab resume` has anything to do."""
        return self.state in ("interrupted", "failed") and bool(self.order)

    @property
    def progress(self) -> float:
        """0..1; while it goes on in time, so that it fits the estimate beside it."""
        if self.part is not None:
            return self.part
        return min(1.0, self.done / self.planned) if self.planned else 0.0

    @property
    def ok(self) -> bool:
        """Whether `ab` ends with 0: the run is done, no arm crashed, and its verdict is not invalid."""
        crashed = any(boot.crash for boot in self.boots)
        return self.state == "done" and not crashed and self.verdict is not None and self.verdict.overall != "invalid"


UNREADABLE = "its journal cannot be read"


class UnreadableRun(ConsoleError):
    """What stands in a run's folder is not what a lab writes."""

    def __init__(self, run_dir: Path, error: Exception) -> None:
        why = f"{UNREADABLE} ({type(error).__name__}: {error})"
        super().__init__(f"the run {run_dir.name} cannot be shown", why[:200], f"see {run_dir}, or remove it")


@contextmanager
def readable(run_dir: Path) -> Iterator[None]:
    """Within the block, whatever an oddly shaped journal or plan breaks is one error of this run.

    Raises:
        UnreadableRun: something broke.
    """
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise UnreadableRun(run_dir, error) from None


def read_run(run_dir: Path, now: float | None = None) -> RunView:
    """The run in this folder; a folder that holds no readable plan is a failed run, not an error.

    Args:
        run_dir: the run's folder.
        now: wall clock seconds (the machine's by default).
    """
    try:
        with readable(run_dir):
            events = read_events(run_dir)
            results = read_results(run_dir, events)
            if results is None:
                return RunView(run_dir.name, "failed", problem="its plan.json is missing or cannot be read")
            view = view_of(results, run_state(run_dir, events), time.time() if now is None else now)
            # What a table shows of it is made here once, so that one odd run cannot break the list of all.
            str((view.word, view.preset, view.progress, view.ok))
            return view
    except UnreadableRun:
        return RunView(run_dir.name, "failed", problem=UNREADABLE)


def ended(run_dir: Path) -> bool:
    """Whether the run wrote its own end, since it was begun or resumed."""
    newest = next((e for e in reversed(read_events(run_dir)) if e["event"] in (*BEGINNINGS, "run-end")), None)
    return newest is not None and newest["event"] == "run-end"


def run_state(run_dir: Path, events: Sequence[Event]) -> str:
    """running, done, interrupted or failed; a run without an end whose process is gone was interrupted."""
    newest = next((event for event in reversed(events) if event["event"] in (*BEGINNINGS, "run-end")), None)
    if newest is not None and newest["event"] == "run-end":
        return str(newest["state"])
    if newest is None and _is_young(run_dir):
        # Its folder is there before its process is.
        return "running"
    state = run_dir.parents[1]
    live = run_is_live(Paths(state=state, config=state, cache=state))
    return "running" if live == run_dir.name else "interrupted"


def _is_young(run_dir: Path) -> bool:
    try:
        age = time.time() - (run_dir / PLAN_FILE).stat().st_mtime
    except OSError:
        return False
    return 0 <= age < _TO_LIVE_S


def view_of(results: Results, state: str, now: float) -> RunView:
    """The same from results already read."""
    plan = results.plan
    start, end = results.begun, results.last("run-end")
    begun = start["at"] if start else None
    until = end["at"] if end else now
    ended = state != "running"
    ahead = None if ended else outlook(results, now)
    restored, settled = results.last("restored"), results.last("settled")
    return RunView(
        id=results.id,
        state=state,
        kind=plan.kind,
        preset=plan.base.name,
        simulated=is_simulated(results),
        arms=tuple(arm.name for arm in plan.arms),
        own_arm=own_arm(plan),
        differs=plan.differs,
        changes=tuple(arm_texts(plan)),
        first=plan.preset_of(plan.arms[0].name),
        order=plan.order,
        rounds=plan.rounds,
        size=plan.size,
        workloads=plan.workloads,
        quick=plan.quick,
        done=steps_done(results),
        planned=len(plan.order) * steps_per_boot(results),
        step="" if ended else _step(results),
        arm=None if ended else _arm(results),
        elapsed_s=None if begun is None else max(0.0, until - begun),
        eta_s=ahead.left_s if ahead else None,
        part=ahead.part if ahead else None,
        boots=results.boots,
        metrics=results.metrics,
        verdict=judge(results, finished=_finished(results, state)) if ended or results.last("measured") else None,
        restored=str(restored["text"]) if restored else None,
        warnings=warnings_of(results),
        problem=str(end["note"]) if end and end.get("note") else None,
        settled=str(settled["text"]) if settled else None,
        lent_runs=results.lent.runs,
        floor=results.lent.floor,
    )


def _finished(results: Results, state: str) -> bool:
    """Whether every boot of the plan was made that had to be."""
    measured = results.last("measured")
    return state == "done" or (state == "running" and measured is not None and measured["state"] == "done")


def is_simulated(results: Results) -> bool:
    """Whether the stand-in engine gave these numbers, by the preset or by the server's own version."""
    versions = [str(boot.env.get("vllm") or "") for boot in results.boots]
    return results.plan.base.simulated or any(version.endswith("sim") for version in versions)


def _step(results: Results) -> str:
    boot, step = results.last("boot-start"), results.last("step")
    if boot is None:
        return str(step["text"]) if step else "about to start"
    where = f"round {boot['round']}/{results.plan.rounds} · {boot['arm']}"
    if step is None or step.get("n") is None:
        return str(step["text"]) if step else where
    return f"{where} · {step['text']}" if step["n"] == boot["n"] else where


def _arm(results: Results) -> str | None:
    boots = ("boot-start", "boot-end", "boot-skipped", *BEGINNINGS)
    newest = next((event for event in reversed(results.events) if event["event"] in boots), None)
    return str(newest["arm"]) if newest and newest["event"] == "boot-start" else None
