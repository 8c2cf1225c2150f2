"""Between two rounds: is the verdict settled, so that the rest need not be run?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from console.lab.judge import findings, judge_arm
from console.lab.plan import Plan
from console.lab.results import read_results
from console.lab.sequential import looks
from console.lab.verdict import Finding, Verdict


def settled_by(run_dir: Path, plan: Plan, rounds: int) -> str | None:
    """Why the run may end after so many rounds; `None` if it has to go on, or was not planned to end early."""
    if not plan.early or plan.kind == "aa" or rounds not in looks(plan.rounds):
        return None
    results = read_results(run_dir)
    if results is None:
        return None
    base, *others = [arm.name for arm in plan.arms]
    verdicts = [(judge_arm(results, base, arm), findings(results, arm)) for arm in others]
    if not all(_is_settled(verdict, found) for verdict, found in verdicts):
        return None
    return "; ".join(verdict.sentence for verdict, _ in verdicts)


def _is_settled(verdict: Verdict, found: Sequence[Finding]) -> bool:
    """Adopt waits until nothing leans the wrong way: more rounds might show it to be worse."""
    if verdict.overall == "adopt":
        return not any(finding.leans_worse for finding in found)
    return verdict.overall == "keep"
