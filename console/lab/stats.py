"""What the rounds of a run say: medians with intervals, ratios with intervals. Pure: numbers in, numbers out.

The unit of evidence is a boot. Requests inside one server life share kernels, cache, clocks and heat, so they are
summarised first (a median a boot) and the interval comes from the boots: Student's t over the per-round logarithms of
the paired ratio (a randomised block design with the round as block; the ratio of geometric means is the natural effect
for times, and start-up as the level that must be repeated is the conclusion of Kalibera and Jones, "Rigorous
Benchmarking in Reasonable Time", ISMM 2013). Three rounds alone give a wide interval (the factor is 4.3); the spread
that earlier runs of the same configuration showed may be pooled with this one's (`console.lab.spread`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from console.lab.sequential import SMALLEST, Rule
from console.lab.spread import Basis, Rounds, Spread, Values, pool, round_logs
from console.lab.student import p_value, t_factor

__all__ = [
    "LEVEL",
    "SMALLEST",
    "ArmFigure",
    "Comparison",
    "Rounds",
    "Values",
    "compare",
    "compare_logs",
    "rounds_needed",
    "summarise",
]

LEVEL = 0.95
MOST_ROUNDS = 60
"""Up to here a number of further rounds is named."""
_LENT_DF = 4
"""Degrees of freedom from which on earlier runs alone can carry the interval of a single round."""


@dataclass(frozen=True, slots=True)
class ArmFigure:
    """One measure of one arm."""

    median: float | None
    """Median over boots of each boot's median over requests."""
    lo: float | None
    hi: float | None
    """From boot to boot (t on log scale); `None` with one boot, whose requests cannot say it."""
    n_rounds: int
    n_requests: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against another in one measure; `ratio` below 1 means that the measure is smaller."""

    arm: str
    against: str
    ratio: float | None
    lo: float | None
    hi: float | None
    verdict: str
    """better, worse, equivalent or undecided."""
    warnings: tuple[str, ...] = ()
    p: float | None = None
    """How often equal arms would come apart by this much, two-sided; not corrected for the number of arms. `None` while
    undecided."""
    spread: float | None = None
    """Boot-to-boot standard deviation on log scale that the interval rests on."""
    df: int = 0
    """Its degrees of freedom."""
    pooled_df: int = 0
    """Those of them that earlier runs lent."""
    more_rounds: int | None = None
    """About how many further rounds would settle an undecided one; `None` if settled, or if no number would do."""
    rounds: int = 0
    """Rounds in which both arms were measured; one can only suggest, whatever interval stands beside it."""
    short_of: str | None = None
    """The word that the shown interval alone would give an undecided one: words rest on a stricter one."""


def summarise(rounds: Rounds, level: float = LEVEL) -> ArmFigure:
    """Median and interval of one arm."""
    boots = [list(values.values()) for _, values in sorted(rounds.items()) if values]
    requests = sum(len(boot) for boot in boots)
    if not boots:
        return ArmFigure(None, None, None, 0, 0)
    medians = [median(boot) for boot in boots]
    centre = median(medians)
    interval = _log_interval(medians, level) if len(boots) > 1 else None
    if interval is None:
        return ArmFigure(centre, None, None, len(boots), requests)
    # The interval belongs to the geometric mean; a skewed set of boots must not push its own median outside.
    return ArmFigure(centre, min(interval[0], centre), max(interval[1], centre), len(boots), requests)


def _log_interval(values: Sequence[float], level: float) -> tuple[float, float] | None:
    if min(values) <= 0:
        return (min(values), max(values)) if min(values) == max(values) else None
    logs = [math.log(value) for value in values]
    centre, half = fmean(logs), t_factor(level, len(logs) - 1) * stdev(logs) / math.sqrt(len(logs))
    return math.exp(centre - half), math.exp(centre + half)


def compare(
    arm: str,
    against: str,
    ours: Rounds,
    theirs: Rounds,
    *,
    lower_is_better: bool,
    rule: Rule | None = None,
    own: Spread | None = None,
    past: Spread | None = None,
) -> Comparison:
    """The ratio `arm` / `against`, paired by request within each round, with its interval over rounds.

    Args:
        arm: the arm in question.
        against: the arm it is held against.
        ours: its boots by round.
        theirs: the other's.
        lower_is_better: which way is better.
        rule: at which level to speak.
        own: this run's spread over all its arms (that of this pair if not given).
        past: what earlier runs of the same configuration know of the spread.
    """
    rule = rule or Rule()
    logs = list(round_logs(ours, theirs).values())
    if not logs:
        known = any(ours.values()) and any(theirs.values())
        why = "no ratio: zero or unpaired in one arm" if known else "no data in one of the arms"
        return Comparison(arm, against, None, None, None, "undecided", (why,))
    return compare_logs((arm, against), logs, rule, own, past, lower_is_better=lower_is_better)


def compare_logs(
    arms: tuple[str, str],
    logs: Sequence[float],
    rule: Rule,
    own: Spread | None = None,
    past: Spread | None = None,
    *,
    lower_is_better: bool,
) -> Comparison:
    """The same from the logarithm of each round's ratio, one at least."""
    basis = pool(own if own is not None else pair_spread(logs), past or Spread())
    if len(logs) == 1:
        return _one_round(*arms, logs[0], basis, rule)
    return _several_rounds(*arms, logs, basis, rule, lower_is_better=lower_is_better)


