"""The JSON of vLLM's answers, chunk by chunk. Unset fields are left out, as vLLM leaves them out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
DONE = "data: [DONE]\n\n"
FINGERPRINT = "vllm-0.32.0-sim"


def event(body: Json) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(body, ensure_ascii=False, separators=(',', ':'))}\n\n"


def error(message: str, kind: str, code: int, param: str | None = None) -> Json:
    """An error answer, also as an event within a stream."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def usage(prompt: int, completion: int) -> Json:
    """A final count of tokens."""
    return {"prompt_tokens": prompt, "total_tokens": prompt + completion, "completion_tokens": completion}


def running_usage(prompt: int, completion: int) -> Json:
    """The count that a chunk on the way carries."""
    return {**usage(prompt, completion), "completion_tokens_details": None}


def details(cached: int) -> Json:
    """`prompt_tokens_details`, where the server was asked to give them."""
    return {"cached_tokens": cached, "created_cache_tokens": 0}


def tool_call(answer: str, name: str, arguments: str) -> Json:
    """A call of one function, in the answer with this id."""
    function = {"name": name, "arguments": arguments}
    return {"id": f"chatcmpl-tool-{answer[-16:]}", "type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Shape:
    """What every chunk of one answer has in common."""

    id: str
    created: int
    model: str
    chat: bool

    def _body(self, choices: list[Json]) -> Json:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": choices}

    def role(self) -> Json:
        """The first chunk of a chat: no token yet."""
        delta = {"role": "assistant", "content": ""}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        return {**self._body([choice]), "prompt_token_ids": None, "prompt_text": None}

    def delta(self, delta: Json, finish: str | None, ids: Sequence[int] | None = None) -> Json:
        """A chunk of a chat that carries tokens, with their ids if they were asked for."""
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        if finish is not None:
            choice["stop_reason"] = None
        return self._body([{**choice, "token_ids": None if ids is None else list(ids)}])

    def call(self, name: str | None, arguments: str, finish: str | None) -> Json:
        """A chunk of a tool call; the first one names the function."""
        part: Json = {"index": 0, "function": {"arguments": arguments}}
        if name is not None:
            part = {"index": 0, **tool_call(self.id, name, arguments)}
        return self.delta({"tool_calls": [part]}, finish)

    def text(self, text: str, finish: str | None) -> Json:
        """A chunk of a plain completion."""
        choice: Json = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}
        return self._body([choice])

    def usage(self, counts: Json) -> Json:
        """The last chunk, without choices."""
        return {**self._body([]), "usage": counts, "system_fingerprint": FINGERPRINT}

    def whole_chat(self, message: Json, finish: str, counts: Json) -> Json:
        """A chat answer that is not streamed."""
        full = {"role": "assistant", "content": None, "refusal": None, "annotations": None, "audio": None}
        full |= {"function_call": None, "reasoning": None, **message}
        choice = {"index": 0, "message": full, "logprobs": None, "finish_reason": finish}
        return self._whole("chat.completion", {**choice, "stop_reason": None, "token_ids": None}, counts)

    def whole_text(self, text: str, finish: str, counts: Json) -> Json:
        """A plain completion that is not streamed."""
        choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}
        return self._whole("text_completion", {**choice, "token_ids": None, "prompt_logprobs": None}, counts)

    def _whole(self, kind: str, choice: Json, counts: Json) -> Json:
        head = {"id": self.id, "object": kind, "created": self.created, "model": self.model, "choices": [choice]}
        counts = {"prompt_tokens_details": None, "completion_tokens_details": None, **counts}
        tail = {"service_tier": None, "system_fingerprint": FINGERPRINT, "usage": counts, "kv_transfer_params": None}
        return {**head, **tail}
