"""What a rule is: data that knows one end of a log, and words for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from console.server.diagnosis.story import Record, Story
from console.server.lines import evidence
from console.server.status import Diagnosis, Phase

_FIX_CHARS = 800
_VALUED = re.compile(r"\bset --([a-z][a-z-]+)(?: to)? (\d+(?:\.\d+)?)")
_SEARCHED = 4000
"""Characters of a line that patterns see: an exception's sentence stands at its start."""


@dataclass(frozen=True, slots=True)
class Words:
    """An explanation in the user's words."""

    what: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A rule that matched: where, and in which story."""

    rule: Rule
    record: Record
    found: re.Match[str]
    story: Story

    def group(self, name: str) -> str | None:
        """A named group of the pattern that matched, if that pattern has it."""
        return self.found.groupdict().get(name)

    def quote(self) -> str:
        """What the log says, as one bounded sentence; the words a user would search for."""
        return evidence(self.record.text, self.found.group())

    def context(self, before: int = 80, after: int = 12) -> str:
        """The text around the line: the traceback above it, the rest of its message below."""
        around = [*self.story.before(self.record, before), self.record, *self.story.after(self.record, after)]
        return "\n".join(record.text for record in around if not record.line.folded)


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of fault.

    Attributes:
        id: its name, unique; a test carries it.
        cause: the stable word that scripts rely on.
        seen: versions of vLLM whose logs or source show the sentence.
        patterns: searched in lines that may accuse, in order.
        explain: the words for a match.
        phase: where this fault belongs, when the place in the log would mislead; None: where it stands.
        tier: 0 a precise sentence, 1 a sentence that others are better than; lower wins, then the earlier line.
        when_ready: can it kill a server that was ready?
        needs: must stand in the lines around, for a sentence that alone says too little.
    """

    id: str
    cause: str
    seen: str
    patterns: tuple[re.Pattern[str], ...]
    explain: Callable[[Fault], Words]
    phase: Phase | None = None
    tier: int = 0
    when_ready: bool = False
    needs: re.Pattern[str] | None = None

    def match(self, record: Record, story: Story) -> Fault | None:
        """The fault this line shows, if it is this rule's."""
        if record.phase in (Phase.READY, Phase.STOPPING) and story.ready_at is not None and not self.when_ready:
            return None
        for pattern in self.patterns:
            if found := pattern.search(record.text, 0, _SEARCHED):
                fault = Fault(self, record, found, story)
                if self.needs is None or self.needs.search(fault.context()):
                    return fault
        return None


def told(fault: Fault, phase: Phase | None = None) -> Diagnosis:
    """A fault as a diagnosis."""
    words = fault.rule.explain(fault)
    keys = as_keys(words.fix)
    return Diagnosis(
        cause=fault.rule.cause,
        what=words.what[:400],
        why=words.why[:1200],
        fix=words.fix[: _FIX_CHARS - len(keys)] + keys,
        evidence=fault.story.shown(fault.record, around=fault.found.group()),
        phase=phase or fault.rule.phase or fault.record.phase,
    )


def as_keys(fix: str) -> str:
    """How a preset and `--set` name the flags to which a fix gives a value; empty where it gives none."""
    found = list(dict.fromkeys(_VALUED.findall(fix)))
    if not found:
        return ""
    keys = " or ".join(f"`args: {{{flag}: {value}}}`" for flag, value in found)
    return f". In the preset: {keys}; for one start: `--set {found[0][0]}={found[0][1]}`"


def patterns(*texts: str) -> tuple[re.Pattern[str], ...]:
    """Regular expressions, compiled; case is ignored because versions differ in it."""
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)