def pair_spread(logs: Sequence[float]) -> Spread:
    """Spread of single boots from the per-round ratios of two arms: half of theirs."""
    if len(logs) < 2:
        return Spread()
    centre = fmean(logs)
    return Spread(sum((log - centre) ** 2 for log in logs) / 2, len(logs) - 1, 1)


def _half(basis: Basis, rounds: int, level: float) -> float:
    return t_factor(level, basis.spread.df) * _error(basis, rounds)


def _error(basis: Basis, rounds: int) -> float:
    """Standard error of the mean logarithm: both arms bring their boots' spread."""
    return math.sqrt(2 * (basis.spread.variance or 0.0) / rounds)


def _several_rounds(
    arm: str, against: str, logs: Sequence[float], basis: Basis, rule: Rule, *, lower_is_better: bool
) -> Comparison:
    centre, rounds = fmean(logs), len(logs)
    if not basis.spread.df:
        why = ("its spread is not known",)
        return Comparison(arm, against, math.exp(centre), None, None, "undecided", why, rounds=rounds)
    half, strict = (_half(basis, rounds, level) for level in (rule.shown, rule.decide))
    word = "undecided"
    if basis.spread.df >= rule.least_df:
        word = _word(centre - strict, centre + strict, rule.smallest, lower_is_better=lower_is_better)
    short_of = None
    if word == "undecided" and not rule.interim:
        near = _word(centre - half, centre + half, rule.smallest, lower_is_better=lower_is_better)
        short_of = near if near != "undecided" else None
    error, more = _error(basis, rounds), None
    if word == "undecided" and not rule.interim:
        needed = rounds_needed(centre, basis.spread.sd or 0.0, rule.decide, rule.smallest, basis.pooled.df)
        # The spread that is pooled now may know more than the one foreseen: an open comparison needs one more at least.
        more = max(needed - rounds, 1) if needed is not None else None
    return Comparison(
        arm,
        against,
        math.exp(centre),
        math.exp(centre - half),
        math.exp(centre + half),
        word,
        _advice(word, short_of, centre, rule, more, basis),
        p=None if word == "undecided" else p_value(centre / error, basis.spread.df) if error else float(centre == 0),
        spread=basis.spread.sd,
        df=basis.spread.df,
        pooled_df=basis.pooled.df,
        more_rounds=more,
        rounds=rounds,
        short_of=short_of,
    )


def _one_round(arm: str, against: str, centre: float, basis: Basis, rule: Rule) -> Comparison:
    """One boot an arm: no word, and no interval unless earlier runs know the spread."""
    ratio = math.exp(centre)
    size = "no difference" if abs(centre) <= math.log1p(rule.smallest) else f"{(ratio - 1) * 100:+.1f} %"
    lent = basis.pooled
    if lent.df < _LENT_DF:
        warning = f"one round only suggests: {size}; it has no interval"
        return Comparison(arm, against, ratio, None, None, "undecided", (warning,), rounds=1)
    half = _half(Basis(lent, lent, Spread()), 1, rule.shown)
    warning = f"one round only suggests: {size}; its interval rests on the spread of earlier runs"
    return Comparison(
        arm,
        against,
        ratio,
        math.exp(centre - half),
        math.exp(centre + half),
        "undecided",
        (warning,),
        spread=lent.sd,
        df=lent.df,
        pooled_df=lent.df,
        rounds=1,
    )


def _word(low: float, high: float, smallest: float, *, lower_is_better: bool) -> str:
    edge = math.log1p(smallest)
    if -edge <= low and high <= edge:
        return "equivalent"
    if low > 0 or high < 0:
        return "better" if (high < 0) == lower_is_better else "worse"
    return "undecided"


def _advice(
    word: str, short_of: str | None, centre: float, rule: Rule, more: int | None, basis: Basis
) -> tuple[str, ...]:
    found = []
    if short_of is not None:
        found.append(f"just short of {short_of}: words rest on a wider interval, of {rule.decide * 100:.4g} %")
    if word == "undecided" and rule.interim:
        found.append("a look before the last round speaks only at p < 0.001")
    elif word == "undecided":
        if more is None:
            found.append(f"not enough rounds; more than {MOST_ROUNDS} would be needed")
        else:
            found.append(f"not enough rounds: about {more} more would settle it")
    elif word in ("better", "worse") and abs(centre) <= math.log1p(rule.smallest):
        found.append(f"real, but smaller than the {rule.smallest:.0%} that count")
    if basis.refused:
        found.append("noisier than earlier runs: their spread is not pooled")
    return tuple(found)


def rounds_needed(
    centre: float, spread: float, level: float = LEVEL, smallest: float = SMALLEST, lent_df: int = 0
) -> int | None:
    """How many rounds would settle it if ratio and boot-to-boot spread stayed as they are.

    Either the interval has to leave 1 out, or it has to fit within ± `smallest`; the nearer of the two counts.
    """
    edge = math.log1p(smallest)
    distance = max(abs(centre), edge - abs(centre))
    for n in range(2, MOST_ROUNDS + 1):
        if t_factor(level, lent_df + n - 1) * spread * math.sqrt(2 / n) < distance:
            return n
    return None
