"""The arithmetic of the lab against values known from tables and by hand."""

from __future__ import annotations

import math
import random
from statistics import median

import pytest

from console.lab.sequential import rule
from console.lab.stats import ArmFigure, Comparison, Rounds, compare, compare_logs, rounds_needed, summarise
from console.lab.student import f_quantile, incomplete_beta, p_value, t_cdf, t_factor


@pytest.mark.parametrize(
    ("level", "df", "factor"),
    [
        (0.95, 1, 12.7062),
        (0.95, 2, 4.30265),
        (0.95, 4, 2.77645),
        (0.95, 9, 2.26216),
        (0.95, 30, 2.04227),
        (0.95, 1000, 1.96234),
        (0.90, 5, 2.01505),
        (0.99, 3, 5.84091),
    ],
)
def test_t_factors_are_those_of_the_tables(level: float, df: int, factor: float) -> None:
    assert t_factor(level, df) == pytest.approx(factor, rel=1e-5)


def test_the_t_distribution_is_symmetric_and_its_parts_agree() -> None:
    assert t_cdf(0.0, 3) == pytest.approx(0.5)
    assert t_cdf(-1.3, 7) + t_cdf(1.3, 7) == pytest.approx(1.0)
    assert t_cdf(1.0, 1) == pytest.approx(0.75)  # Cauchy: 1/2 + atan(1)/pi
    assert incomplete_beta(0.3, 2, 3) == pytest.approx(0.3483)  # the sum of a binomial tail
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_factor(0.95, 0)


@pytest.mark.parametrize(
    ("df1", "df2", "value"), [(2, 8, 4.45897), (1, 10, 4.96460), (9, 30, 2.21070), (4, 4, 6.38823)]
)
def test_f_quantiles_are_those_of_the_tables(df1: int, df2: int, value: float) -> None:
    assert f_quantile(0.95, df1, df2) == pytest.approx(value, rel=1e-5)
    assert p_value(t_factor(0.95, df1), df1) == pytest.approx(0.05, rel=1e-6)


def _arm(*boots: float) -> Rounds:
    return {number: {"a": boot, "b": boot * 1.1} for number, boot in enumerate(boots, 1)}


def _lower(ours: Rounds, theirs: Rounds) -> Comparison:
    return compare("on", "off", ours, theirs, lower_is_better=True)


def test_an_arm_without_boots_has_no_figure_rather_than_zero() -> None:
    assert summarise({}) == ArmFigure(None, None, None, 0, 0)


def test_the_interval_of_an_arm_comes_from_its_boots() -> None:
    boots = {1: {"x": 0.010}, 2: {"x": 0.011}, 3: {"x": 0.0121}}
    figure = summarise(boots)
    spread = math.log(1.1)
    half = 4.30265 * spread / math.sqrt(3)
    assert figure.median == 0.011
    assert figure.lo == pytest.approx(0.011 * math.exp(-half), rel=1e-4)
    assert figure.hi == pytest.approx(0.011 * math.exp(half), rel=1e-4)
    assert (figure.n_rounds, figure.n_requests) == (3, 3)


def test_many_requests_in_one_boot_are_one_boot() -> None:
    figure = summarise({1: {str(i): 1.0 + i / 100 for i in range(50)}})
    assert (figure.n_rounds, figure.n_requests) == (1, 50)


def test_a_ratio_is_paired_within_its_round() -> None:
    # The second round is twice as slow for both arms: paired, that is no spread at all.
    result = _lower(_arm(0.5, 1.0, 0.51), _arm(1.0, 2.0, 1.02))
    assert result.ratio == pytest.approx(0.5)
    assert result.lo == result.hi == pytest.approx(0.5)
    assert result.verdict == "better"


def test_the_interval_of_a_ratio_is_the_t_interval_of_its_logarithms() -> None:
    result = _lower(_arm(1.00, 1.10, 1.21), _arm(1.0, 1.0, 1.0))
    half = 4.30265 * math.log(1.1) / math.sqrt(3)
    assert result.ratio == pytest.approx(1.1)
    assert result.lo == pytest.approx(1.1 * math.exp(-half), rel=1e-4)
    assert result.hi == pytest.approx(1.1 * math.exp(half), rel=1e-4)
    assert result.verdict == "undecided"
    assert "more" in result.warnings[0]


