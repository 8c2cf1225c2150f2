"""One answer on its way to the client: the engine's outputs as chunks, or in one piece."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing

from console.sim import wire
from console.sim.engine import Engine, EngineDeadError
from console.sim.faults import ENGINE_DEAD
from console.sim.options import Options
from console.sim.prompts import Asked, Json
from console.sim.tokens import Tokenizer


class Reply:
    """Writes one answer."""

    def __init__(self, asked: Asked, options: Options, engine: Engine, tokenizer: Tokenizer) -> None:
        self._asked = asked
        self._request = asked.request
        self._details = options.prompt_details
        self._engine = engine
        self._tokenizer = tokenizer
        self._shape = wire.Shape(asked.request.id, int(time.time()), options.names[0], asked.chat)

    async def events(self) -> AsyncIterator[str]:
        """The answer as a stream of events; an engine that dies becomes an event of its own."""
        seen = 0
        try:
            async with aclosing(self._engine.generate(self._request)) as outputs:
                async for output in outputs:
                    if not seen and self._asked.chat:
                        yield self._event(self._shape.role(), 0)
                    before, seen = seen, seen + len(output.tokens)
                    for body in self._chunks(output.tokens, before, self._finish(seen)):
                        yield self._event(body, seen)
            if self._asked.include_usage:
                yield wire.event(self._shape.usage(self._usage()))
        except EngineDeadError:
            yield wire.event(wire.error(ENGINE_DEAD, "InternalServerError", 500))
        yield wire.DONE

    async def whole(self) -> Json:
        """The answer in one piece.

        Raises:
            EngineDeadError: there will be none.
        """
        tokens: list[int] = []
        async with aclosing(self._engine.generate(self._request)) as outputs:
            async for output in outputs:
                tokens += output.tokens
        finish = self._finish(len(tokens)) or "stop"
        if self._asked.chat:
            return self._shape.whole_chat(self._message(tokens), finish, self._usage())
        return self._shape.whole_text(self._tokenizer.visible(tokens), finish, self._usage())

    def _event(self, body: Json, seen: int) -> str:
        if self._asked.running_usage:
            body["usage"] = wire.running_usage(len(self._request.prompt), seen)
        return wire.event(body)

    def _usage(self) -> Json:
        counts = wire.usage(len(self._request.prompt), self._request.generated)
        if self._details:
            counts["prompt_tokens_details"] = wire.details(self._request.cached)
        return counts

    def _finish(self, seen: int) -> str | None:
        """The finish reason, if `seen` tokens are all there will be."""
        finish = self._request.finish
        if finish is None or seen < self._request.generated:
            return None
        return "tool_calls" if self._asked.call is not None and finish == "stop" else finish

    def _chunks(self, tokens: Sequence[int], before: int, finish: str | None) -> Iterator[Json]:
        """The chunks that carry one step's tokens: one, or two where the reasoning ends within it."""
        if not self._asked.chat:
            yield self._shape.text(self._tokenizer.visible(tokens), finish)
            return
        if self._asked.call is not None:
            name = None if before else self._asked.call.name
            yield self._shape.call(name, self._arguments(before, before + len(tokens)), finish)
            return
        thought = max(0, min(len(tokens), self._asked.reasoning - before))
        if thought:
            over = finish if thought == len(tokens) else None
            yield self._delta("reasoning", tokens[:thought], over)
        if thought < len(tokens):
            yield self._delta("content", tokens[thought:], finish)

    def _delta(self, name: str, tokens: Sequence[int], finish: str | None) -> Json:
        ids = tokens if self._asked.ids else None
        return self._shape.delta({name: self._tokenizer.visible(tokens)}, finish, ids)

    def _arguments(self, start: int, end: int) -> str:
        """The part of a call's arguments that the tokens from `start` to `end` of the answer stand for."""
        assert self._asked.call is not None
        text, whole = self._asked.call.arguments, self._asked.script.natural
        return text[len(text) * start // whole : len(text) * end // whole]

    def _message(self, tokens: list[int]) -> Json:
        call = self._asked.call
        if call is not None:
            arguments = self._arguments(0, len(tokens))
            return {"content": None, "tool_calls": [wire.tool_call(self._request.id, call.name, arguments)]}
        split = self._asked.reasoning
        content = self._tokenizer.visible(tokens[split:])
        return {"content": content or None, "reasoning": self._tokenizer.visible(tokens[:split]) or None}
