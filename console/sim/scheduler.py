"""Continuous batching in virtual time: who computes what in the next engine step, and what comes out of it; pure.

`plan(now)` decides a step and says how long it takes; `finish(step, now)` books it. Whoever drives it sleeps, or does
not: a test runs hours of engine time in a moment.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable

from console.sim.batch import COLLAPSE_AT, Admissions, Draft, Finish, Limits, Output, Piece, Request, Step
from console.sim.blocks import Blocks, chain
from console.sim.timing import Chunk, Timing, accepted


class Scheduler:
    """The engine's queue and batch."""

    def __init__(self, limits: Limits, timing: Timing, seed: int) -> None:
        self.limits = limits
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.admissions = Admissions()
        self._timing = timing
        self._rng = random.Random(f"scheduler {seed}")
        # One request of full length always fits: anything else could neither run nor be preempted.
        blocks = max(limits.kv_tokens // limits.block, -(-limits.max_len // limits.block))
        self._blocks = Blocks(blocks, drop_last=limits.prefix_caching and limits.drafts > 0)
        self._idle = True
        self._collapsed = False

    @property
    def busy(self) -> bool:
        """Whether anything runs or waits."""
        return bool(self.running or self.waiting)

    @property
    def kv_used(self) -> float:
        """Share of the KV cache that running requests hold."""
        return self._blocks.used

    def add(self, request: Request, now: float) -> None:
        """A request arrives."""
        request.arrived = now
        request.tokens = list(request.prompt)
        if self.limits.prefix_caching:
            request.keys = chain(request.prompt, self.limits.block, request.salt)
        self.waiting.append(request)

    def abort(self, request: Request) -> bool:
        """The client is gone; false if the request had ended before."""
        if request.finish is not None:
            return False
        self._leave(request, "abort")
        if request in self.waiting:
            self.waiting.remove(request)
        return True

    def plan(self, now: float) -> Step | None:
        """The next step, or nothing to do. A starved prefill leaves a step without its share."""
        if not self.busy:
            self._idle = True
            return None
        if self._idle:
            self._idle = False
            self._timing.new_run()
        budget = self.limits.budget
        prefill: list[Piece] = []
        decode: list[Request] = []
        for request in list(self.running):
            if request in self.running:
                budget -= self._continue(request, budget, prefill, decode)
        self._admit(budget, prefill, now)
        if not prefill and not decode:
            return None
        chunks = [Chunk(piece.tokens, piece.request.computed) for piece in prefill]
        context = sum(request.computed for request in decode)
        return Step(tuple(prefill), tuple(decode), self._timing.step(chunks, len(decode), context))

    def finish(self, step: Step, now: float) -> list[Output]:
        """Book a step that ended at `now`; what the requests got."""
        outputs = [self._prefilled(piece, now) for piece in step.prefill]
        outputs += [self._decoded(request, now) for request in step.decode]
        return [output for output in outputs if output is not None]

    def _continue(self, request: Request, budget: int, prefill: list[Piece], decode: list[Request]) -> int:
        """Schedule a running request within `budget`; the tokens it takes."""
        if request.prefilling:
            tokens = self._chunk(request, budget)
            if tokens <= 0 or not self._room(request, request.computed + tokens):
                return 0
            prefill.append(Piece(request, tokens))
            return tokens
        tokens = 1 + self.limits.drafts
        if tokens > budget or not self._room(request, min(request.computed + tokens, self.limits.max_len)):
            return 0
        decode.append(request)
        return tokens

    def _admit(self, budget: int, prefill: list[Piece], now: float) -> None:
        while self.waiting and budget > 0 and len(self.running) < self.limits.streams:
            request = self.waiting[0]
            tokens = self._enter(request, budget)
            if tokens <= 0:
                return
            self.waiting.popleft()
            self.running.append(request)
            if request.scheduled is None:
                # The step may have begun, on paper, a moment before the request came.
                request.scheduled = max(now, request.arrived)
            prefill.append(Piece(request, tokens))
            budget -= tokens

    def _enter(self, request: Request, budget: int) -> int:
        """Find the request's prefix, give it room; its first chunk, or 0 if it has to wait."""
        block = self.limits.block
        match = self._blocks.match(request.keys[: (request.replay - 1) // block])
        request.computed = match.hit * block
        request.junction = match.shared * block if match.shared > match.hit else 0
        tokens = self._chunk(request, budget)
        if tokens <= 0:
            return 0
        if not self._blocks.take(request.holding, request.keys[: match.hit], -(-(request.computed + tokens) // block)):
            return 0
        if request.scheduled is None:
            request.cached = request.computed
            if self.limits.prefix_caching:
                self.admissions.queried += len(request.prompt)
                self.admissions.hit += request.cached
        return tokens

    def _chunk(self, request: Request, budget: int) -> int:
        """Prefill tokens for this step: with prefix caching every chunk but the last ends where state is kept."""
        start, goal = request.computed, request.replay
        end = min(start + budget, goal)
        if not self.limits.prefix_caching:
            return end - start
        block = self.limits.block
        if end < goal:
            aligned = end // block * block
            if aligned > start or block <= self.limits.budget:
                end = aligned
        stops = [self._last_kept(request)]
        if start % block:
            stops.append((start // block + 1) * block)
        if request.junction:
            stops.append(request.junction)
        return max(0, min([stop for stop in stops if start < stop < end], default=end) - start)

    def _last_kept(self, request: Request) -> int:
        """The last position of a prompt whose state another request could resume from."""
        block = self.limits.block
        if self.limits.drafts:
            return max(0, len(request.tokens) // block - 1) * block
        return (len(request.tokens) - 1) // block * block

    def _room(self, request: Request, tokens: int) -> bool:
        """Room for `tokens` in all, sending the youngest requests back to the queue where needed."""
        blocks = -(-tokens // self.limits.block)
        while not self._blocks.grow(request.holding, blocks):
            victim = self.running[-1]
            self._preempt(victim)
            if victim is request:
                return False
        return True

    def _preempt(self, request: Request) -> None:
        self.running.remove(request)
        self._blocks.release(request.holding)
        request.computed = 0
        request.preemptions += 1
        self.admissions.preemptions += 1
        self.waiting.appendleft(request)

    def _prefilled(self, piece: Piece, now: float) -> Output | None:
        request = piece.request
        if request not in self.running:
            return None
        request.computed += piece.tokens
        # The recurrent state is written where a chunk ends, and is of use only at a block's end.
        self._keep(request, state=request.computed % self.limits.block == 0)
        if request.prefilling or request.generated:
            return None
        return self._emit(request, 1, now, None)

    def _decoded(self, request: Request, now: float) -> Output | None:
        if request not in self.running:
            return None
        drafts = self.limits.drafts
        if not drafts:
            return self._emit(request, 1, now, None)
        tail = request.generated >= request.natural
        right = 0 if self._collapsed else accepted(self._rng, drafts, tail=tail)
        return self._emit(request, 1 + right, now, Draft(drafts, right))

    def _emit(self, request: Request, count: int, now: float, draft: Draft | None) -> Output:
        left = min(request.max_tokens, self.limits.max_len - len(request.prompt)) - request.generated
        if not request.ignore_eos:
            left = min(left, request.natural - request.generated)
        tokens = request.write(min(count, left))
        first, gap = request.first is None, None if request.last is None else now - request.last
        before = request.computed // self.limits.block
        if request.generated:
            request.computed += len(tokens)
        request.generated += len(tokens)
        request.tokens.extend(tokens)
        request.first = now if first else request.first
        request.last = now
        if request.computed // self.limits.block > before:
            self._keep(request, state=True)
        self._collapsed = self._collapsed or (self.limits.collapse and len(request.tokens) > COLLAPSE_AT)
        if len(tokens) == left:
            over = not request.ignore_eos and request.generated >= request.natural
            self._leave(request, "stop" if over else "length")
        return Output(request, tuple(tokens), first, gap, draft)

    def _keep(self, request: Request, *, state: bool) -> None:
        """Publish the whole blocks that the request has computed by now, the last one with its state or without."""
        if not self.limits.prefix_caching:
            return
        block = self.limits.block
        whole = request.computed // block
        if whole > len(request.keys):
            request.keys = chain(request.tokens[: whole * block], block, request.salt, request.keys)
        self._blocks.fill(request.holding, request.keys[:whole], whole if state else 0)

    def _leave(self, request: Request, finish: Finish) -> None:
        request.finish = finish
        if request in self.running:
            self.running.remove(request)
            self._blocks.release(request.holding)


def drive(scheduler: Scheduler, arrivals: Iterable[tuple[float, Request]], until: float = float("inf")) -> list[Output]:
    """Run to the end in virtual time, which starts at 0; outputs in order."""
    pending = deque(sorted(arrivals, key=lambda item: item[0]))
    outputs: list[Output] = []
    now = 0.0
    while now < until:
        while pending and pending[0][0] <= now:
            at, request = pending.popleft()
            scheduler.add(request, at)
        step = scheduler.plan(now)
        if step is not None:
            now += step.seconds
            outputs += scheduler.finish(step, now)
        elif pending:
            now = pending[0][0]
        else:
            break
    return outputs
