"""The engine in real time: drives the scheduler, sleeps for as long as a step takes, hands out what it yields."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from console.sim import log
from console.sim.batch import Output, Request, Step
from console.sim.scheduler import Scheduler
from console.sim.tally import Tally

WINDOW_S = 2.0
"""How far back the load of the cards is looked at."""
LATE_S = 0.25
"""Beyond this a late wake-up is taken as it is; below it the next step starts when it should have."""
STATS_S = 10.0
HANG_S = 60.0


class EngineDeadError(Exception):
    """The engine has died and will not come back."""


@dataclass(frozen=True, slots=True)
class Load:
    """What the engine did lately, a second of wall time."""

    busy: float = 0.0
    prefill_tokens_per_s: float = 0.0
    decode_tokens_per_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Done:
    start: float
    end: float
    prefill: int
    decode: int


class Engine:
    """One running engine. Clock: `time.monotonic`."""

    def __init__(
        self,
        scheduler: Scheduler,
        tally: Tally,
        *,
        speed: float = 1.0,
        hangs: bool = False,
        before_step: Callable[[Step], str | None] = lambda _: None,
    ) -> None:
        """Put an engine together.

        Args:
            speed: how much faster than the reference machine steps go; for demonstrations.
            hangs: the first step never ends, while everything else goes on answering.
            before_step: a fault's own word on a step: `None`, or why the engine dies of it.
        """
        self.scheduler = scheduler
        self.tally = tally
        self.dead: str | None = None
        self._speed = speed
        self._hangs = hangs
        self._before_step = before_step
        self._queues: dict[str, asyncio.Queue[Output | None]] = {}
        self._wake = asyncio.Event()
        self._resting = asyncio.Event()
        self._resting.set()
        self._done: deque[_Done] = deque()
        self._current: tuple[Step, float] | None = None

    async def generate(self, request: Request) -> AsyncGenerator[Output]:
        """What the request gets, step by step; leaving early aborts it.

        Raises:
            EngineDeadError: the engine died before the end.
        """
        if self.dead is not None:
            raise EngineDeadError(self.dead)
        queue: asyncio.Queue[Output | None] = asyncio.Queue()
        self._queues[request.id] = queue
        self.scheduler.add(request, time.monotonic())
        self._wake.set()
        self._resting.clear()
        got = 0
        try:
            while request.finish is None or got < request.generated:
                output = await queue.get()
                if output is None:
                    raise EngineDeadError(self.dead)
                got += len(output.tokens)
                yield output
        finally:
            self._leave(request)

    async def rest(self) -> None:
        """Wait until nothing runs or waits."""
        await self._resting.wait()

    async def run(self) -> str:
        """Work until a fault kills the engine; why it died."""
        start = time.monotonic()
        while True:
            step = self.scheduler.plan(start)
            self.tally.state(self.scheduler)
            if step is None:
                self._wake.clear()
                self._resting.set()
                await self._wake.wait()
                start = time.monotonic()
                continue
            if (reason := self._before_step(step)) is not None:
                return self.stop(reason)
            if self._hangs:
                await self._hang()
            start = await self._step(step, start)

    async def _step(self, step: Step, start: float) -> float:
        """Let a step that began at `start` take its time; when the next one begins."""
        due = start + step.seconds / self._speed
        self._current = (step, start)
        # At least one turn of the loop: a request that arrived, or left, has to be seen.
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        now = time.monotonic()
        outputs = self.scheduler.finish(step, now)
        self.tally.step(self.scheduler, outputs, now)
        for output in outputs:
            if (queue := self._queues.get(output.request.id)) is not None:
                queue.put_nowait(output)
        self._current = None
        self._remember(_done(step, start, now))
        return due if now - due < LATE_S else now

    async def _hang(self) -> None:
        while True:
            await asyncio.sleep(HANG_S / self._speed)
            text = (
                f"No available shared memory broadcast block found in {HANG_S:.0f} seconds. This typically happens "
                "when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache "
                "quantization)."
            )
            log.say("EngineCore", "shm_broadcast.py:681", text)

    def load(self) -> Load:
        """The load over the last seconds, the step under way included."""
        now = time.monotonic()
        since = now - WINDOW_S
        done = list(self._done)
        if self._current is not None:
            step, start = self._current
            share = min(1.0, (now - start) / max(step.seconds / self._speed, 1e-6))
            whole = _done(step, start, now)
            done.append(_Done(start, now, int(whole.prefill * share), int(whole.decode * share)))
        busy = prefill = decode = 0.0
        for item in done:
            span = item.end - max(item.start, since)
            if span <= 0:
                continue
            part = span / max(item.end - item.start, 1e-6)
            busy, prefill, decode = busy + span, prefill + item.prefill * part, decode + item.decode * part
        return Load(min(1.0, busy / WINDOW_S), prefill / WINDOW_S, decode / WINDOW_S)

    async def report(self) -> None:
        """Write vLLM's throughput line every ten seconds while there is anything to tell."""
        before, quiet = self._totals(), False
        while True:
            await asyncio.sleep(STATS_S)
            after = self._totals()
            moved = after != before or self.scheduler.busy
            if moved or not quiet:
                _say_stats(self, [new - old for new, old in zip(after, before, strict=True)])
            before, quiet = after, not moved

    def _totals(self) -> list[float]:
        names = ["prompt_tokens", "generation_tokens", "prefix_cache_queries", "prefix_cache_hits"]
        if self.scheduler.limits.drafts:
            names += [f"spec_decode_num_{name}" for name in ("drafts", "draft_tokens", "accepted_tokens")]
        return [self.tally.value(name) for name in names]

    def _leave(self, request: Request) -> None:
        """As in vLLM, a request that its client gave up leaves no trace in the metrics."""
        del self._queues[request.id]
        if self.dead is None and self.scheduler.abort(request):
            self.tally.state(self.scheduler)

    def _remember(self, done: _Done) -> None:
        self._done.append(done)
        while self._done and self._done[0].end < done.end - WINDOW_S:
            self._done.popleft()

    def stop(self, reason: str) -> str:
        """Give up every request; nothing works from now on."""
        self.dead = reason
        for queue in self._queues.values():
            queue.put_nowait(None)
        return reason


def _done(step: Step, start: float, end: float) -> _Done:
    return _Done(start, end, sum(piece.tokens for piece in step.prefill), len(step.decode))


def _say_stats(engine: Engine, moved: list[float]) -> None:
    scheduler = engine.scheduler
    prompt, generation, queries, hits, *speculation = moved
    text = (
        f"Engine 000: Avg prompt throughput: {prompt / STATS_S:.1f} tokens/s, "
        f"Avg generation throughput: {generation / STATS_S:.1f} tokens/s, Running: {len(scheduler.running)} reqs, "
        f"Waiting: {len(scheduler.waiting)} reqs, GPU KV cache usage: {scheduler.kv_used:.1%}"
    )
    if scheduler.limits.prefix_caching:
        text += f", Prefix cache hit rate: {hits / queries if queries else 0:.1%}"
    log.say("APIServer", "loggers.py:335", text)
    if speculation and speculation[0]:
        drafts, tokens, accepted = speculation
        log.say(
            "APIServer",
            "metrics.py:120",
            f"SpecDecoding metrics: Mean acceptance length: {1 + accepted / drafts:.2f}, "
            f"Accepted throughput: {accepted / STATS_S:.2f} tokens/s, "
            f"Drafted throughput: {tokens / STATS_S:.2f} tokens/s, Accepted: {accepted:.0f} tokens, "
            f"Drafted: {tokens:.0f} tokens, Avg Draft acceptance rate: {accepted / tokens:.1%}",
        )
