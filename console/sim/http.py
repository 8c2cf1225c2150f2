"""The routes, as vLLM answers them."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from console.sim import wire
from console.sim.boot import VERSION
from console.sim.engine import Engine, EngineDeadError
from console.sim.faults import ENGINE_DEAD
from console.sim.gpus import Cards
from console.sim.options import Options
from console.sim.prompts import Json, Refused, check_model, prompt_tokens, read
from console.sim.replies import Reply
from console.sim.tokens import Tokenizer

GUARDED = ("/v1", "/v2", "/inference")
"""What a key guards; `/tokenize`, `/health` and `/metrics` are open even with one, as in vLLM."""
Handler = Callable[[HttpRequest], Awaitable[Response]]


class Site:
    """One server's routes over its engine."""

    def __init__(self, options: Options, engine: Engine, seed: int) -> None:
        self._options = options
        self._engine = engine
        self._tokenizer = Tokenizer()
        self._cards = Cards(options)
        self._rng = random.Random(f"answers {seed}")
        self._born = int(time.time())

    def app(self, lifespan: Callable[[Starlette], Any]) -> ASGIApp:
        """The application, guarded and counted."""
        routes = [
            Route("/v1/chat/completions", self._answering(chat=True), methods=["POST"]),
            Route("/v1/completions", self._answering(chat=False), methods=["POST"]),
            Route("/v1/models", self._models),
            Route("/tokenize", self._guarded(self._tokenize), methods=["POST"]),
            Route("/detokenize", self._guarded(self._detokenize), methods=["POST"]),
            Route("/health", self._health),
            Route("/ping", self._health, methods=["GET", "POST"]),
            Route("/version", self._version),
            Route("/load", self._load),
            Route("/metrics", self._metrics),
            Route("/sim/gpus", self._gpus),
        ]
        return _Door(Starlette(routes=routes, lifespan=lifespan), self._options.key, self._engine)

    def _guarded(self, handle: Handler) -> Handler:
        async def guarded(request: HttpRequest) -> Response:
            try:
                return await handle(request)
            except Refused as refused:
                return _refusal(refused)

        return guarded

    def _answering(self, *, chat: bool) -> Handler:
        async def answer(request: HttpRequest) -> Response:
            asked = read(await _body(request), self._options, self._tokenizer, self._rng, chat=chat)
            reply = Reply(asked, self._options, self._engine, self._tokenizer)
            if asked.stream:
                return StreamingResponse(reply.events(), media_type="text/event-stream")
            try:
                return JSONResponse(await reply.whole())
            except EngineDeadError:
                return JSONResponse(wire.error(ENGINE_DEAD, "InternalServerError", 500), 500)

        return self._guarded(answer)

    async def _tokenize(self, request: HttpRequest) -> Response:
        body = await _body(request)
        check_model(body, self._options)
        ids = prompt_tokens(body, self._tokenizer, chat="messages" in body)
        pieces = [self._tokenizer.piece(token) for token in ids] if body.get("return_token_strs") else None
        length = self._options.max_len
        return JSONResponse({"count": len(ids), "max_model_len": length, "tokens": ids, "token_strs": pieces})

    async def _detokenize(self, request: HttpRequest) -> Response:
        body = await _body(request)
        check_model(body, self._options)
        ids = body.get("tokens")
        if not isinstance(ids, list) or not all(isinstance(token, int) for token in ids):
            raise Refused("'tokens' must be a list of token ids", param="tokens")
        return JSONResponse({"prompt": self._tokenizer.decode(ids)})

    async def _models(self, _: HttpRequest) -> Response:
        cards: list[Json] = [
            {
                "id": name,
                "object": "model",
                "created": self._born,
                "owned_by": "vllm",
                "root": self._options.model,
                "parent": None,
                "max_model_len": self._options.max_len,
                "permission": [],
            }
            for name in self._options.names
        ]
        return JSONResponse({"object": "list", "data": cards})

    async def _health(self, _: HttpRequest) -> Response:
        return Response(status_code=200 if self._engine.dead is None else 503)

    async def _version(self, _: HttpRequest) -> Response:
        return JSONResponse({"version": f"{VERSION}+sim"})

    async def _load(self, _: HttpRequest) -> Response:
        scheduler = self._engine.scheduler
        return JSONResponse({"server_load": len(scheduler.running) + len(scheduler.waiting)})

    async def _metrics(self, _: HttpRequest) -> Response:
        return PlainTextResponse(self._engine.tally.page(), media_type="text/plain; version=1.0.0; charset=utf-8")

    async def _gpus(self, _: HttpRequest) -> Response:
        return JSONResponse(self._cards.read(self._engine.load()))


class _Door:
    """Asks for the key, and counts every answer."""

    def __init__(self, app: ASGIApp, key: str | None, engine: Engine) -> None:
        self._app = app
        self._key = key
        self._engine = engine

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path: str = scope["path"]

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start" and path.startswith("/v1"):
                self._engine.tally.answered(path, scope["method"], message["status"])
            await send(message)

        app = self._app
        if self._key is not None and path.startswith(GUARDED) and not self._knows(scope):
            app = JSONResponse({"error": "Unauthorized"}, 401)
        await app(scope, receive, counted)

    def _knows(self, scope: Scope) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        scheme, _, key = given.partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(key.encode(), (self._key or "").encode())


async def _body(request: HttpRequest) -> Json:
    try:
        body = json.loads(await request.body())
    except ValueError as error:
        raise Refused(f"the body is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise Refused("the body must be a JSON object")
    return body


def _refusal(refused: Refused) -> Response:
    return JSONResponse(wire.error(refused.message, refused.kind, refused.code, refused.param), refused.code)
