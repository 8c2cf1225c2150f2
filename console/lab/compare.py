"""Several runs of the history side by side: did the same question get the same answer?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from console import units
from console.lab.measures import MEASURES, said
from console.lab.stats import Comparison
from console.lab.view import RunView
from console.presets.overrides import differing_keys


@dataclass(frozen=True, slots=True)
class Cell:
    """One measure of one pair of arms in one run."""

    run: str
    ratio: float | None
    lo: float | None
    hi: float | None
    verdict: str

    @property
    def text(self) -> str:
        """`-48.0 % [-50.1 %, -45.9 %] better`."""
        if self.ratio is None:
            return units.NA
        span = "" if self.lo is None else f" [{units.change(self.lo)}, {units.change(self.hi)}]"
        return f"{units.change(self.ratio)}{span} {self.verdict}"


@dataclass(frozen=True, slots=True)
class Row:
    """One measure of one pair of arms over the runs that have it."""

    measure: str
    arm: str
    against: str
    cells: tuple[Cell, ...]

    @property
    def agree(self) -> bool | None:
        """Whether the intervals of all runs overlap; `None` with fewer than two of them."""
        spans = [(cell.lo, cell.hi) for cell in self.cells if cell.lo is not None and cell.hi is not None]
        if len(spans) < 2:
            return None
        return max(low for low, _ in spans) <= min(high for _, high in spans)


@dataclass(frozen=True, slots=True)
class Side:
    """Runs side by side."""

    runs: tuple[str, ...]
    rows: tuple[Row, ...]
    differences: tuple[str, ...]
    """Facts in which the runs differ: preset, size, vLLM, driver."""
    words: tuple[str, ...] = ()
    """What each run came to, and over how many rounds."""

    def to_json(self) -> dict[str, Any]:
        """For `ab compare --json`."""
        rows = [asdict(row) | {"agree": row.agree} for row in self.rows]
        said = {"runs": list(self.runs), "words": list(self.words), "differences": list(self.differences)}
        return {"schema": 1, **said, "rows": rows}


def side_by_side(views: Sequence[RunView]) -> Side:
    """Runs in the order given; measures that only one of them has stand there too."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for view in views:
        for name in MEASURES:
            for pair in view.metrics[name].compare if name in view.metrics else ():
                found.setdefault((name, pair.arm, pair.against), []).append(_cell(view.id, pair))
    rows = [Row(name, arm, against, tuple(cells)) for (name, arm, against), cells in found.items()]
    order = list(MEASURES)
    rows.sort(key=lambda row: (order.index(row.measure), row.arm))
    words = tuple(f"{view.word}, {units.counted(view.rounds, 'round')}" for view in views)
    return Side(tuple(view.id for view in views), tuple(rows), tuple(_differences(views)), words)


def _cell(run: str, pair: Comparison) -> Cell:
    return Cell(run, pair.ratio, pair.lo, pair.hi, pair.verdict)


def _differences(views: Sequence[RunView]) -> list[str]:
    facts = {
        "preset": [view.preset for view in views],
        "kind": [view.kind for view in views],
        "what the arms are": ["; ".join(view.changes) or "equal arms" for view in views],
        "size": [view.size for view in views],
        "workloads": [", ".join(view.workloads) for view in views],
        "vLLM": [_fact(view, "vllm") for view in views],
        "driver": [_fact(view, "driver") for view in views],
        "simulated": ["simulated" if view.simulated else "measured" for view in views],
    }
    found = [f"{name}: {' · '.join(values)}" for name, values in facts.items() if len(set(values)) > 1]
    return [*found, *_settings(views)]


def _settings(views: Sequence[RunView]) -> list[str]:
    """Keys that the first arms set otherwise: the preset was changed meanwhile, or `--set` was given."""
    first, *others = [view.first for view in views]
    keys = [key for other in others if first and other for key in differing_keys(first, other)]
    return [f"settings of the first arm: {', '.join(dict.fromkeys(keys))}"] if keys else []


def _fact(view: RunView, key: str) -> str:
    seen = {str(boot.env.get(key)) for boot in view.boots if boot.valid and boot.env.get(key)}
    return " / ".join(sorted(seen)) or units.NA


def lines(side: Side) -> list[str]:
    """The table as text: a column a run, each as wide as it has to be."""
    names = [f"{said(row.measure)}, {row.arm}/{row.against}" for row in side.rows]
    first = max((len(name) for name in names), default=0)
    # A run that lacks a measure has no cell: each row holds its cells by their runs.
    cells = [{cell.run: cell.text for cell in row.cells} for row in side.rows]
    words = dict(zip(side.runs, side.words, strict=True))
    widths = {run: max([len(run), *(len(row.get(run, "")) for row in [words, *cells])]) for run in side.runs}
    text = ["  ".join(["run".ljust(first), *(run.ljust(widths[run]) for run in side.runs)]).rstrip()]
    text.append("  ".join(["it says".ljust(first), *(words[run].ljust(widths[run]) for run in side.runs)]).rstrip())
    for name, row, found in zip(names, side.rows, cells, strict=True):
        agree = {True: "intervals overlap", False: "INTERVALS DO NOT OVERLAP", None: ""}[row.agree]
        shown = (found.get(run, "").ljust(widths[run]) for run in side.runs)
        text.append("  ".join([name.ljust(first), *shown, agree]).rstrip())
    return [*text, *(f"the runs differ in {line}" for line in side.differences)]
