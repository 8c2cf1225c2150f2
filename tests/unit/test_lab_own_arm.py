"""Which arm the preset runs anyway, and what a verdict asks its owner to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.own_arm import to_change
from console.lab.plan import make_plan
from console.lab.report import to_json
from console.lab.verdict import ArmState, Finding, overall
from console.lab.view import read_run
from console.presets import Preset
from tests.unit.lab_runs import BASE, MTP, Speed, drafts, make_run

SPECULATES = replace(BASE, args={**BASE.args, **MTP})
NONE = "No arm is what small runs (max-num-batched-tokens 2048): whether to leave that is not measured"


@pytest.mark.parametrize(
    ("kind", "preset", "slow", "ending"),
    [
        ("mtp", BASE, "on", "small itself runs off: nothing to change"),
        ("mtp", BASE, "off", "small itself runs off: on is the change"),
        ("mtp", SPECULATES, "on", "small itself runs on: off is the change"),
        ("mtp", SPECULATES, "off", "small itself runs on: nothing to change"),
        ("mtp", SPECULATES, "", "small itself runs on: it is no worse than off, so nothing asks for a change"),
        ("chunk", BASE, "", NONE),
    ],
)
def test_a_verdict_says_what_there_is_to_change(kind: str, preset: Preset, slow: str, ending: str) -> None:
    made = make_run(kind, preset, arms=["512", "1024"] if kind == "chunk" else [])
    for place in made.plan.boots():
        made.boot(place, Speed(0.040 if place[2] == slow else 0.030), drafts=drafts() if place[2] == "on" else None)
    made.end()
    report = to_json(made.folder)
    assert report["verdict"]["sentence"].endswith(ending)
    assert report["plan"]["own_arm"] == (None if kind == "chunk" else "off" if preset is BASE else "on")
    assert read_run(made.folder).own_arm == report["plan"]["own_arm"]


def _found(tpot: str, ttft: str) -> list[Finding]:
    ratios = {"better": 0.5, "worse": 1.5, "equivalent": 1.0, "undecided": 1.02}
    words = {"decode.tpot_s": tpot, "agent.ttft_cold_s": ttft}
    return [Finding(name, name, w, ratios[w], ratios[w] * 0.98, ratios[w] * 1.02) for name, w in words.items()]


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
@pytest.mark.parametrize("preset", [BASE, SPECULATES])
@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("ttft", ["better", "worse", "equivalent", "undecided"])
@pytest.mark.parametrize("tpot", ["better", "worse", "equivalent", "undecided"])
def test_no_verdict_contradicts_what_it_asks_for(
    tpot: str, ttft: str, broken: bool, preset: Preset, rounds: int
) -> None:
    plan = make_plan("mtp", preset, size="small", rounds=rounds, seed=1)
    on = ArmState("on", rounds, speculates=True, acceptance=(0.8, 0.8), crashes=("it died",) if broken else ())
    found = overall("mtp", rounds, ArmState("off", rounds), on, _found(tpot, ttft), primary="decode.tpot_s")
    change = str(to_change(plan, found, {"on": found}))
    own = "off" if preset is BASE else "on"
    assert change.startswith(f"small itself runs {own}: ")
    assert ("holds" in found.sentence) == (found.overall == "keep")
    assert found.sentence.startswith("adopt on") == (found.overall == "adopt")
    asked = change.endswith(" is the change")
    if found.overall == "undecided":
        assert rounds < 3 or "not settled" in found.sentence
        assert change.endswith("nothing is settled, so nothing asks for a change")
    elif found.overall == "adopt":
        assert change.endswith("on is the change" if own == "off" else "nothing to change")
    elif own == "off":
        assert change.endswith("yours to say" if found.trade else "nothing to change")
    elif found.against:
        assert change.endswith("off is the change")
    else:
        assert not asked
        assert ("yours to say" in change) == found.trade
