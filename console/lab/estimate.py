"""How long a run will take, and which run fits a time. Estimates only: no result rests on these figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from console import units
from console.errors import UsageError
from console.lab.shapes import SIZES, Shape

ROUNDS = {"small": 3, "normal": 3, "full": 5}
"""By size; three are the least for an advice (`console.lab.verdict`)."""
MOST_ROUNDS = 100
# Figures reported for the reference machine.
_PREFILL_TOKENS_PER_S = 930.0
_DECODE_TOKENS_PER_S = 33.0
_STOP_S = 3.0


def boot_seconds(shape: Shape, workloads: tuple[str, ...], start_s: float, block_tokens: int) -> float:
    """Roughly how long one boot takes, start and stop included."""
    prompt = {
        "agent": _agent_tokens(shape, block_tokens),
        "decode": shape.decodes * shape.decode_prompt_tokens,
        "interference": shape.clashes * shape.clash_prompt_tokens,
        "concurrent": shape.sessions * shape.session_requests * shape.session_prompt_tokens,
        "replay": shape.replays * shape.prefix_tokens // 2,
    }
    answer = {
        "agent": shape.conversations * (2 + shape.turns) * shape.turn_answer_tokens,
        "decode": shape.decodes * shape.decode_answer_tokens,
        "interference": shape.clashes * shape.clash_answer_tokens,
        "concurrent": shape.session_requests * shape.session_answer_tokens,
        "replay": shape.replays * shape.decode_answer_tokens,
    }
    warm_up = shape.warm_up_prefix_tokens or shape.prefix_tokens
    tokens = warm_up + sum(prompt[name] for name in workloads)
    answers = shape.warm_up_least * shape.warm_up_answer_tokens + sum(answer[name] for name in workloads)
    return start_s + _STOP_S + tokens / _PREFILL_TOKENS_PER_S + answers / _DECODE_TOKENS_PER_S


def _agent_tokens(shape: Shape, block_tokens: int) -> int:
    warm = min(shape.prefix_tokens, block_tokens // 2 + shape.turn_tokens)
    return shape.conversations * (2 * shape.prefix_tokens + shape.turns * warm)


def run_seconds(boot_s: float, boots: int, arms: int, shape: Shape) -> float:
    """All boots, and what the first round does beside: the probes, of which the long prompt is the longest."""
    return boots * boot_s + arms * shape.recall_tokens / _PREFILL_TOKENS_PER_S


def amounts(size: str | None, rounds: int | None, *, quick: bool, budgeted: bool) -> Iterator[tuple[str, int]]:
    """Sizes and rounds that may be meant, the best first.

    Raises:
        UsageError: no such size, or no such number of rounds.
    """
    if size is not None and size not in SIZES:
        raise UsageError(f"there is no size {size!r}", "", f"one of {', '.join(SIZES)}")
    if rounds is not None and not 1 <= rounds <= MOST_ROUNDS:
        raise UsageError(f"{rounds} rounds make no run", "", f"from 1 to {MOST_ROUNDS}; three are a start")
    if quick:
        yield "small", 1
    elif not budgeted:
        found = size or "normal"
        yield found, ROUNDS[found] if rounds is None else rounds
    else:
        yield from ((s, n) for s, n in _PREFERRED if size in (None, s) and rounds in (None, n))
        if rounds is not None:
            yield from ((s, rounds) for s in ("full", "normal", "small") if size in (None, s))


# Boots are the evidence: more rounds come before larger workloads.
_PREFERRED = (
    *(("normal", n) for n in (10, 9, 8, 7, 6)),
    ("full", 5),
    *(("normal", n) for n in (5, 4, 3)),
    *(("full", n) for n in (4, 3)),
    *(("small", n) for n in (5, 4, 3)),
    *(("normal", n) for n in (2,)),
    *(("small", n) for n in (2, 1)),
)


def first_that_fits(
    candidates: Iterator[tuple[str, int]], seconds: Callable[[str, int], float], budget_s: float | None
) -> tuple[str, int]:
    """The best of the candidates within the time.

    Raises:
        UsageError: even the shortest takes longer.
    """
    shortest = None
    for size, rounds in candidates:
        took = seconds(size, rounds)
        if budget_s is None or took <= budget_s:
            return size, rounds
        shortest = took if shortest is None else min(shortest, took)
    raise UsageError(
        f"no run fits {units.duration(budget_s)}",
        f"the shortest would take about {units.duration(shortest)}",
        "give it more time, or ask for a smaller --size or fewer --rounds",
    )
