"""The prefix cache tested on itself: a prompt of k whole blocks and a tail, three times."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from console.errors import ConsoleError
from console.lab.corpus import Walk
from console.lab.fitting import fit
from console.lab.probes.asking import Asker, Message, refusal, user

Count = Callable[[list[Message]], int]
TIMES = 3


@dataclass(frozen=True, slots=True)
class PrefixTest:
    """What the three sendings took from the cache."""

    block_tokens: int
    prompt_tokens: int
    expected: int
    """The largest multiple of the block below the prompt's length."""
    cached: tuple[int | None, ...]
    """Of each sending; `None` where the server does not say."""
    ttft_s: tuple[float | None, ...] = ()
    speculates: bool = False

    @property
    def ok(self) -> bool | None:
        """Whether the last sending hit what it should; `None` if nobody can say."""
        last = self.cached[-1]
        if last is None:
            return None
        # Under speculation the last matched block is computed again: its hidden states are needed.
        return last in ((self.expected, self.expected - self.block_tokens) if self.speculates else (self.expected,))

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        first, *_, last = self.cached
        if last is None:
            return "the server does not say what it took from the cache (--enable-prompt-tokens-details)"
        if first:
            return f"{first} tokens came from the cache at the first sending: somebody sent this prompt before"
        if self.ok and self.cached[1] == 0:
            return f"the prefix cache works from the third sending on: {last} of {self.prompt_tokens} tokens"
        if self.ok and last < self.expected:
            return (
                f"the prefix cache works: {last} of {self.prompt_tokens} tokens; MTP computes the last matched block "
                f"of {self.block_tokens} again"
            )
        if self.ok:
            return f"the prefix cache works: {last} of {self.prompt_tokens} tokens, whole blocks of {self.block_tokens}"
        if not last:
            return f"the prefix cache took nothing, where {self.expected} tokens were to be expected"
        return f"the prefix cache took {last} tokens, where {self.expected} were to be expected"

    def to_json(self) -> dict[str, Any]:
        """For `--json` and the journal."""
        return asdict(self) | {"ok": self.ok, "sentence": self.sentence}


def prefix_test(asker: Asker, count: Count, block_tokens: int, blocks: int, *, speculates: bool = False) -> PrefixTest:
    """Send a prompt of `blocks` whole blocks and a tail three times.

    Raises:
        ConsoleError: a request was refused, or no such prompt can be made.
    """
    nonce = secrets.token_hex(6)
    tokens = blocks * block_tokens + max(2, block_tokens // 4)

    def ask(text: str) -> list[dict[str, str]]:
        return user(f"{nonce} {text}")

    messages = ask(fit(Walk(nonce), lambda text: count([*ask(text)]), tokens))
    question = {"messages": messages, "max_tokens": 1, "cache_salt": nonce}
    cached: list[int | None] = []
    for _ in range(TIMES):
        status, answer, why = asker.raw(question, deadline_s=120 + 0.02 * tokens)
        if why is not None or status != 200:
            raise ConsoleError("the prefix test was not answered", why or refusal(status, answer), "see the log")
        cached.append(_cached(answer))
    return PrefixTest(block_tokens, tokens, (tokens - 1) // block_tokens * block_tokens, tuple(cached), (), speculates)


def _cached(answer: Any) -> int | None:
    usage = answer.get("usage") if isinstance(answer, dict) else None
    details = (usage or {}).get("prompt_tokens_details")
    value = details.get("cached_tokens") if isinstance(details, dict) else None
    return value if isinstance(value, int) else None
