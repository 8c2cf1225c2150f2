"""Text to an exact number of tokens, by asking the server's own tokenizer."""

from __future__ import annotations

from collections.abc import Callable

from console.errors import ConsoleError
from console.lab.corpus import Walk

_TRIES = 24
_FILLERS = 48


def fit(walk: Walk, count: Callable[[str], int], target: int) -> str:
    """Text of the walk with which `count` gives exactly `target`.

    Raises:
        ConsoleError: the target is below what an empty text makes, or no text hits it.
    """
    low, low_tokens = 0, count("")
    if low_tokens > target:
        raise _unfit(target)
    high, high_tokens = low, low_tokens
    guess = max(1, (target - low_tokens) // 2)
    for _ in range(_TRIES):
        tokens = count(walk.text(guess))
        if tokens == target:
            return walk.text(guess)
        if tokens < target:
            low, low_tokens = guess, tokens
        else:
            high, high_tokens = guess, tokens
        if high == low + 1:
            break
        guess = _between((low, low_tokens), (high, high_tokens), target)
    return _fill(walk.text(low).rstrip(), count, target)


def _between(low: tuple[int, int], high: tuple[int, int], target: int) -> int:
    """The number of pieces to try next: interpolated, strictly inside what is known; beyond it while `high` is open."""
    if high[0] <= low[0]:
        rate = low[1] / low[0] if low[0] else 1.0
        return low[0] + max(1, round((target - low[1]) / rate * 1.05))
    share = (target - low[1]) / max(high[1] - low[1], 1)
    return min(max(low[0] + round(share * (high[0] - low[0])), low[0] + 1), high[0] - 1)


def _fill(text: str, count: Callable[[str], int], target: int) -> str:
    """Add words of about one token until the count is exact."""
    for filler in (" a", " .", "\n-", " 1"):
        filled = text
        for _ in range(_FILLERS):
            tokens = count(filled)
            if tokens == target:
                return filled
            if tokens > target:
                break
            filled += filler * max(1, (target - tokens) // 2)
    raise _unfit(target)


def _unfit(target: int) -> ConsoleError:
    return ConsoleError(
        f"no prompt of exactly {target} tokens could be made",
        "the server's /tokenize gives no text that count",
        "report this with the model's name; another --size may do",
    )
