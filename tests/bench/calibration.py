"""How often is the lab wrong, and what can it see? Thousands of experiments on the stand-in's timing, in virtual time.

    python -m tests.bench.calibration [--experiments 2000] [--out docs/calibration.md]

Minutes; nothing sleeps. Equal seeds give equal numbers.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from statistics import fmean

from console import __version__
from tests.bench.document import commit, hand_in, listed, refused
from tests.bench.process_trials import through_processes
from tests.bench.trials import (
    JUDGED,
    Bank,
    Cell,
    Tally,
    adopted,
    disjoint,
    naive_requests,
    naive_runs,
    run_cell,
    trials,
)
from tests.bench.virtual_boot import MTP, PLAIN, REPORTED, Noise

EFFECTS = (0.0, 0.03, 0.05, 0.10, 0.20)
ROUNDS = (3, 5, 10)
CELLS = (
    *(Cell(rounds, pooled) for rounds in ROUNDS for pooled in (False, True)),
    *(Cell(rounds, pooled, early=True) for rounds in (5, 10) for pooled in (False, True)),
)
SETTINGS: tuple[tuple[str, tuple[Noise, Noise]], ...] = (
    (REPORTED.name, (REPORTED, REPORTED)),
    (PLAIN.name, (PLAIN, PLAIN)),
    (f"arms of unequal noise: {PLAIN.name}; {MTP.name}", (PLAIN, MTP)),
)
COVERAGE = (0.935, 0.965)
_FIRST = "decode.tpot_s"
_TIMES = 5
"""So many more experiments decide about a cell beyond its limit."""


def limit(count: int) -> int:
    """The number of false words that a true 5 % stays at or below 99 % of the time."""
    mean, total = 0.05, 0.0
    for k in range(count + 1):
        log = math.lgamma(count + 1) - math.lgamma(k + 1) - math.lgamma(count - k + 1)
        total += math.exp(log + k * math.log(mean) + (count - k) * math.log1p(-mean))
        if total >= 0.99:
            return k
    return count


class Report:
    """Lines of the document, and whether everything held."""

    def __init__(self, count: int) -> None:
        self.count, self.allowed = count, limit(count)
        self.lines: list[str] = []
        self.failures: list[str] = []
        self.seen_again: list[str] = []
        """Cells beyond their limit that were looked at again."""
        self._again: Callable[[], Bank] = lambda: Bank([])

    def table(self, head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
        """A Markdown table."""
        self.lines += [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
        self.lines += [f"| {' | '.join(row)} |" for row in rows]
        self.lines.append("")

    def setting(self, title: str, bank: Bank, again: Callable[[], Bank]) -> None:
        """Every table of one kind of noise; `again` makes fresh experiments for a cell beyond its limit."""
        self.lines += [f"## Spread {title}", ""]
        self._again = cache(again)
        found = {(c, m, e): run_cell(bank, c, m, e) for c in CELLS for m in JUDGED for e in EFFECTS}
        self._false(found)
        self._adopted(bank)
        self._power(found)
        self._coverage(found)
        self._naive(bank)

    def _false(self, found: dict[tuple[Cell, str, float], Tally]) -> None:
        self.lines += [f"False *better* or *worse* among {self.count:,} A/A experiments (allowed: {self.allowed}):", ""]

        def rows() -> Iterator[Sequence[str]]:
            for cell in CELLS:
                counts = [found[cell, measure, 0.0].named for measure in JUDGED]
                for measure, count in zip(JUDGED, counts, strict=True):
                    if count > self.allowed:
                        self._look_again(cell, measure, count)
                yield [cell.title, *(str(count) for count in counts)]

        self.table(["", *JUDGED], rows())

    def _look_again(self, cell: Cell, measure: str, count: int) -> None:
        """A true 5 % is beyond the limit in one cell of a hundred by chance: fresh experiments decide."""
        fresh = self._again()
        tally = run_cell(fresh, cell, measure, 0.0)
        text = f"{cell.title}, {measure}: {count} of {self.count:,}; {tally.named} of {tally.of:,} fresh ones"
        text += f" ({tally.named / tally.of:.1%}; allowed {limit(tally.of)})"
        self.seen_again.append(text)
        self._hold(tally.named <= limit(tally.of), text)

    def _adopted(self, bank: Bank) -> None:
        self.lines += ["False *adopt* of the overall verdict (kind with a primary measure · kind without one):", ""]

        def rows() -> Iterator[Sequence[str]]:
            for cell in CELLS:
                counts = [adopted(bank, cell, kind) for kind in ("mtp", "custom")]
                self._hold(max(counts) <= self.allowed, f"{cell.title}: {max(counts)} false adopts")
                yield [cell.title, *(f"{count} ({count / self.count:.1%})" for count in counts)]

        self.table(["", "mtp (decode.tpot_s decides)", "custom (any measure, corrected)"], rows())

    def _power(self, found: dict[tuple[Cell, str, float], Tally]) -> None:
        self.lines += [
            f"Power in `{_FIRST}`: how often a true difference is named (and how often equal arms are called"
        ]
        self.lines += ["*equivalent*); with the stop rule the mean number of rounds:", ""]

        def rows() -> Iterator[Sequence[str]]:
            for cell in CELLS:
                tallies = [found[cell, _FIRST, effect] for effect in EFFECTS]
                shares = [f"{tally.worse / tally.of:.0%}" for tally in tallies[1:]]
                if cell.early:
                    pairs = zip(shares, tallies[1:], strict=True)
                    shares = [f"{share} ({tally.rounds / tally.of:.1f})" for share, tally in pairs]
                yield [cell.title, *shares, f"{tallies[0].equivalent / tallies[0].of:.0%}"]

        self.table(["", *(f"{effect:.0%}" for effect in EFFECTS[1:]), "equivalent at 0 %"], rows())

    def _coverage(self, found: dict[tuple[Cell, str, float], Tally]) -> None:
        low, high = COVERAGE
        self.lines += ["How often the interval holds the true ratio: mean over the measures, and the extremes:", ""]

        def rows() -> Iterator[Sequence[str]]:
            for cell in CELLS:
                row = [cell.title]
                for effect in EFFECTS:
                    tallies = [found[cell, measure, effect] for measure in JUDGED]
                    shares = [tally.covered / tally.of for tally in tallies]
                    mean = fmean(shares)
                    self._hold(low <= mean <= high, f"{cell.title}, {effect:.0%}: coverage {mean:.1%}")
                    row.append(f"{mean:.1%} ({min(shares):.1%}-{max(shares):.1%})")
                yield row

        self.table(["", *(f"{effect:.0%}" for effect in EFFECTS)], rows())

    def _naive(self, bank: Bank) -> None:
        """The reason for the method."""
        counts = {
            "t test over the requests of one boot an arm": sum(naive_runs(each) for each in bank.trials),
            "t test over all requests of three boots an arm": sum(naive_requests(each, 3) for each in bank.trials),
            "ranges of the runs inside one boot disjoint (a tuner's rule)": sum(disjoint(each) for each in bank.trials),
        }
        self.lines += ["What other rules say of the same equal arms (a winner named, of all experiments):", ""]
        self.table(["rule", "false"], ([name, f"{n} ({n / len(bank.trials):.0%})"] for name, n in counts.items()))
        name, worst = max(counts.items(), key=lambda item: item[1])
        self._hold(worst > self.allowed, f"even {name} stays within the limit: the noise is too small to tell")

    def _hold(self, good: bool, text: str) -> None:
        if not good:
            self.failures.append(text)


def head(args: argparse.Namespace, seconds: float) -> list[str]:
    """What the document says before its tables."""
    return [
        "# How often the lab is wrong, and what it can see",
        "",
        f"`python -m tests.bench.calibration --experiments {args.experiments} --seed {args.seed}`, "
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit()}, qwen-console {__version__}, "
        f"Python {platform.python_version()}, {seconds / 60:.1f} minutes on {args.workers} processes.",
        "",
        "Every boot runs all workloads through the stand-in engine's scheduler and timing in virtual time; stamps",
        "become measures, measures rounds, rounds words, all by the lab's own code. A true effect makes every time of",
        "one arm longer by that much (a rate lower). *Pooled*: with the spread that an A/A run of five rounds and two",
        "A/B runs of three left behind (eight degrees of freedom). *May end early*: with the stop rule. Intervals are",
        "of 95 %; words are found at nine tenths of the error that leaves (`sequential.WORDS`). Method and sources",
        "stand in `console/lab/stats.py`, `spread.py` and `sequential.py`.",
        "",
    ]


def _fresh(noise: tuple[Noise, Noise], args: argparse.Namespace) -> Bank:
    print("  a cell is beyond its limit: fresh experiments", file=sys.stderr)
    return Bank(trials(noise, _TIMES * args.experiments, args.seed + 1000, args.workers))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiments", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=0, help="A/A runs through real processes, half a minute each")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="write the document there instead of to stdout")
    args = parser.parse_args()
    if refused():
        return 2
    begun, report = time.monotonic(), Report(args.experiments)
    for title, noise in SETTINGS:
        print(f"{title}: {args.experiments} experiments", file=sys.stderr)
        fresh = partial(_fresh, noise, args)
        report.setting(title, Bank(trials(noise, args.experiments, args.seed, args.workers)), fresh)
    if args.runs:
        report.lines += ["## Through real processes", "", through_processes(args.runs).text, ""]
    held = listed(report.failures, "everything is within its limits")
    cells = 3 * len(CELLS) * len(JUDGED)
    again = listed(report.seen_again, "none")
    note = (
        f"Of {cells} cells a true 5 % puts about {cells // 100} beyond their limit by chance; each is decided by fresh"
    )
    lines = [*head(args, time.monotonic() - begun), *report.lines, "## Looked at again", "", note, "experiments:", ""]
    lines += [*again, "", "## Outside the limits", "", *held]
    return hand_in(lines, args.out, report.failures, "outside the limits:")


if __name__ == "__main__":
    sys.exit(main())
