"""Many A/B experiments in virtual time, and what the lab's rules say of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, variance

from console.lab.measures import MEASURES, PRIMARY
from console.lab.sequential import looks, rule
from console.lab.spread import Spread, add_spreads, round_logs
from console.lab.stats import Comparison, compare_logs, pair_spread
from console.lab.student import t_factor
from console.lab.verdict import ArmState, Finding, overall
from tests.bench.virtual_boot import Noise, boot

MOST_ROUNDS = 10
JUDGED = tuple(name for name, measure in MEASURES.items() if measure.judged and name.partition(".")[0] != "replay")
_NAIVE = "decode.tpot_s"
_BASE, _ARM = ArmState("a", 9), ArmState("b", 9)


@dataclass
class Trial:
    """One experiment of equal arms: what is left of its boots."""

    logs: dict[str, list[float]] = field(default_factory=dict)
    """Measure → the logarithm of each round's ratio."""
    raw: list[tuple[list[float], list[float]]] = field(default_factory=list)
    """Round → the times per token of either arm's requests."""

    def spread(self, measure: str, rounds: int) -> Spread:
        """What a run of so many rounds would leave for later ones."""
        return pair_spread(self.logs[measure][:rounds])


def trial(noise: tuple[Noise, Noise], seed: str, rounds: int) -> Trial:
    """Boot both arms so many times; the arms are equal but for their noise."""
    rng, found = random.Random(seed), Trial()
    for _ in range(rounds):
        a, b = (boot(each, rng) for each in noise)
        for name in JUDGED:
            (log,) = round_logs({1: b[name]}, {1: a[name]}).values()
            found.logs.setdefault(name, []).append(log)
        found.raw.append((list(a[_NAIVE].values()), list(b[_NAIVE].values())))
    return found


def trials(noise: tuple[Noise, Noise], count: int, seed: int, workers: int, rounds: int = MOST_ROUNDS) -> list[Trial]:
    """So many experiments; equal seeds give equal ones, however many processes make them."""
    seeds = [f"{seed}/{noise[0].name}/{noise[1].name}/{i}" for i in range(count)]
    if workers < 2:
        return [trial(noise, each, rounds) for each in seeds]
    with ProcessPoolExecutor(workers) as pool:
        return list(pool.map(partial(trial, noise, rounds=rounds), seeds, chunksize=20))


@dataclass(frozen=True)
class Cell:
    """A way to run and judge experiments."""

    rounds: int
    pooled: bool = False
    """With the spread of an earlier A/A run of five rounds and two A/B runs of three: eight degrees of freedom."""
    early: bool = False
    """With the stop rule on."""

    @property
    def title(self) -> str:
        """In words."""
        return f"{self.rounds} rounds{', pooled' if self.pooled else ''}{', may end early' if self.early else ''}"


@dataclass
class Tally:
    """What became of the experiments of one cell in one measure at one true effect."""

    of: int = 0
    better: int = 0
    worse: int = 0
    equivalent: int = 0
    covered: int = 0
    rounds: int = 0

    def add(self, found: Comparison, log_effect: float, rounds: int) -> None:
        """One more."""
        assert found.lo is not None
        assert found.hi is not None
        self.of += 1
        self.better += found.verdict == "better"
        self.worse += found.verdict == "worse"
        self.equivalent += found.verdict == "equivalent"
        self.covered += math.log(found.lo) <= log_effect <= math.log(found.hi)
        self.rounds += rounds

    @property
    def named(self) -> int:
        """Experiments in which either arm was called the better one."""
        return self.better + self.worse


@dataclass
class Bank:
    """Experiments of one kind of noise, each with what earlier runs would lend to it: other experiments' boots."""

    trials: list[Trial]
    lent: dict[str, list[Spread]] = field(default_factory=dict)

    def past(self, measure: str) -> list[Spread]:
        """For each experiment."""
        if measure not in self.lent:
            count = len(self.trials)
            self.lent[measure] = [
                add_spreads(self.trials[(i + step) % count].spread(measure, n) for step, n in ((1, 5), (2, 3), (3, 3)))
                for i in range(count)
            ]
        return self.lent[measure]


