"""The spread between boots: a block design, what earlier runs lend, and when they may not."""

from __future__ import annotations

import math
import random
from statistics import variance

import pytest

from console.lab.sequential import LOOK_P, WORDS, Rule, looks, rule
from console.lab.spread import Rounds, Spread, add_spreads, fit, pool, round_logs
from console.lab.stats import compare, pair_spread
from console.lab.student import t_factor


def _arm(*boots: float | None) -> Rounds:
    return {n: {"a": boot, "b": 2 * boot} for n, boot in enumerate(boots, 1) if boot is not None}


def test_two_arms_give_the_paired_t_test() -> None:
    one, other = _arm(1.0, 1.1, 0.9, 1.3), _arm(1.2, 1.0, 1.0, 1.1)
    logs = list(round_logs(one, other).values())
    spread = fit([one, other])
    assert spread.df == 3
    assert spread.variance == pytest.approx(variance(logs) / 2)
    assert spread.ss == pytest.approx(pair_spread(logs).ss)


def test_a_level_of_the_round_is_no_spread() -> None:
    assert fit([_arm(1.0, 2.0, 4.0), _arm(1.1, 2.2, 4.4)]).variance == pytest.approx(0.0, abs=1e-20)


def test_three_arms_have_more_degrees_of_freedom() -> None:
    rng = random.Random(3)
    arms = [_arm(*(math.exp(rng.gauss(0, 0.1)) for _ in range(40))) for _ in range(3)]
    spread = fit(arms)
    assert spread.df == 2 * 39
    assert spread.sd == pytest.approx(0.1, rel=0.2)


def test_missing_boots_cost_their_own_degree_of_freedom_only() -> None:
    assert fit([_arm(1.0, 1.1, 1.2), _arm(1.0, None, 1.3), _arm(0.9, 1.2, 1.0)]).df == 8 - 3 - 3 + 1
    assert fit([_arm(1.0, None), _arm(None, 1.0)]).df == 0
    assert fit([_arm(1.0), _arm(1.1)]) == Spread()
    assert fit([]) == Spread()


def test_zeros_in_every_arm_are_equal_and_in_one_arm_no_data() -> None:
    zero = {n: {"a": 0.0} for n in (1, 2, 3)}
    assert fit([zero, zero]) == Spread(0.0, 2, 1)
    assert fit([zero, _arm(1.0, 1.0, 1.0)]) == Spread()


def test_spreads_are_added_by_their_degrees_of_freedom() -> None:
    both = add_spreads([Spread(0.002, 2, 1), Spread(0.004, 4, 1), Spread(9.0, 0, 1)])
    assert both == Spread(0.006, 6, 2)
    assert both.sd == pytest.approx(math.sqrt(0.001))
    assert Spread().sd is None


def test_earlier_runs_lend_what_this_one_has_not() -> None:
    basis = pool(Spread(0.002, 2, 1), Spread(0.008, 8, 3))
    assert basis.spread == Spread(0.010, 10, 4)
    assert basis.pooled.df == 8
    assert not basis.refused


def test_a_run_that_is_noisier_than_what_it_would_borrow_stands_alone() -> None:
    own = Spread(0.02, 2, 1)
    basis = pool(own, Spread(0.008, 8, 3))
    assert basis.refused
    assert basis.spread == own
    assert pool(Spread(0.01, 2, 1), Spread(0.0, 8, 3)).refused


def test_a_lent_spread_narrows_the_interval_and_is_named() -> None:
    ours, theirs = _arm(0.90, 0.92, 0.91), _arm(1.0, 1.0, 1.0)
    alone = compare("b", "a", ours, theirs, lower_is_better=True)
    lent = compare("b", "a", ours, theirs, lower_is_better=True, past=Spread(8 * 0.01**2, 8, 2))
    assert alone.hi is not None
    assert lent.hi is not None
    assert lent.hi < alone.hi
    assert (alone.df, alone.pooled_df) == (2, 0)
    assert (lent.df, lent.pooled_df) == (10, 8)
    noisy = compare("b", "a", _arm(0.7, 1.2, 1.0), theirs, lower_is_better=True, past=Spread(8 * 0.01**2, 8, 2))
    assert noisy.pooled_df == 0
    assert any("not pooled" in text for text in noisy.warnings)


