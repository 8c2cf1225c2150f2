"""The prompts of one boot, to exact token counts, equal in every arm.

A prompt depends on the seed, the round and its place alone. Each boot begins with an empty cache; what has to be cold
begins with a nonce and carries a salt of its own, so that nothing of it can be shared from the first word on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from console.errors import ConsoleError
from console.lab.corpus import Walk
from console.lab.shapes import Shape

Message = Mapping[str, str]
Count = Callable[[list[Message]], int]
"""How many tokens the server makes of these messages, chat template included."""

_QUESTION = "Read the notes above. Then say in one paragraph what has to be changed first, and why."
_REPLY = "I will look at the next file before I answer."
_TOOL = "Result of read_file:\n"
_TRIES = 24
_FILLERS = 48
_AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Job:
    """One request of a boot."""

    workload: str
    """agent, decode or warm-up."""
    phase: str
    """cold, prime, warm or decode."""
    key: str
    """Pairs the requests of two arms within a round."""
    messages: tuple[Message, ...]
    prompt_tokens: int
    answer_tokens: int
    salt: str

    def body(self, model: str) -> bytes:
        """The JSON of the streamed request: greedy, of a fixed length, with running token counts."""
        request: dict[str, Any] = {
            "model": model,
            "messages": list(self.messages),
            "max_tokens": self.answer_tokens,
            "min_tokens": self.answer_tokens,
            "ignore_eos": True,
            "temperature": 0,
            "cache_salt": self.salt,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        }
        return json.dumps(request).encode()


@dataclass(frozen=True, slots=True)
class Jobs:
    """All requests of one boot, in order."""

    warm_up: tuple[Job, ...]
    """The real shapes: one agent prompt, then decodes of which as many run as it takes to be steady."""
    agent: tuple[Job, ...]
    decode: tuple[Job, ...]

    @property
    def measured(self) -> tuple[Job, ...]:
        """Everything but the warm-up."""
        return (*self.agent, *self.decode)


def build_jobs(shape: Shape, seed: int, round_number: int, count: Count) -> Jobs:
    """The requests of one round; equal arguments and an equal tokenizer give equal requests.

    Raises:
        ConsoleError: the server's tokenizer lets no text have the wanted count.
    """
    mark = f"{seed}/{round_number}"

    def warm_up(i: int) -> Job:
        return _decode(shape, f"{mark}/warm-up/{i}", count, "warm-up", f"warm-up/{i}")

    def talk(i: int) -> list[Job]:
        return list(_conversation(shape, f"{mark}/agent/{i}", count, f"agent/{i}"))

    def decode(i: int) -> Job:
        return _decode(shape, f"{mark}/decode/{i}", count, "decode", f"decode/{i}")

    # A prompt takes a handful of questions to the tokenizer, one after the other: several prompts are made at a time.
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        first = pool.submit(lambda: next(_conversation(shape, f"{mark}/warm-up", count, "warm-up")))
        talks = pool.map(talk, range(shape.conversations))
        warm = pool.map(warm_up, range(shape.warm_up_most))
        decodes = pool.map(decode, range(shape.decodes))
        agent = tuple(job for jobs in talks for job in jobs)
        return Jobs((first.result(), *warm), agent, tuple(decodes))


def _conversation(shape: Shape, mark: str, count: Count, key: str) -> Iterator[Job]:
    """Cold, the same again (in align mode the first repeat of a prefix may hit nothing), then growing turns."""
    nonce, walk = _nonce(mark), Walk(mark)
    workload = key.partition("/")[0]
    total = shape.prefix_tokens

    def opening(text: str) -> list[Message]:
        return [{"role": "system", "content": f"{nonce} {text}"}, {"role": "user", "content": _QUESTION}]

    messages = opening(fit(walk, lambda text: count(opening(text)), total))

    def job(phase: str, place: str) -> Job:
        return Job(workload, phase, f"{key}/{place}", tuple(messages), total, shape.turn_answer_tokens, nonce)

    if workload == "warm-up":
        yield job("cold", "agent")
        return
    yield job("cold", "cold")
    yield job("prime", "prime")
    for turn in range(shape.turns):
        total += shape.turn_tokens
        grown = [*messages, {"role": "assistant", "content": _REPLY}]
        tool = Walk(f"{mark}/turn/{turn}")

        def with_result(text: str, grown: list[Message] = grown) -> list[Message]:
            return [*grown, {"role": "user", "content": _TOOL + text}]

        text = fit(tool, lambda text, make=with_result: count(make(text)), total)  # type: ignore[misc]
        messages = with_result(text)
        yield job("warm", f"warm/{turn}")


def _decode(shape: Shape, mark: str, count: Count, workload: str, key: str) -> Job:
    nonce = _nonce(mark)

    def ask(text: str) -> list[Message]:
        return [{"role": "user", "content": f"{nonce} {text}"}]

    messages = ask(fit(Walk(mark), lambda text: count(ask(text)), shape.decode_prompt_tokens))
    answer = shape.decode_answer_tokens if workload == "decode" else shape.warm_up_answer_tokens
    return Job(workload, "decode", key, tuple(messages), shape.decode_prompt_tokens, answer, nonce)


def _nonce(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()[:12]


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
