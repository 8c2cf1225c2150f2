"""A small part of the calibration, in virtual time: boots of the stand-in become words by the lab's own way."""

from __future__ import annotations

import random

import pytest

from tests.bench.calibration import limit
from tests.bench.trials import JUDGED, Bank, Cell, adopted, disjoint, naive_requests, naive_runs, run_cell, trials
from tests.bench.virtual_boot import REPORTED, Noise, boot

EXPERIMENTS = 150


@pytest.fixture(scope="module")
def bank() -> Bank:
    return Bank(trials((REPORTED, REPORTED), EXPERIMENTS, seed=7, workers=1, rounds=5))


def test_a_boot_in_virtual_time_has_every_judged_measure() -> None:
    values = boot(Noise("still", 0.0, 0.0), random.Random(1))
    assert set(JUDGED) <= set(values)
    assert values["decode.tpot_s"]["decode/0"] == pytest.approx(1 / 33.5, rel=0.02)
    assert values["agent.cached_tokens"]["agent/0/w0"] == 512
    # A step that reads a chunk of the prompt holds the stream up.
    assert values["interference.gap_max_s"]["interference/0"] > 10 * values["decode.gap_s"]["decode/0"]


def test_the_limit_is_the_one_of_two_thousand_experiments() -> None:
    assert limit(2000) == 123


@pytest.mark.parametrize("pooled", [False, True])
def test_equal_arms_are_rarely_told_apart_and_intervals_hold_the_truth(bank: Bank, pooled: bool) -> None:
    for measure in JUDGED:
        for rounds in (3, 5):
            tally = run_cell(bank, Cell(rounds, pooled), measure, 0.0)
            assert tally.named <= limit(EXPERIMENTS), (measure, rounds)
            assert tally.covered >= 0.89 * EXPERIMENTS
    assert adopted(bank, Cell(3, pooled), "mtp") <= limit(EXPERIMENTS)
    assert adopted(bank, Cell(3, pooled), "custom") <= limit(EXPERIMENTS)


def test_a_lent_spread_sees_what_three_rounds_alone_do_not(bank: Bank) -> None:
    alone, lent = (run_cell(bank, Cell(3, pooled), "decode.tpot_s", 0.10) for pooled in (False, True))
    assert alone.better == lent.better == 0
    assert lent.worse > alone.worse + 0.15 * EXPERIMENTS
    assert lent.worse > 0.8 * EXPERIMENTS
    assert lent.covered >= 0.89 * EXPERIMENTS


def test_the_stop_rule_saves_rounds_and_names_no_more_winners(bank: Bank) -> None:
    equal = run_cell(bank, Cell(5, pooled=True, early=True), "decode.tpot_s", 0.0)
    clear = run_cell(bank, Cell(5, pooled=True, early=True), "decode.tpot_s", 0.20)
    assert equal.named <= limit(EXPERIMENTS)
    assert clear.worse == EXPERIMENTS
    assert clear.rounds < 4 * EXPERIMENTS
    assert clear.covered >= 0.89 * EXPERIMENTS


def test_requests_and_runs_inside_a_boot_are_no_evidence_of_their_own(bank: Bank) -> None:
    for wrong in (naive_runs, disjoint):
        assert sum(wrong(each) for each in bank.trials) > 0.6 * EXPERIMENTS
    assert sum(naive_requests(each, 3) for each in bank.trials) > limit(EXPERIMENTS)
