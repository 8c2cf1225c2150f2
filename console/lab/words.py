"""What the words of a verdict mean, a sentence each; the one place for reports, lists and the terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from console.lab.sequential import SMALLEST, WORDS

NOISE_FLOOR = "noise floor"
ONE_ROUND = "one round: suggests only"
CHANGE = (
    "The change is the mean over rounds of the ratio of both arms, paired by request within its round; the columns are "
    "medians over all rounds, each arm for itself. So it need not be the ratio of the two."
)
PARTING = (
    "That answers part is information, not a fault: starts of one and the same configuration do so too, since sums are "
    "rounded in another order."
)
_ZONE = f"±{SMALLEST * 100:.0f} %"

RUN: Mapping[str, str] = MappingProxyType(
    {
        "adopt": "the arm is better in what the run is about, by more than "
        f"{_ZONE}, and nothing that was judged is worse by so much or just short of worse; "
        "`qwen-console ab adopt ID ARM` makes it a preset",
        "keep": "the first arm holds: the other one is worse, faulty, no better, or a trade (better in one measure and "
        "worse in another: which counts more is yours to say); what that changes in the preset stands in the verdict",
        "undecided": "the rounds that were made do not settle it: change nothing, or give it more rounds",
        "invalid": "what the run measures against crashed, or no round has a boot of both arms that counts: nothing "
        "follows from it",
        NOISE_FLOOR: "both arms are the same: so far apart does chance alone bring them on this machine; later "
        "verdicts on this preset show it beside theirs",
        "interrupted": "the run did not come to its end; `qwen-console ab resume ID` goes on where it was cut off",
        "failed": "the run itself could not go on; its last lines say why, `qwen-console ab resume ID` tries again",
        "running": "boots are still to come",
    }
)
"""A run's word → what it means."""

MEASURE: Mapping[str, str] = MappingProxyType(
    {
        "better": "the whole interval lies on the good side of no difference",
        "worse": "the whole interval lies on the bad side of no difference",
        "equivalent": f"the whole interval lies within {_ZONE}: no difference that counts",
        "undecided": "open, not equal: no difference fits, and one that counts does. Words rest on an interval a "
        f"little wider than the one shown (of {WORDS:g} of its error); where the shown one alone would give a word, it "
        "says *just short of* it",
    }
)
"""A comparison's word → what it means."""

_PROBES: Mapping[str, str] = MappingProxyType(
    {
        "tool_call": "tool call",
        "json_schema": "JSON by schema",
        "prefix_cache": "prefix cache",
        "long_context": "recall at length",
        "sampling": "sampling settings",
        "sampling_extra": "min_p, logit_bias",
    }
)


def probe_title(name: str) -> str:
    """A probe's name in journals and reports → what people read."""
    return _PROBES.get(name, name)


_EQUAL_ARMS = "too few rounds for a noise floor: two are the least, three are better; there is nothing to choose"


def meaning(kind: str, word: str) -> str | None:
    """What a run's word means for a run of this kind; equal arms leave nothing to choose."""
    return _EQUAL_ARMS if kind == "aa" and word == "undecided" else RUN.get(word)


def lacks(short_of: str | None, more_rounds: int | None, ratio: float | None) -> str:
    """What an open comparison lacks, in a few words; that it is of one round stands beside its interval."""
    if short_of:
        return f"just short of {short_of}"
    if more_rounds:
        return f"about {more_rounds} more round{'s' if more_rounds > 1 else ''}"
    return "no ratio" if ratio is None else ""


def run_word(kind: str, state: str, overall: str | None) -> str:
    """One word for a run: its verdict, once it came to its end; its state until then."""
    if state != "done" or overall is None:
        return state
    return NOISE_FLOOR if kind == "aa" and overall == "keep" else overall


def explained(run: str, measures: Iterable[str], kind: str = "") -> list[str]:
    """`keep: …` for the run's word and every word of its measures, in the order of the tables above."""
    seen = set(measures)
    own = [f"{run}: {text}"] if (text := meaning(kind, run)) else []
    return [*own, *(f"{word} (a measure): {text}" for word, text in MEASURE.items() if word in seen)]
