"""How far a run has come in steps, and how long the rest will take."""

from __future__ import annotations

from console.lab.results import BEGINNINGS, Results


def steps_per_boot(results: Results) -> int:
    """Start, warm-up, every measured request, stop."""
    return results.plan.requests + 3


def steps_done(results: Results) -> int:
    gone, in_boot = set[int](), 0
    for event in results.events:
        if event["event"] == "boot-start":
            in_boot = 0
        elif event["event"] in ("boot-ready", "warm") or (
            event["event"] == "request" and event["workload"] != "warm-up"
        ):
            in_boot += 1
        elif event["event"] in ("boot-end", "boot-skipped"):
            gone.add(event["n"])
            in_boot = 0
    return len(gone) * steps_per_boot(results) + in_boot


def seconds_left(results: Results, now: float) -> float:
    """From the boots of this run that have ended, by arm; before the first one ends, from the plan's estimate."""
    plan = results.plan
    spans: dict[str, list[float]] = {}
    started: dict[int, float] = {}
    gone: set[int] = set()
    for event in results.events:
        if event["event"] in BEGINNINGS:
            # A boot that was cut short by the run's end is made anew.
            started.clear()
        elif event["event"] == "boot-start":
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
