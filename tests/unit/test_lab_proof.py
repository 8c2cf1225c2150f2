"""Treatment, foreign traffic, acceptance: what the server's own words and counters prove."""

from __future__ import annotations

from typing import Any

import pytest

from console.lab.proof import Drafts, add_drafts, drafts_between, traffic, treatment
from console.lab.trace import Trace
from console.metrics.reading import CacheFacts
from console.metrics.vllm import Counters
from console.presets import Preset
from console.server.facts import StartupFacts

MTP = {"method": "mtp", "num_speculative_tokens": 2}


def _preset(**args: Any) -> Preset:
    return Preset("p", "m", args={key.replace("_", "-"): value for key, value in args.items()})


def _counters(**fields: Any) -> Counters:
    return Counters(at=0.0, **fields)


@pytest.mark.parametrize(
    ("preset", "facts", "counters", "refuted"),
    [
        (_preset(), StartupFacts(), _counters(), None),
        (_preset(), StartupFacts(), _counters(spec_drafts=3), "off, but the server drafts"),
        (_preset(speculative_config=MTP), StartupFacts(), _counters(spec_drafts=5), None),
        (_preset(speculative_config=MTP), StartupFacts(), _counters(spec_drafts=0), "drafted nothing"),
        (_preset(speculative_config=MTP), StartupFacts(), _counters(), "no draft counters"),
        (_preset(speculative_config=MTP), StartupFacts(speculative_tokens=1), _counters(spec_drafts=5), "runs 1"),
        (_preset(max_num_batched_tokens=512), StartupFacts(chunk_budget=512), _counters(), None),
        (_preset(max_num_batched_tokens=512), StartupFacts(chunk_budget=2048), _counters(), "runs 2048"),
        (
            _preset(enable_prefix_caching=True),
            StartupFacts(prefix_caching=True),
            _counters(facts=CacheFacts(prefix_caching=False)),
            "the server has it off",
        ),
    ],
)
def test_the_treatment(preset: Preset, facts: StartupFacts, counters: Counters, refuted: str | None) -> None:
    found = treatment(preset, facts, counters)
    assert bool(found.refuted) == bool(refuted)
    if refuted:
        assert refuted in found.refuted[0]
    assert not found.unproved


def test_what_nobody_says_is_unproved_and_not_refuted() -> None:
    found = treatment(
        _preset(max_num_batched_tokens=512, speculative_config=MTP, enable_prefix_caching=True), StartupFacts(), None
    )
    assert found.refuted == ()
    assert len(found.unproved) == 3


def _ok(prompt: int, output: int) -> Trace:
    return Trace(outcome="ok", prompt_tokens=prompt, completion_tokens=output)


BEFORE = _counters(requests_finished=10, prompt_tokens=1000, generation_tokens=100)


@pytest.mark.parametrize(
    ("after", "settled", "foreign"),
    [
        ((12, 1030, 108), True, False),
        ((11, 1030, 108), False, False),
        ((12, 1030, 105), False, False),
        ((13, 1037, 109), True, True),
        ((12, 1031, 108), True, True),
        ((12, None, None), True, False),
    ],
)
def test_a_surplus_is_somebody_elses(after: tuple[int, int, int], settled: bool, foreign: bool) -> None:
    requests, prompt, output = after
    page = _counters(requests_finished=requests, prompt_tokens=prompt, generation_tokens=output)
    found = traffic(BEFORE, page, [_ok(10, 4), _ok(20, 4)])
    assert found.settled is settled
    assert (found.foreign is not None) is foreign


def test_a_broken_request_of_ours_is_no_proof_of_strangers() -> None:
    page = _counters(requests_finished=12, prompt_tokens=1040, generation_tokens=110)
    assert traffic(BEFORE, page, [_ok(10, 4), Trace(outcome="cut")]).foreign is None


def test_acceptance_comes_from_differences_of_counts() -> None:
    old = _counters(spec_drafts=10, spec_draft_tokens=20, spec_accepted_tokens=15, spec_accepted_per_pos=(9, 6))
    new = _counters(spec_drafts=30, spec_draft_tokens=60, spec_accepted_tokens=47, spec_accepted_per_pos=(27, 20))
    found = drafts_between(old, new)
    assert found == Drafts(20, 40, 32, (18, 14))
    assert found is not None
    assert (found.acceptance, found.mean_length, found.rates) == (0.8, 2.6, (0.9, 0.7))
    assert drafts_between(old, _counters()) is None
    assert drafts_between(None, new) is None


def test_boots_are_added_up_not_averaged() -> None:
    total = add_drafts([Drafts(10, 20, 10, (8, 2)), Drafts(30, 60, 60, (30, 30))])
    assert total == Drafts(40, 80, 70, (38, 32))
    assert add_drafts([]) is None
    assert Drafts().acceptance is None
