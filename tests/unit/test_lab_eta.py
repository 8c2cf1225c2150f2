"""The estimate of a run that goes on: steady, and one with the part that is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from console.lab.eta import Outlook, outlook
from console.lab.journal import Event
from console.lab.plan import Plan
from console.lab.report import _boot_seconds
from console.lab.results import Results, read_results
from tests.unit.lab_runs import Speed, make_run

_START_S, _WARM_S, _STOP_S = 30.0, 10.0, 3.0


def empty(planned_s: float) -> Results:
    """A run of two rounds that nothing has happened in yet."""
    made = make_run("mtp", rounds=2)
    found = read_results(made.folder)
    assert found is not None
    return replace(found, plan=replace(found.plan, estimate_s=planned_s))


def journal(plan: Plan, request_s: Sequence[float], probes_s: float = 40.0, primed_s: float = 0.0) -> Iterator[Event]:
    """A whole run; `request_s` is what a request takes in each boot."""
    at = 1000.0
    yield {"event": "run-start", "at": at}
    for n, round_number, arm in plan.boots():
        place = {"n": n, "arm": arm, "round": round_number}
        yield {"event": "boot-start", "at": at, **place}
        if primed_s and n == 1:
            yield {"event": "primed", "at": (at := at + primed_s), **place}
        yield {"event": "boot-ready", "at": (at := at + _START_S), "n": n}
        yield {"event": "warm", "at": (at := at + _WARM_S), "n": n}
        for _ in range(plan.requests):
            yield {"event": "request", "at": (at := at + request_s[n - 1]), "n": n, "workload": "agent"}
        if round_number == 1:
            yield {"event": "step", "at": at, "n": n, "text": "probes: tool calls"}
            at += probes_s
        yield {"event": "step", "at": at, "n": n, "text": "stopping"}
        yield {"event": "boot-end", "at": (at := at + _STOP_S), **place}


def told(results: Results, events: Sequence[Event]) -> list[Outlook]:
    """What is told every second, by somebody who looks at the journal anew each time."""
    begin, end = int(events[0]["at"]), int(events[-1]["at"])
    looks = range(begin, end + 1)
    return [outlook(replace(results, events=[e for e in events if e["at"] <= now]), float(now)) for now in looks]


def rises(found: Sequence[Outlook]) -> list[tuple[float, float]]:
    """Where the estimate went up."""
    lefts = [one.left_s for one in found]
    return [(a, b) for a, b in pairwise(lefts) if b > a + 0.01]


def test_an_estimate_never_rises_while_the_run_goes_as_it_went() -> None:
    """The first round has probes, the first boot a priming start, and the plan guessed well."""
    results = empty(400.0)
    pace = 40.0 / results.plan.requests
    for primed_s in (0.0, 25.0):
        events = list(journal(results.plan, [pace] * 4, primed_s=primed_s))
        found = told(results, events)
        assert rises(found) == []
        assert found[-1].left_s < 1.0
        truth = [events[-1]["at"] - events[0]["at"] - second for second in range(len(found))]
        half = len(found) // 2
        assert all(abs(one.left_s - true) < 12.0 for one, true in zip(found[half:], truth[half:], strict=True))


def test_the_part_that_is_done_never_falls_and_fits_the_time_that_is_left() -> None:
    results = empty(100.0)
    pace = 40.0 / results.plan.requests
    found = told(results, list(journal(results.plan, [pace, pace, 3 * pace, pace])))
    parts = [one.part for one in found]
    assert parts == sorted(parts)
    whole = len(found)
    for second, one in enumerate(found):
        assert one.part <= 0.99 or one.left_s < 0.02 * whole, (second, one)
    assert found[-1].part > 0.99


def test_a_run_that_got_slower_is_told_so() -> None:
    results = empty(400.0)
    pace = 40.0 / results.plan.requests
    found = told(results, list(journal(results.plan, [pace, pace, 8 * pace, pace])))
    assert rises(found)


def test_a_plan_that_guessed_far_too_little_is_put_right_in_the_first_boot() -> None:
    results = empty(40.0)
    pace = 40.0 / results.plan.requests
    events = list(journal(results.plan, [pace] * 4))
    found = told(results, events)
    first = next(i for i, one in enumerate(range(len(found))) if events[0]["at"] + one >= 1083.0)
    assert found[first].left_s > 150.0
    assert rises(found[first + 45 :]) == []


def test_before_the_first_boot_the_plan_is_the_estimate_and_a_resumed_run_begins_anew() -> None:
    results = empty(400.0)
    assert outlook(replace(results, events=[]), 0.0) == Outlook(400.0, 0.0)
    events = list(journal(results.plan, [1.0] * 4))
    cut = [event for event in events if event["event"] != "boot-end" or event["n"] < 3]
    cut = [event for event in cut if event.get("n", 0) < 4]
    later = cut[-1]["at"] + 90_000.0
    found = outlook(replace(results, events=[*cut, {"event": "resumed", "at": later}]), later)
    boot = _START_S + _WARM_S + results.plan.requests + _STOP_S
    assert abs(found.left_s - 2 * boot) < 1.0
    assert 0.4 < found.part < 0.7


def test_a_clock_that_is_set_back_within_a_run_makes_no_time_go_backwards() -> None:
    results = empty(planned_s=1500.0)
    events = list(journal(results.plan, [2.0] * 4))
    cut = len(events) // 2
    jumped = [*events[:cut], *({**event, "at": float(event["at"]) - 10_000.0} for event in events[cut:])]
    for n in range(1, len(events)):
        usual = outlook(replace(results, events=events[:n]), float(events[n - 1]["at"]))
        found = outlook(replace(results, events=jumped[:n]), float(jumped[n - 1]["at"]))
        assert found.left_s >= 0
        # What passed while the clock was set nobody knows.
        assert abs(found.part - usual.part) < 0.15


def test_boots_in_which_the_clock_was_set_foretell_nothing() -> None:
    made = make_run("mtp", rounds=1)
    for place in made.plan.boots():
        made.boot(place, Speed())
    results = read_results(made.folder)
    assert results is not None
    ends = [event for event in results.events if event["event"] == "boot-end"]
    moved = [{**e, "at": float(e["at"]) - 9000.0} if e is ends[0] else e for e in results.events]
    assert _boot_seconds(replace(results, events=moved)) >= 0
    moved = [{**e, "at": float(e["at"]) - 9000.0} if e in ends else e for e in results.events]
    assert _boot_seconds(replace(results, events=moved)) == 0.0
