"""What the rounds of a run say: medians with intervals, ratios with intervals. Pure: numbers in, numbers out.

The unit of evidence is a boot. Requests inside one server life share kernels, cache, clocks and heat, so they are
summarised first (a median a boot) and the interval comes from the boots: Student's t over the per-round logarithms of
the paired ratio, n - 1 degrees of freedom for n rounds (a randomised block design with the round as block; the ratio
of geometric means is the natural effect for times, and start-up as the level that must be repeated is the conclusion of
Kalibera and Jones, "Rigorous Benchmarking in Reasonable Time", ISMM 2013). Three rounds give a wide interval (the
factor is 4.3); that is what three rounds know.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev

from console.lab.student import t_factor

LEVEL = 0.95
SMALLEST = 0.03
"""The smallest effect of interest: a ratio within 1 ± this counts as no difference."""
MOST_ROUNDS = 60
"""Up to here a number of further rounds is named."""

Values = Mapping[str, float]
"""The values of one boot by pairing key: the same key in two arms is the same prompt."""
Rounds = Mapping[int, Values]
"""The valid boots of one arm by round."""


@dataclass(frozen=True, slots=True)
class ArmFigure:
    """One measure of one arm."""

    median: float | None
    """Median over boots of each boot's median over requests."""
    lo: float | None
    hi: float | None
    """From boot to boot (t on log scale); with one boot only from its requests, else `None`."""
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


def summarise(rounds: Rounds, level: float = LEVEL) -> ArmFigure:
    """Median and interval of one arm."""
    boots = [list(values.values()) for _, values in sorted(rounds.items()) if values]
    requests = sum(len(boot) for boot in boots)
    if not boots:
        return ArmFigure(None, None, None, 0, 0)
    medians = [median(boot) for boot in boots]
    centre = median(medians)
    interval = _log_interval(medians, level) if len(boots) > 1 else _within(boots[0], level)
    if interval is None:
        return ArmFigure(centre, None, None, len(boots), requests)
    # The interval belongs to the geometric mean; a skewed set of boots must not push its own median outside.
    return ArmFigure(centre, min(interval[0], centre), max(interval[1], centre), len(boots), requests)


def _log_interval(values: Sequence[float], level: float) -> tuple[float, float] | None:
    if min(values) <= 0:
        return (min(values), max(values)) if min(values) == max(values) else None
    centre, half = _centre([math.log(value) for value in values], level)
    return math.exp(centre - half), math.exp(centre + half)


def _within(values: Sequence[float], level: float) -> tuple[float, float] | None:
    return _log_interval(values, level) if len(values) > 1 else None


def _centre(logs: Sequence[float], level: float) -> tuple[float, float]:
    """Mean and half width of the t interval."""
    spread = stdev(logs)
    return fmean(logs), t_factor(level, len(logs) - 1) * spread / math.sqrt(len(logs))


def compare(
    arm: str,
    against: str,
    ours: Rounds,
    theirs: Rounds,
    *,
    lower_is_better: bool,
    level: float = LEVEL,
    smallest: float = SMALLEST,
) -> Comparison:
    """The ratio `arm` / `against`, paired by request within each round, with its interval over rounds."""
    pairs = [_pairs(ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())]
    blocks = [block for block in pairs if block]
    if not blocks:
        known = any(ours.values()) and any(theirs.values())
        why = "no ratio: zero or unpaired in one arm" if known else "no data in one of the arms"
        return Comparison(arm, against, None, None, None, "undecided", (why,))
    if len(blocks) == 1:
        return _one_round(arm, against, blocks[0], level, smallest)
    logs = [median(block) for block in blocks]
    centre, half = _centre(logs, level)
    word = _word(centre - half, centre + half, lower_is_better, smallest)
    warnings = _advice(word, centre, stdev(logs), len(logs), level, smallest)
    low, high = math.exp(centre - half), math.exp(centre + half)
    return Comparison(arm, against, math.exp(centre), low, high, word, warnings)


def _pairs(ours: Values, theirs: Values) -> list[float]:
    """Logarithms of the ratios of requests that both arms answered."""
    logs = []
    for key in sorted(ours.keys() & theirs.keys()):
        a, b = ours[key], theirs[key]
        if a > 0 and b > 0:
            logs.append(math.log(a / b))
        elif a == b == 0:
            logs.append(0.0)
    return logs


def _one_round(arm: str, against: str, logs: Sequence[float], level: float, smallest: float) -> Comparison:
    centre = median(logs)
    low = high = None
    if len(logs) > 1:
        mean, half = _centre(logs, level)
        low, high = math.exp(min(mean - half, centre)), math.exp(max(mean + half, centre))
    ratio = math.exp(centre)
    size = "no difference" if abs(centre) <= math.log1p(smallest) else f"{(ratio - 1) * 100:+.1f} %"
    scope = "its interval is from within the boots and too narrow" if low is not None else "it has no interval"
    warning = f"one round only suggests: {size}; {scope}"
    return Comparison(arm, against, ratio, low, high, "undecided", (warning,))


def _word(low: float, high: float, lower_is_better: bool, smallest: float) -> str:
    edge = math.log1p(smallest)
    if -edge <= low and high <= edge:
        return "equivalent"
    if low > 0 or high < 0:
        return "better" if (high < 0) == lower_is_better else "worse"
    return "undecided"


def _advice(word: str, centre: float, spread: float, n: int, level: float, smallest: float) -> tuple[str, ...]:
    if word == "undecided":
        needed = rounds_needed(centre, spread, level, smallest)
        if needed is None or needed <= n:
            return (f"not enough rounds; more than {MOST_ROUNDS} would be needed",)
        return (f"not enough rounds: about {needed} in all would settle it, {needed - n} more",)
    if word in ("better", "worse") and abs(centre) <= math.log1p(smallest):
        return (f"real, but smaller than the {smallest:.0%} that count",)
    return ()


def rounds_needed(centre: float, spread: float, level: float = LEVEL, smallest: float = SMALLEST) -> int | None:
    """How many rounds would settle it if the ratio and the spread between rounds stayed as they are.

    Either the interval has to leave 1 out, or it has to fit within ± `smallest`; the nearer of the two counts.
    """
    edge = math.log1p(smallest)
    distance = max(abs(centre), edge - abs(centre))
    for n in range(2, MOST_ROUNDS + 1):
        if t_factor(level, n - 1) * spread / math.sqrt(n) < distance:
            return n
    return None