@pytest.mark.parametrize(
    ("ratios", "lower_is_better", "word"),
    [
        ((0.80, 0.81, 0.80), True, "better"),
        ((0.80, 0.81, 0.80), False, "worse"),
        ((1.20, 1.21, 1.20), True, "worse"),
        ((1.20, 1.21, 1.20), False, "better"),
        ((1.001, 0.999, 1.000), True, "equivalent"),
        ((1.010, 1.011, 1.010), True, "equivalent"),
        ((0.9, 1.2, 1.0), True, "undecided"),
    ],
)
def test_the_words(ratios: tuple[float, ...], lower_is_better: bool, word: str) -> None:
    result = compare("b", "a", _arm(*ratios), _arm(1.0, 1.0, 1.0), lower_is_better=lower_is_better)
    assert result.verdict == word


@pytest.mark.parametrize("lower_is_better", [True, False])
def test_where_only_the_shown_interval_gives_a_word_it_says_just_short_of_it(lower_is_better: bool) -> None:
    # The shown interval ends at -0.1 %, the wider one that words rest on does not leave 1 out.
    logs = [math.log1p(-0.027) + step for step in (-0.0106, 0.0, 0.0106)]
    used = rule(3, over=True, early=False)
    found = compare_logs(("b", "a"), logs, used, lower_is_better=lower_is_better)
    assert found.hi is not None
    assert 0.997 < found.hi < 1
    word = "better" if lower_is_better else "worse"
    assert (found.verdict, found.short_of, found.more_rounds) == ("undecided", word, 1)
    assert found.warnings[0] == f"just short of {word}: words rest on a wider interval, of 95.5 %"
    wide = compare_logs(("b", "a"), [3 * log for log in (-0.01, 0.0, 0.01)], used, lower_is_better=lower_is_better)
    assert (wide.verdict, wide.short_of) == ("undecided", None)


def test_one_round_never_says_more_than_undecided() -> None:
    result = _lower(_arm(0.5), _arm(1.0))
    assert result.verdict == "undecided"
    assert result.ratio == pytest.approx(0.5)
    assert "one round only suggests: -50.0 %" in result.warnings[0]


def test_equal_values_in_every_round_are_equivalent() -> None:
    assert _lower(_arm(1600, 1600), _arm(1600, 1600)).verdict == "equivalent"
    zeros = {1: {"x": 0.0}, 2: {"x": 0.0}}
    assert _lower(zeros, zeros).verdict == "equivalent"


def test_zero_in_one_arm_has_no_ratio() -> None:
    result = _lower({1: {"x": 0.0}, 2: {"x": 0.0}}, {1: {"x": 5.0}, 2: {"x": 5.0}})
    assert (result.ratio, result.verdict) == (None, "undecided")
    assert "zero" in result.warnings[0]


def test_rounds_that_only_one_arm_has_are_left_out() -> None:
    ours, theirs = _arm(0.5, 0.5, 0.5), _arm(1.0, 1.0)
    assert _lower(ours, theirs).ratio == pytest.approx(0.5)
    assert _lower({1: {"a": 1.0}}, {2: {"a": 1.0}}).ratio is None


def test_the_number_of_rounds_that_would_settle_it() -> None:
    # A difference of 10 % at a spread of 3.5 % a boot: the t interval leaves 1 out from the fourth round on.
    assert rounds_needed(math.log(1.1), 0.05 / math.sqrt(2)) == 4
    # Spreads that earlier runs lent make it three.
    assert rounds_needed(math.log(1.1), 0.05 / math.sqrt(2), lent_df=10) == 2
    assert rounds_needed(0.0, 0.0) == 2
    # A true 1.5 % at a spread of 28 % is beyond what anybody will run.
    assert rounds_needed(math.log(1.015), 0.2) is None


@pytest.mark.parametrize("rounds", [3, 5])
def test_equal_arms_are_rarely_told_apart(rounds: int) -> None:
    """Boot-to-boot spread 2.8 %, 0.2 % within a boot: false words in at most about 5 % of 400 experiments."""
    rng = random.Random(rounds)

    def boots() -> Rounds:
        levels = [math.exp(rng.gauss(0, 0.028)) for _ in range(rounds)]
        return {i: {str(k): level * math.exp(rng.gauss(0, 0.002)) for k in range(6)} for i, level in enumerate(levels)}

    words = [_lower(boots(), boots()).verdict for _ in range(400)]
    # A true 5 % passes this with probability 0.99.
    assert sum(word in ("better", "worse") for word in words) <= 31


def test_taking_requests_as_independent_would_fail() -> None:
    """The reason for the method: the same data, one boot an arm, a t test over its requests."""
    rng = random.Random(5)
    false = 0
    for _ in range(200):
        arms = []
        for _ in range(2):
            level = rng.gauss(0, 0.028)
            arms.append([level + rng.gauss(0, 0.002) for _ in range(20)])
        gap = abs(median(arms[0]) - median(arms[1]))
        false += gap > t_factor(0.95, 38) * 0.002 * math.sqrt(2 / 20)
    assert false > 150
