"""A small part of the calibration through real processes: A/A runs of the command on the stand-in engine."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.bench.trials import JUDGED
from tests.console_process import Console


@dataclass(frozen=True)
class Through:
    """What the runs said of equal arms."""

    runs: int
    comparisons: int
    named: int
    """Comparisons that named a winner."""
    held: int
    """Intervals that hold 1."""
    adopted: int
    void: int
    """Boots that did not count; a comparison of which one round is left has no interval."""

    @property
    def text(self) -> str:
        """In a sentence."""
        return (
            f"{self.runs} A/A runs of three rounds through real processes (the stand-in, twenty times faster): "
            f"{self.named} of {self.comparisons} comparisons named a winner, {self.held} intervals hold 1, "
            f"{self.adopted} runs said *adopt*; {self.void} boots did not count. Later runs pool the spread of earlier "
            "ones."
        )


def through_processes(runs: int) -> Through:
    """So many A/A runs, one after the other, in a state folder of their own."""
    found, adopted, void = [], 0, 0
    with tempfile.TemporaryDirectory() as folder:
        env = {"XDG_STATE_HOME": folder, "QWEN_CONSOLE_SIM_START_S": "0.2", "QWEN_CONSOLE_SIM_SPEED": "20"}
        console = Console(env | {"XDG_CONFIG_HOME": str(Path(folder) / "config")}, demo=True)
        try:
            for _ in range(runs):
                report = console("ab", "aa", "--size", "small", "--rounds", "3", "--json", timeout=900).json
                adopted += report["verdict"]["overall"] == "adopt"
                void += sum(not boot["valid"] for boot in report["boots"])
                pairs = [report["metrics"][name]["compare"][0] for name in JUDGED if name in report["metrics"]]
                found += [pair for pair in pairs if pair["lo"] is not None]
        finally:
            console.end()
    return Through(
        runs,
        len(found),
        sum(pair["verdict"] in ("better", "worse") for pair in found),
        sum(pair["lo"] <= 1 <= pair["hi"] for pair in found),
        adopted,
        void,
    )