def conclude(cell: Cell, logs: Sequence[float], lent: Spread, measure: str) -> tuple[Comparison, int]:
    """What the lab says at the end of one experiment, and after how many rounds that was."""
    lower = MEASURES[measure].lower_is_better
    for rounds in (*(looks(cell.rounds) if cell.early else ()), cell.rounds):
        found = compare_logs(
            ("b", "a"),
            logs[:rounds],
            rule(cell.rounds, over=rounds == cell.rounds, early=cell.early),
            past=lent if cell.pooled else None,
            lower_is_better=lower,
        )
        if found.verdict != "undecided" or rounds == cell.rounds:
            return found, rounds
    raise AssertionError("the last look always ends it")


def run_cell(bank: Bank, cell: Cell, measure: str, effect: float) -> Tally:
    """All experiments of a bank with arm b slower by `effect`: every time longer, every rate lower."""
    sign = 1.0 if MEASURES[measure].unit == "s" else -1.0
    shift, tally = sign * math.log1p(effect), Tally()
    for each, lent in zip(bank.trials, bank.past(measure), strict=True):
        logs = [log + shift for log in each.logs[measure]]
        found, rounds = conclude(cell, logs, lent, measure)
        tally.add(found, shift, rounds)
    return tally


def adopted(bank: Bank, cell: Cell, kind: str) -> int:
    """How often the overall verdict adopts an arm that is equal to the other."""
    return sum(_overall(bank, i, cell, kind) == "adopt" for i in range(len(bank.trials)))


def _overall(bank: Bank, i: int, cell: Cell, kind: str) -> str:
    """The overall word: with the stop rule at the first look at which it is adopt or keep."""
    word = "undecided"
    for rounds in (*(looks(cell.rounds) if cell.early else ()), cell.rounds):
        found = list(_findings(bank, i, cell, rounds))
        word = overall(kind, rounds, _BASE, _ARM, found, primary=PRIMARY.get(kind)).overall
        if word == "keep" or (word == "adopt" and not any(finding.leans_worse for finding in found)):
            return word
    return word


def _findings(bank: Bank, i: int, cell: Cell, rounds: int) -> Iterator[Finding]:
    used = rule(cell.rounds, over=rounds == cell.rounds, early=cell.early)
    alpha = (1 - used.decide) / len(JUDGED)
    for name in JUDGED:
        measure = MEASURES[name]
        lent = bank.past(name)[i] if cell.pooled else None
        logs, lower = bank.trials[i].logs[name][:rounds], measure.lower_is_better
        pair = compare_logs(("b", "a"), logs, used, past=lent, lower_is_better=lower)
        certain = pair.p is not None and pair.p <= alpha
        yield Finding(name, "", pair.verdict, pair.ratio, pair.lo, pair.hi, "", lower, certain)


def naive_requests(each: Trial, rounds: int) -> bool:
    """Whether a t test that takes requests for independent names a winner among equal arms."""
    a, b = ([math.log(v) for pair in each.raw[:rounds] for v in pair[side]] for side in (0, 1))
    return _welch(a, b)


def naive_runs(each: Trial) -> bool:
    """The same over the runs inside one boot of either arm."""
    return naive_requests(each, 1)


def disjoint(each: Trial) -> bool:
    """Whether the ranges of the runs inside one boot do not overlap: a tuner's usual rule."""
    a, b = each.raw[0]
    return max(a) < min(b) or max(b) < min(a)


def _welch(a: Sequence[float], b: Sequence[float]) -> bool:
    left, right = variance(a) / len(a), variance(b) / len(b)
    df = (left + right) ** 2 / (left**2 / (len(a) - 1) + right**2 / (len(b) - 1))
    return abs(fmean(a) - fmean(b)) > t_factor(0.95, round(df, 1)) * math.sqrt(left + right)