def test_one_round_has_an_interval_only_if_earlier_runs_know_the_spread() -> None:
    one, base = _arm(0.5), _arm(1.0)
    alone = compare("b", "a", one, base, lower_is_better=True)
    lent = compare("b", "a", one, base, lower_is_better=True, past=Spread(8 * 0.02**2, 8, 2))
    assert (alone.lo, alone.hi) == (None, None)
    half = t_factor(0.95, 8) * 0.02 * math.sqrt(2)
    assert lent.hi == pytest.approx(0.5 * math.exp(half))
    assert alone.verdict == lent.verdict == "undecided"
    assert "only suggests" in lent.warnings[0]


def test_looks_are_fixed_before_the_start_and_what_they_may_spend_is_taken_from_the_last() -> None:
    assert looks(3) == ()
    assert looks(5) == (3, 4)
    assert len(looks(60)) == 10
    assert looks(60)[0] == 3
    for rounds in (3, 5, 10, 60):
        last = rule(rounds, over=True, early=True)
        assert (1 - last.shown) + LOOK_P * len(looks(rounds)) == pytest.approx(0.05)
        assert 1 - last.decide == pytest.approx(WORDS * (1 - last.shown))
    assert rule(10, over=True, early=False).shown == pytest.approx(0.95)
    assert 1 - rule(3, over=True, early=True, others=2).shown == pytest.approx(0.025)


def test_a_look_needs_more_than_the_last_round_does() -> None:
    look = rule(5, over=False, early=True)
    assert look.decide == pytest.approx(0.999)
    ours, theirs = _arm(0.90, 0.92, 0.91), _arm(1.0, 1.0, 1.0)
    past = Spread(8 * 0.01**2, 8, 2)

    def word(used: Rule, lent: Spread | None) -> str:
        return compare("b", "a", ours, theirs, lower_is_better=True, rule=used, past=lent).verdict

    assert word(look, past) == "better"
    assert word(look, Spread(8 * 0.03**2, 8, 2)) == "undecided"
    # Three boots that happen to lie close together are no ground to end a run on.
    assert word(look, None) == "undecided"
    assert word(rule(5, over=True, early=True), None) == "better"


def test_a_zero_beside_another_value_counts_in_the_sums() -> None:
    """Half of all hits lost is no equality: cached tokens of 3,200 and 0 against 3,200 twice."""
    whole: Rounds = {n: {"t1": 3200.0, "t2": 3200.0} for n in (1, 2, 3)}
    half: Rounds = {n: {"t1": 3200.0, "t2": 0.0} for n in (1, 2, 3)}
    assert list(round_logs(half, whole).values()) == pytest.approx([math.log(0.5)] * 3)
    found = compare("b", "a", half, whole, lower_is_better=False)
    assert found.ratio == pytest.approx(0.5)
    assert found.verdict == "worse"
    assert fit([whole, half]).ss == pytest.approx(0.0)
    some: Rounds = {1: {"t1": 0.0, "t2": 0.0, "t3": 5.0}, 2: {"t1": 0.0, "t2": 5.0, "t3": 5.0}}
    assert list(round_logs(some, some).values()) == [0.0, 0.0]


def test_an_arm_of_zeros_in_any_round_has_no_ratio_at_all() -> None:
    whole: Rounds = {n: {"t1": 3200.0} for n in (1, 2, 3)}
    mostly: Rounds = {1: {"t1": 3200.0}, 2: {"t1": 0.0}, 3: {"t1": 0.0}}
    assert round_logs(mostly, whole) == {}
    found = compare("b", "a", mostly, whole, lower_is_better=False)
    assert (found.ratio, found.verdict, found.warnings) == (
        None,
        "undecided",
        ("no ratio: zero or unpaired in one arm",),
    )
    assert round_logs({1: {"t1": 0.0}}, {1: {"t1": 0.0}}) == {1: 0.0}
