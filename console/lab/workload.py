"""The prompts of one boot, to exact token counts, equal in every arm.

A prompt depends on the seed, the round and its place alone. Each boot begins with an empty cache; what has to be cold
begins with a nonce and carries a salt of its own, so that nothing of it can be shared from the first word on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from console.lab.corpus import Walk
from console.lab.fitting import fit
from console.lab.jobs import GREEDY, Act, Job, Jobs, Message
from console.lab.shapes import TRIGGER, Shape

Count = Callable[[list[Message]], int]
"""How many tokens the server makes of these messages, chat template included."""

_QUESTION = "Read the notes above. Then say in one paragraph what has to be changed first, and why."
_GO_ON = "Go on with the text below for as long as you can, in its own style. Do not stop and do not comment."
_REPLY = "I will look at the next file before I answer."
_TOOL = "Result of read_file:\n"
_AT_A_TIME = 8
_GREEDY_EVERY = 3
"""One decode of so many is greedy."""


def build_jobs(
    shape: Shape,
    workloads: Sequence[str],
    seed: int,
    round_number: int,
    count: Count,
    recorded: Sequence[Job] = (),
) -> Jobs:
    """The requests of one round; equal arguments and an equal tokenizer give equal requests.

    Raises:
        ConsoleError: the server's tokenizer lets no text have the wanted count.
    """
    mark = f"{seed}/{round_number}"
    makers: dict[str, list[Callable[[], Act | tuple[Act, ...]]]] = {
        "agent": [_later(_conversation, shape, mark, count, i) for i in range(shape.conversations)],
        "decode": [_later(_decode_act, shape, mark, count, i) for i in range(shape.decodes)],
        "interference": [_later(_clash, shape, mark, count, i) for i in range(shape.clashes)],
        "concurrent": [_later(_sessions, shape, mark, count)] if shape.sessions else [],
        "replay": [_later(_replay, recorded, mark)] if recorded else [],
    }
    # A prompt takes a handful of questions to the tokenizer, one after the other: several prompts are made at a time.
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        first = pool.submit(_warm_prefix, shape, mark, count)
        warm = pool.map(lambda i: _warm_decode(shape, mark, count, i), range(shape.warm_up_most))
        made = {name: [pool.submit(make) for make in makers[name]] for name in workloads}
        acts = {name: tuple(_flat(part.result() for part in parts)) for name, parts in made.items()}
        return Jobs((first.result(), *warm), acts)


def _later(make: Callable[..., Act | tuple[Act, ...]], *words: object) -> Callable[[], Act | tuple[Act, ...]]:
    return lambda: make(*words)


def _flat(parts: Iterator[Act | tuple[Act, ...]]) -> Iterator[Act]:
    for part in parts:
        yield from part if isinstance(part, tuple) else (part,)


def _opening(nonce: str, text: str) -> list[Message]:
    return [{"role": "system", "content": f"{nonce} {text}"}, {"role": "user", "content": _QUESTION}]


def _long(mark: str, count: Count, tokens: int) -> tuple[str, list[Message]]:
    """A nonce, and a long prompt that begins with it."""
    nonce = _nonce(mark)
    return nonce, _opening(nonce, fit(Walk(mark), lambda text: count(_opening(nonce, text)), tokens))


def _short(mark: str, count: Count, tokens: int) -> tuple[str, list[Message]]:
    """A nonce, and a short prompt that asks for a long answer."""
    nonce = _nonce(mark)

    def ask(text: str) -> list[Message]:
        return [{"role": "user", "content": f"{nonce} {_GO_ON}\n\n{text}"}]

    return nonce, ask(fit(Walk(mark), lambda text: count(ask(text)), tokens))


def _warm_prefix(shape: Shape, mark: str, count: Count) -> Job:
    tokens, answer = shape.warm_up_prefix_tokens or shape.prefix_tokens, shape.turn_answer_tokens
    nonce, messages = _long(f"{mark}/warm-up", count, tokens)
    return Job("warm-up", "cold", "warm-up/agent", tuple(messages), tokens, answer, nonce)


def _warm_decode(shape: Shape, mark: str, count: Count, i: int) -> Job:
    nonce, messages = _short(f"{mark}/warm-up/{i}", count, shape.decode_prompt_tokens)
    tokens, answer = shape.decode_prompt_tokens, shape.warm_up_answer_tokens
    return Job("warm-up", "decode", f"warm-up/{i}", tuple(messages), tokens, answer, nonce, ids=True)


def _decode_act(shape: Shape, mark: str, count: Count, i: int) -> Act:
    nonce, messages = _short(f"{mark}/decode/{i}", count, shape.decode_prompt_tokens)
    tokens, answer = shape.decode_prompt_tokens, shape.decode_answer_tokens
    phase = GREEDY if i % _GREEDY_EVERY == 1 else "decode"
    return Act((Job("decode", phase, f"decode/{i}", tuple(messages), tokens, answer, nonce, ids=True),))


def _conversation(shape: Shape, mark: str, count: Count, i: int) -> tuple[Act, ...]:
    """Cold, the same again (in align mode the first repeat of a prefix may hit nothing), then growing turns."""
    mark = f"{mark}/agent/{i}"
    total = shape.prefix_tokens
    nonce, messages = _long(mark, count, total)

    def act(phase: str, place: str) -> Act:
        key = f"agent/{i}/{place}"
        return Act((Job("agent", phase, key, tuple(messages), total, shape.turn_answer_tokens, nonce),))

    acts = [act("cold", "cold"), act("prime", "prime")]
    for turn in range(shape.turns):
        total += shape.turn_tokens
        grown = [*messages, {"role": "assistant", "content": _REPLY}]
        messages = _with_result(grown, f"{mark}/turn/{turn}", count, total)
        acts.append(act("warm", f"warm/{turn}"))
    return tuple(acts)


def _with_result(grown: list[Message], mark: str, count: Count, total: int) -> list[Message]:
    def make(text: str) -> list[Message]:
        return [*grown, {"role": "user", "content": _TOOL + text}]

    return make(fit(Walk(mark), lambda text: count(make(text)), total))


def _clash(shape: Shape, mark: str, count: Count, i: int) -> Act:
    """A stream decodes; once it runs, a cold long prompt arrives beside it."""
    calm, calm_messages = _short(f"{mark}/stream/{i}", count, shape.decode_prompt_tokens)
    cold, cold_messages = _long(f"{mark}/intruder/{i}", count, shape.clash_prompt_tokens)
    stream = Job(
        "interference",
        "stream",
        f"interference/{i}/stream",
        tuple(calm_messages),
        shape.decode_prompt_tokens,
        shape.clash_answer_tokens,
        calm,
    )
    intruder = Job(
        "interference",
        "intruder",
        f"interference/{i}/intruder",
        tuple(cold_messages),
        shape.clash_prompt_tokens,
        shape.turn_answer_tokens,
        cold,
    )
    return Act((stream, intruder), at_once=2, after=TRIGGER)


def _sessions(shape: Shape, mark: str, count: Count) -> Act:
    """Several sessions at a time, each with requests of its own, one after the other."""
    jobs = []
    for i in range(shape.sessions * shape.session_requests):
        nonce, messages = _short(f"{mark}/session/{i}", count, shape.session_prompt_tokens)
        tokens, answer = shape.session_prompt_tokens, shape.session_answer_tokens
        jobs.append(Job("concurrent", "session", f"concurrent/{i}", tuple(messages), tokens, answer, nonce))
    return Act(tuple(jobs), at_once=shape.sessions)


def _replay(recorded: Sequence[Job], mark: str) -> tuple[Act, ...]:
    """The user's own requests in their order; one salt for all, so that they share what they shared."""
    salt = _nonce(f"{mark}/replay")
    return tuple(
        Act((Job(job.workload, job.phase, job.key, job.messages, None, None, salt, recorded=job.recorded),))
        for job in recorded
    )


def _nonce(mark: str) -> str:
    return hashlib.sha256(mark.encode()).hexdigest()[:12]
