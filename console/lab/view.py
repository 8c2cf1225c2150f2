"""A run as a screen or a verb shows it, read from its folder; cheap enough to be asked every second."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console.lab.journal import Event, read_events
from console.lab.judge import judge
from console.lab.results import BootResult, Metric, Results, read_results
from console.lab.verdict import Verdict
from console.paths import Paths
from console.server.run_lock import run_is_live

LATENESS_LIMIT_S = 0.005
"""Above this the client's own event loop was late enough to colour stamps."""


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
    differs: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    rounds: int = 0
    size: str = ""
    quick: bool = False
    done: int = 0
    """Steps done, of `planned`."""
    planned: int = 1
    step: str = ""
    """What happens now: `round 1/2 · on · decode 3/6`."""
    elapsed_s: float | None = None
    eta_s: float | None = None
    """Seconds to the end of the last boot; `None` once it has ended."""
    boots: tuple[BootResult, ...] = ()
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    verdict: Verdict | None = None
    """Once everything is measured: what ran before may still be on its way up."""
    restored: str | None = None
    """What runs again afterwards, or why it does not."""
    warnings: tuple[str, ...] = ()
    problem: str | None = None
    """Why a run failed or was interrupted."""

    @property
    def progress(self) -> float:
        """0..1."""
        return min(1.0, self.done / self.planned) if self.planned else 0.0

    @property
    def ok(self) -> bool:
        """Whether `ab` ends with 0: the run is done, no arm crashed, and its verdict is not invalid."""
        crashed = any(boot.crash for boot in self.boots)
        return self.state == "done" and not crashed and self.verdict is not None and self.verdict.overall != "invalid"


def read_run(run_dir: Path, now: float | None = None) -> RunView:
    """The run in this folder; a folder that holds no readable plan is a failed run, not an error.

    Args:
        run_dir: the run's folder.
        now: wall clock seconds (the machine's by default).
    """
    events = read_events(run_dir)
    results = read_results(run_dir, events)
    if results is None:
        return RunView(run_dir.name, "failed", problem="its plan.json is missing or cannot be read")
    return view_of(results, run_state(run_dir, events), time.time() if now is None else now)


def run_state(run_dir: Path, events: Sequence[Event]) -> str:
    """running, done, interrupted or failed; a run without an end whose process is gone was interrupted."""
    ends = [event for event in events if event["event"] == "run-end"]
    if ends:
        return str(ends[-1]["state"])
    state = run_dir.parents[1]
    live = run_is_live(Paths(state=state, config=state, cache=state))
    return "running" if live == run_dir.name else "interrupted"


def view_of(results: Results, state: str, now: float) -> RunView:
    """The same from results already read."""
    plan = results.plan
    start, end = results.last("run-start"), results.last("run-end")
    begun = start["at"] if start else None
    until = end["at"] if end else now
    ended = state != "running"
    restored = results.last("restored")
    return RunView(
        id=results.id,
        state=state,
        kind=plan.kind,
        preset=plan.base.name,
        simulated=is_simulated(results),
        arms=tuple(arm.name for arm in plan.arms),
        differs=plan.differs,
        order=plan.order,
        rounds=plan.rounds,
        size=plan.size,
        quick=plan.quick,
        done=_done(results),
        planned=len(plan.order) * steps_per_boot(results),
        step="" if ended else _step(results),
        elapsed_s=None if begun is None else max(0.0, until - begun),
        eta_s=None if ended else _eta(results, now),
        boots=results.boots,
        metrics=results.metrics,
        verdict=judge(results, finished=_finished(results, state)) if ended or results.last("measured") else None,
        restored=str(restored["text"]) if restored else None,
        warnings=warnings_of(results),
        problem=str(end["note"]) if end and end.get("note") else None,
    )


def _finished(results: Results, state: str) -> bool:
    """Whether every boot of the plan was made that had to be."""
    measured = results.last("measured")
    return state == "done" or (state == "running" and measured is not None and measured["state"] == "done")


def is_simulated(results: Results) -> bool:
    """Whether the stand-in engine gave these numbers, by the preset or by the server's own version."""
    versions = [str(boot.env.get("vllm") or "") for boot in results.boots]
    return results.plan.base.simulated or any(version.endswith("sim") for version in versions)


def steps_per_boot(results: Results) -> int:
    """Start, warm-up, every measured request, stop."""
    return results.plan.shape.requests + 3


