"""Which arm the preset runs anyway, and what a verdict asks its owner to change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.report import to_json
from console.lab.view import read_run
from console.presets import Preset
from tests.unit.lab_runs import BASE, MTP, Speed, drafts, make_run

SPECULATES = replace(BASE, args={**BASE.args, **MTP})
NONE = "No arm is what small runs (max-num-batched-tokens 2048): whether to leave that is not measured"


@pytest.mark.parametrize(
    ("kind", "preset", "slow", "ending"),
    [
        ("mtp", BASE, "on", "small itself runs off: nothing here asks for a change"),
        ("mtp", BASE, "off", "small itself runs off: on is the change"),
        ("mtp", SPECULATES, "on", "small itself runs on: off is the change"),
        ("mtp", SPECULATES, "off", "small itself runs on: nothing to change"),
        ("mtp", SPECULATES, "", "small itself runs on: nothing here asks for a change"),
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
