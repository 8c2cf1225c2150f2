"""All rules, in one table."""

from __future__ import annotations

from console.server.diagnosis.engine import ENGINE_RULES
from console.server.diagnosis.memory import MEMORY_RULES
from console.server.diagnosis.model import MODEL_RULES
from console.server.diagnosis.rule import Fault, Rule
from console.server.diagnosis.setup import SETUP_RULES
from console.server.diagnosis.story import Story

RULES: tuple[Rule, ...] = (*MEMORY_RULES, *ENGINE_RULES, *MODEL_RULES, *SETUP_RULES)


def find_fault(story: Story) -> Fault | None:
    """The rule that explains a story best: the most precise, then the earliest line, then the table's order."""
    faults = [fault for record in story.accusing() for rule in RULES if (fault := rule.match(record, story))]
    return min(faults, key=lambda fault: (fault.rule.tier, fault.record.at), default=None)
