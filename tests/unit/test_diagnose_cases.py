"""Every recorded log gets its right answer, however another version would have printed it."""

from __future__ import annotations

import pytest

from console.server.lines import EVIDENCE_LIMIT
from console.server.startup import read_startup
from tests.unit.log_cases import VARIANTS, Case, load_cases, text_of

CASES = load_cases()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right_answer(case: Case, variant: str) -> None:
    lines = VARIANTS[variant](case.lines)
    found = case.diagnose(lines)
    expected = case.expected
    assert (found.cause if found else None) == expected["cause"]
    if "phase" in expected:
        assert (found.phase if found else read_startup(lines).phase) == expected["phase"]
    if found is None:
        return
    text = text_of(found)
    assert [word for word in expected.get("says", []) if word not in text] == []
    assert [word for word in expected.get("fix", []) if word not in found.fix] == []
    assert [word for word in expected.get("hides", []) if word in text] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_answer_is_bounded(case: Case) -> None:
    found = case.diagnose()
    if found is not None:
        assert len(found.evidence) <= 6
        assert all(len(line) <= EVIDENCE_LIMIT and "\n" not in line for line in found.evidence)
        assert len(text_of(found)) < 5000
        assert found.what
        assert found.why
        assert found.fix


@pytest.mark.parametrize("case", [case for case in CASES if case.expected["cause"]], ids=lambda case: case.name)
def test_ranks_are_not_evidence_twice(case: Case) -> None:
    found = case.diagnose()
    assert found is not None
    said = [line.rpartition("] ")[2] for line in found.evidence]
    assert len(said) == len(set(said))
