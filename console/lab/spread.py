"""How far boots of one configuration lie apart, and what earlier runs know of it. Pure: numbers in, numbers out.

Three boots an arm know their own spread badly (two degrees of freedom, a factor of 4.3). The spread is a property of
the machine and the configuration, so runs that share both may lend theirs: variances are added up by their degrees of
freedom, as a calibration laboratory pools the standard deviations of its check standard over many days (NIST/SEMATECH
e-Handbook of Statistical Methods, 2.1.2.3 "Analysis", https://www.itl.nist.gov/div898/handbook/mpc/section1/mpc123.htm).
Effects are never pooled, only spreads. A run that is noisier than what it would borrow (F test, one-sided, 5 %) stands
on its own: pooling may make an interval honest sooner, never narrower than the run's own noise allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from console.lab.student import f_quantile

Values = Mapping[str, float]
"""The values of one boot by pairing key: the same key in two arms is the same prompt."""
Rounds = Mapping[int, Values]
"""The valid boots of one arm by round."""

_GATE = 0.95
_SWEEPS = 200


@dataclass(frozen=True, slots=True)
class Spread:
    """A sum of squares of logarithms with its degrees of freedom; the round's own level is taken out."""

    ss: float = 0.0
    df: int = 0
    runs: int = 0
    """How many runs it comes from."""

    @property
    def variance(self) -> float | None:
        """Between boots of one configuration; `None` without a degree of freedom."""
        return self.ss / self.df if self.df else None

    @property
    def sd(self) -> float | None:
        """Its root: 0.028 is a boot-to-boot spread of 2.8 %."""
        return None if self.variance is None else math.sqrt(self.variance)


@dataclass(frozen=True, slots=True)
class Basis:
    """The spread an interval rests on, and where it comes from."""

    spread: Spread
    pooled: Spread
    """What of it earlier runs lent."""
    own: Spread
    refused: bool = False
    """Earlier runs were there, but this one is noisier than they were."""


def add_spreads(parts: Iterable[Spread]) -> Spread:
    """Sums of squares and degrees of freedom of several runs."""
    listed = [part for part in parts if part.df]
    return Spread(sum(part.ss for part in listed), sum(part.df for part in listed), sum(part.runs for part in listed))


def pool(own: Spread, past: Spread) -> Basis:
    """This run's spread with what earlier runs lend."""
    if not past.df:
        return Basis(own, Spread(), own)
    if own.variance and past.variance is not None:
        noisier = past.variance == 0 or own.variance / past.variance > f_quantile(_GATE, own.df, past.df)
        if noisier:
            return Basis(own, Spread(), own, refused=True)
    return Basis(add_spreads((own, past)), past, own)


def pair_logs(ours: Values, theirs: Values) -> list[float] | None:
    """Logarithms of the ratios of requests that both arms answered; `None` where one arm has nothing but zeros.

    A zero beside another value has no ratio, and is one of the values all the same (a turn that the cache did not
    serve): then the sums over the requests are set against each other.
    """
    keys = sorted(ours.keys() & theirs.keys())
    pairs = [(ours[key], theirs[key]) for key in keys if ours[key] or theirs[key]]
    if all(a > 0 and b > 0 for a, b in pairs):
        return [math.log(a / b) for a, b in pairs] + [0.0] * (len(keys) - len(pairs))
    a, b = (sum(side) for side in zip(*pairs, strict=True))
    return [math.log(a / b)] if a > 0 and b > 0 else None


def round_logs(ours: Rounds, theirs: Rounds) -> dict[int, float]:
    """Round → median over its requests of the logarithm of the paired ratio.

    Empty where one arm has nothing but zeros in any round: the other rounds alone would tell of no difference.
    """
    found = {n: pair_logs(ours[n], theirs[n]) for n in sorted(ours.keys() & theirs.keys())}
    if any(logs is None for logs in found.values()):
        return {}
    return {n: median(logs) for n, logs in found.items() if logs}


def fit(arms: Sequence[Rounds]) -> Spread:
    """What is left of the boots of all arms once every arm and every round has its own level (a block design).

    With two arms this is the variance of the per-round ratio, halved: the paired t test.
    """
    cells = _levels([rounds for rounds in arms if rounds])
    if not cells:
        return Spread()
    rows = {row for row, _ in cells}
    columns = {column for _, column in cells}
    df = len(cells) - len(rows) - len(columns) + 1
    if df < 1:
        return Spread()
    left = _sweep(dict(cells), rows, columns)
    return Spread(sum(value * value for value in left.values()), df, 1)


def _levels(arms: Sequence[Rounds]) -> dict[tuple[int, int], float]:
    """(arm, round) → how far this boot lies from the mean of its round, by request, the median of them."""
    cells: dict[tuple[int, int], float] = {}
    for number in sorted({n for rounds in arms for n in rounds}):
        there = [(i, rounds[number]) for i, rounds in enumerate(arms) if rounds.get(number)]
        keys = set.intersection(*(set(values) for _, values in there))
        known = [key for key in sorted(keys) if any(values[key] for _, values in there)]
        if keys and not known:
            cells |= {(i, number): 0.0 for i, _ in there}
        boots = [(i, [values[key] for key in known]) for i, values in there]
        if any(value <= 0 for _, values in boots for value in values):
            # As `pair_logs` has it: zeros beside other values count in the sums.
            boots = [(i, [sum(values)]) for i, values in boots]
        if not known or any(value <= 0 for _, values in boots for value in values):
            continue
        middle = [fmean(math.log(value) for value in same) for same in zip(*(v for _, v in boots), strict=True)]
        levels = ((i, [math.log(value) - m for value, m in zip(v, middle, strict=True)]) for i, v in boots)
        cells |= {(i, number): median(level) for i, level in levels}
    return cells


def _sweep(cells: dict[tuple[int, int], float], rows: set[int], columns: set[int]) -> dict[tuple[int, int], float]:
    """Take out row and column means in turn until nothing moves: least squares also where boots are missing."""
    for _ in range(_SWEEPS):
        moved = 0.0
        for axis, names in ((0, rows), (1, columns)):
            for name in names:
                members = [place for place in cells if place[axis] == name]
                mean = fmean(cells[place] for place in members)
                moved = max(moved, abs(mean))
                for place in members:
                    cells[place] -= mean
        if moved < 1e-12:
            break
    return cells
