"""The KV cache: blocks, prefix reuse, eviction; pure.

A hybrid model needs two things to resume from a prefix: the attention blocks up to a position, and the state of its
recurrent layers at that position. The state exists only where a prefill chunk ended.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

Key = bytes


def chain(tokens: Sequence[int], block: int, salt: str, known: Sequence[Key] = ()) -> list[Key]:
    """Keys of the whole blocks of `tokens`; each key stands for everything up to its block's end.

    Args:
        tokens: token ids from the start.
        block: tokens in a block.
        salt: requests with different salts share nothing.
        known: keys of the first blocks, computed before.
    """
    keys = list(known)
    for start in range(len(keys) * block, len(tokens) - block + 1, block):
        before = keys[-1] if keys else salt.encode()
        text = ",".join(map(str, tokens[start : start + block]))
        keys.append(blake2b(before + b"|" + text.encode(), digest_size=16).digest())
    return keys


@dataclass(frozen=True, slots=True)
class Match:
    """What the cache has of a prompt, in blocks."""

    hit: int
    """From here prefill can go on."""
    shared: int
    """Attention blocks in the cache; beyond `hit` only the recurrent state is missing."""


@dataclass(slots=True)
class Holding:
    """What one request holds of the cache."""

    blocks: int = 0
    """All blocks, shared ones included."""
    keys: list[Key] = field(default_factory=list)
    """The shared or shareable ones among them."""


class Blocks:
    """A fixed number of blocks with reference counts; idle cached blocks go in the order of their last use."""

    def __init__(self, capacity: int, *, drop_last: bool = False) -> None:
        self.capacity = capacity
        self._drop_last = drop_last
        self._private = 0
        self._held: dict[Key, int] = {}
        self._idle: OrderedDict[Key, None] = OrderedDict()
        self._states: set[Key] = set()

    @property
    def used(self) -> float:
        """Share of the blocks that running requests hold."""
        return self._referenced / self.capacity

    @property
    def _referenced(self) -> int:
        return self._private + len(self._held)

    def match(self, keys: Sequence[Key]) -> Match:
        """How much of a prompt with these block keys can be reused."""
        shared = 0
        for key in keys:
            if key not in self._held and key not in self._idle:
                break
            shared += 1
        # Speculation needs the last block computed again: its draft layer has no state of its own to resume from.
        usable = shared - 1 if self._drop_last and shared else shared
        hit = next((n for n in range(usable, 0, -1) if keys[n - 1] in self._states), 0)
        return Match(hit, shared)

    def take(self, holding: Holding, keys: Sequence[Key], blocks: int) -> bool:
        """Give a new request the cached blocks `keys` and room for `blocks` in all; false if there is no room."""
        fresh = blocks - len(keys) + sum(key not in self._held for key in keys)
        if self._referenced + fresh > self.capacity:
            return False
        for key in keys:
            self._idle.pop(key, None)
            self._held[key] = self._held.get(key, 0) + 1
        holding.keys.extend(keys)
        holding.blocks = len(keys)
        return self.grow(holding, blocks)

    def grow(self, holding: Holding, blocks: int) -> bool:
        """Room for `blocks` in all, forgetting idle blocks where needed; false if there is none."""
        more = blocks - holding.blocks
        if more <= 0:
            return True
        if self._referenced + more > self.capacity:
            return False
        self._private += more
        holding.blocks = blocks
        while self._referenced + len(self._idle) > self.capacity:
            key, _ = self._idle.popitem(last=False)
            self._states.discard(key)
        return True

    def fill(self, holding: Holding, keys: Sequence[Key], state_at: int) -> None:
        """The request's first blocks hold `keys` now; the recurrent state after block `state_at` was kept (0: none)."""
        for key in keys[len(holding.keys) :]:
            if key in self._held or key in self._idle:
                # A twin computed the same block first: ours stays private and unshared.
                break
            self._private -= 1
            self._held[key] = 1
            holding.keys.append(key)
        if 0 < state_at <= len(keys) and (keys[state_at - 1] in self._held or keys[state_at - 1] in self._idle):
            self._states.add(keys[state_at - 1])

    def release(self, holding: Holding) -> None:
        """The request is gone: its shareable blocks become idle, the tail first to be forgotten."""
        self._private -= holding.blocks - len(holding.keys)
        for key in reversed(holding.keys):
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key]
                self._idle[key] = None
        holding.blocks = 0
        holding.keys.clear()
