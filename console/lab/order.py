"""In which order the arms boot: seeded, balanced, mirrored."""

from __future__ import annotations

import random
from collections.abc import Sequence


def balanced_order(arms: Sequence[str], rounds: int, seed: int) -> tuple[str, ...]:
    """All boots of a run in order, every arm once a round.

    Each second round mirrors the one before it, so that a linear drift (heat, a filling cache on disk) cancels; the
    next pair starts one arm further, so that no arm is always the first after a break.
    """
    first = list(arms)
    random.Random(seed).shuffle(first)
    boots: list[str] = []
    for number in range(rounds):
        shift = number // 2 % len(first)
        turn = first[shift:] + first[:shift]
        boots += turn if number % 2 == 0 else turn[::-1]
    return tuple(boots)
