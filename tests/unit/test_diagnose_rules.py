"""Each rule on the wordings in which its fault is known; each with a start around it as vLLM prints one."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from console.server.diagnose import diagnose
from console.server.diagnosis.rules import RULES, find_fault
from console.server.diagnosis.story import read_story
from tests.unit.log_cases import FOLDER, VARIANTS, text_of
from tests.unit.log_starts import UP_TO, broke, plain, raw

TABLE: list[dict[str, Any]] = yaml.safe_load((FOLDER / "rules.yaml").read_text())
NAMES = [f"{at}-{told['rule']}" for at, told in enumerate(TABLE)]


def composed(told: dict[str, Any]) -> list[str]:
    """The log that a line of the table stands for."""
    before = UP_TO[told.get("after", "start")]
    if told["how"] == "engine":
        return broke(told["said"], before, told.get("frame", "core.py"))
    return raw(told["said"], before) if told["how"] == "front end" else plain(told["said"], before)


@pytest.mark.parametrize("told", TABLE, ids=NAMES)
def test_rule(told: dict[str, Any]) -> None:
    lines = composed(told)
    fault = find_fault(read_story(lines))
    assert fault is not None
    assert fault.rule.id == told["rule"]
    found = diagnose(lines)
    assert found is not None
    assert (found.cause, found.phase) == (told["cause"], told["phase"])
    assert [word for word in told.get("says", []) if word not in text_of(found)] == []
    assert [word for word in told.get("fix", []) if word not in found.fix] == []


@pytest.mark.parametrize("variant", ["bare", "no-prefix", "older-names", "container", "returns", "four-ranks"])
@pytest.mark.parametrize("told", TABLE, ids=NAMES)
def test_rule_in_other_clothes(told: dict[str, Any], variant: str) -> None:
    found = diagnose(VARIANTS[variant](composed(told)))
    assert found is not None
    assert (found.cause, found.phase) == (told["cause"], told["phase"])


def test_every_rule_has_a_test() -> None:
    assert {told["rule"] for told in TABLE} == {rule.id for rule in RULES}


def test_rules_are_named_once_and_say_where_they_were_seen() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.seen for rule in RULES)
