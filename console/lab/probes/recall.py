"""Does the model find a fact in a prompt near its context's end, and does speculation live on afterwards?"""

from __future__ import annotations

import random
from collections.abc import Callable

from console.lab.corpus import Walk
from console.lab.fitting import fit
from console.lab.probes.asking import Asker, Message, Tally, user

Count = Callable[[list[Message]], int]
_ASK = "\n\nWhat is the access code of the depot? Answer with the code alone."
_ANSWER_TOKENS = 48


def recall(asker: Asker, count: Count, tokens: int, seed: int) -> Tally:
    """One prompt of exactly `tokens` tokens with a code hidden after its first third."""
    code = str(random.Random(f"{seed} recall").randrange(100_000, 1_000_000))
    fact = f" Note well: the access code of the depot is {code}. "

    def conversation(text: str) -> list[dict[str, str]]:
        third = text.find(" ", len(text) // 3)
        return user(text[:third] + fact + text[third:] + _ASK)

    # Beyond the answer's room: a prompt that fills the context leaves none.
    text = fit(Walk(f"{seed}/recall"), lambda text: count([*conversation(text)]), tokens)
    question = {"messages": conversation(text), "max_tokens": _ANSWER_TOKENS, "cache_salt": f"recall-{seed}"}

    def problem(message: Message) -> str | None:
        said = str(message.get("content") or "")
        return None if code in said else f"it answered {said[:60]!r}"

    why = asker.ask(question, problem, deadline_s=120 + 0.02 * tokens)
    return Tally(int(why is None), 1, why)


def decode_afterwards(asker: Asker) -> str | None:
    """A short answer after the long prompt, over which acceptance is looked at again; why it failed."""
    question = {"messages": user("Count upwards from one."), "max_tokens": 64, "ignore_eos": True}
    return asker.ask(question, lambda message: None if message.get("content") else "no text")