def _done(results: Results) -> int:
    done, in_boot = 0, 0
    for event in results.events:
        if event["event"] == "boot-start":
            in_boot = 0
        elif event["event"] in ("boot-ready", "warm") or (
            event["event"] == "request" and event["workload"] != "warm-up"
        ):
            in_boot += 1
        elif event["event"] == "boot-end":
            done, in_boot = done + steps_per_boot(results), 0
        elif event["event"] == "boot-skipped":
            done += steps_per_boot(results)
    return done + in_boot


def _step(results: Results) -> str:
    boot, step = results.last("boot-start"), results.last("step")
    if boot is None:
        return str(step["text"]) if step else "about to start"
    where = f"round {boot['round']}/{results.plan.rounds} · {boot['arm']}"
    if step is None or step.get("n") is None:
        return str(step["text"]) if step else where
    return f"{where} · {step['text']}" if step["n"] == boot["n"] else where


def _eta(results: Results, now: float) -> float | None:
    """From the boots of this run that have ended, by arm; before the first one ends, from the plan's estimate."""
    plan = results.plan
    spans: dict[str, list[float]] = {}
    started: dict[int, float] = {}
    gone: set[int] = set()
    for event in results.events:
        if event["event"] == "boot-start":
            started[event["n"]] = event["at"]
        elif event["event"] == "boot-end":
            spans.setdefault(event["arm"], []).append(event["at"] - started.get(event["n"], event["at"]))
            gone.add(event["n"])
        elif event["event"] == "boot-skipped":
            gone.add(event["n"])
    known = [span for values in spans.values() for span in values]
    usual = sum(known) / len(known) if known else plan.estimate_s / max(len(plan.order), 1)
    left = 0.0
    for n, _, arm in plan.boots():
        if n in gone:
            continue
        span = sum(spans[arm]) / len(spans[arm]) if arm in spans else usual
        left += max(span - (now - started[n]), 0.0) if n in started else span
    return left


def warnings_of(results: Results) -> tuple[str, ...]:
    """Everything that a reader of the numbers has to know, each once."""
    found = list(results.plan.notes)
    if results.plan.quick or results.plan.rounds == 1:
        found.append("one round only suggests: no interval here comes from repeated starts")
    found += [str(event["text"]) for event in results.events if event["event"] == "warning"]
    for boot in results.boots:
        if not boot.valid:
            found.append(f"boot {boot.n} ({boot.arm}) does not count: {boot.reason}")
        found += [f"boot {boot.n} ({boot.arm}): {text}" for text in boot.warnings]
        late = boot.env.get("client_lateness_s")
        if late is not None and late > LATENESS_LIMIT_S:
            found.append(f"boot {boot.n} ({boot.arm}): the client itself ran up to {late * 1000:.1f} ms late (p99)")
    found += [*_uncacheable(results), *_environment(results)]
    return tuple(dict.fromkeys(found))


def _uncacheable(results: Results) -> list[str]:
    """Arms in which the agent's prefix is too short for any of it to come from the cache."""
    found = []
    for arm in results.plan.arms:
        preset = results.plan.preset_of(arm.name)
        blocks = [int(block) for boot in results.valid(arm.name) if (block := boot.env.get("block_tokens"))]
        # Under speculation the last block that matches is computed again.
        needed = 2 if preset.speculative is not None else 1
        if preset.args.get("enable-prefix-caching") is False or not blocks:
            continue
        prefix, block = results.plan.shape.prefix_tokens, max(blocks)
        if prefix < needed * block:
            found.append(
                f"{arm.name}: {needed} cache block{'s' if needed > 1 else ''} of {block} tokens would be needed before "
                f"anything is taken from the cache; the agent's prefix has {prefix}: a larger --size has more"
            )
    return found


def _environment(results: Results) -> list[str]:
    """Facts that should be equal over all boots, and are not."""
    found = []
    for key, title in (("vllm", "vLLM's version"), ("block_tokens", "the cache block"), ("kernel", "the NVFP4 kernel")):
        seen = {str(boot.env.get(key)): boot for boot in results.boots if boot.valid and boot.env.get(key) is not None}
        if len(seen) > 1:
            found.append(f"{title} differs between boots: " + ", ".join(f"{v} ({b.arm})" for v, b in seen.items()))
    caches = {boot.env.get("compile_cache") for boot in results.boots if boot.valid} - {None}
    if len(caches) > 1:
        found.append("some boots compiled anew and some from the cache: their starts do not compare")
    return found
