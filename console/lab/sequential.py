"""When a run may end before its last planned round without being wrong more often. Pure.

The rule of Haybittle (1971, Br J Radiol 44:793) and Peto et al. (1976, Br J Cancer 34:585): a look before the end must
find p < 0.001, and what all looks together may spend is taken from the level of the last one, so that the sum stays
below 5 % whatever the looks see (Bonferroni; alpha spending in its simplest form). The number of rounds is fixed before
the start. A look also needs a spread that is known by six degrees of freedom: with fewer a run would end early just
when its few boots happen to lie close together, and its interval would be too narrow.
"""

from __future__ import annotations

from dataclasses import dataclass

ALPHA = 0.05
WORDS = 0.9
"""Words are found at this share of the level that the shown interval has: the longest gaps and first tokens beside a
stream are not quite normal on log scale, so that 5 % on paper were 5.4 % in ten thousand experiments of the noisiest
machine (`tests.bench.calibration`)."""
LOOK_P = 0.001
FIRST_LOOK = 3
"""Rounds before anything is looked at."""
MOST_LOOKS = 10
LEAST_DF = 6
SMALLEST = 0.03
"""The smallest effect of interest: a ratio within 1 ± this counts as no difference."""


@dataclass(frozen=True, slots=True)
class Rule:
    """At which level a comparison shows its interval and finds its word."""

    shown: float = 1 - ALPHA
    decide: float = 1 - ALPHA
    least_df: int = 1
    """Degrees of freedom below which no word is found."""
    smallest: float = SMALLEST
    interim: bool = False


def looks(rounds: int) -> tuple[int, ...]:
    """After which rounds a run of so many may end early; ten at most, evenly spread."""
    between = list(range(FIRST_LOOK, rounds))
    if len(between) <= MOST_LOOKS:
        return tuple(between)
    step = len(between) / MOST_LOOKS
    return tuple(between[int(i * step)] for i in range(MOST_LOOKS))


def rule(rounds: int, *, over: bool, early: bool, others: int = 1) -> Rule:
    """The rule for a run as far as it has come.

    Args:
        rounds: as planned.
        over: every planned boot was made: the last look.
        early: the run was planned so that it may end early.
        others: arms held against the first one; each gets its share of the 5 % (Bonferroni).
    """
    last = ALPHA - LOOK_P * len(looks(rounds)) if early else ALPHA
    shown = 1 - last / others
    if over:
        return Rule(shown=shown, decide=1 - WORDS * last / others)
    return Rule(shown=shown, decide=1 - LOOK_P / others, least_df=LEAST_DF, interim=True)
