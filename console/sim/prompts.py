"""A request's body: checked, turned into prompt tokens by a chat template, given an answer to write."""

from __future__ import annotations

import json
import random
import time
import uuid
import zlib
from dataclasses import dataclass
from typing import Any

from console.sim.answers import Script, ToolCall, message_text, natural_length, wanted_call, wanted_json
from console.sim.batch import Request
from console.sim.options import Options
from console.sim.tokens import END, START, Tokenizer

Json = dict[str, Any]
DEFAULT_COMPLETION = 16
"""`max_tokens` of a plain completion that names none."""
REASONING_SHARE = 0.3


class Refused(Exception):
    """A request that gets no answer but an error."""

    def __init__(self, message: str, *, code: int = 400, kind: str = "BadRequestError", param: str | None = None):
        super().__init__(message)
        self.message, self.code, self.kind, self.param = message, code, kind, param


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that will be answered."""

    request: Request
    script: Script
    chat: bool
    stream: bool
    include_usage: bool
    running_usage: bool
    reasoning: int
    """Tokens of the answer that are reasoning; they come first."""
    call: ToolCall | None
    ids: bool = False
    """Whether chunks carry the ids of their tokens."""


def chat_text(body: Json) -> str:
    """The prompt text of a chat, as a template of Qwen's kind makes it."""
    parts = []
    if tools := body.get("tools"):
        listed = "\n".join(json.dumps(tool) for tool in tools)
        parts.append(f"{START}system\n# Tools\n\n<tools>\n{listed}\n</tools>{END}\n")
    for message in body["messages"]:
        text = message_text(message)
        for call in message.get("tool_calls") or []:
            text += f"\n<tool_call>\n{json.dumps(call.get('function', {}))}\n</tool_call>"
        parts.append(f"{START}{message.get('role', 'user')}\n{text}{END}\n")
    if body.get("add_generation_prompt", True):
        parts.append(f"{START}assistant\n")
    return "".join(parts)


def prompt_tokens(body: Json, tokenizer: Tokenizer, *, chat: bool) -> list[int]:
    """The prompt of a request.

    Raises:
        Refused: there is none, or it cannot be read.
    """
    if chat:
        messages = body.get("messages")
        if not isinstance(messages, list) or not messages or not all(isinstance(part, dict) for part in messages):
            raise Refused("'messages' must be a list of messages that is not empty", param="messages")
        return tokenizer.encode(chat_text(body))
    prompt = body.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and not isinstance(prompt[0], int):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return tokenizer.encode(prompt)
    if isinstance(prompt, list) and all(isinstance(token, int) for token in prompt):
        return list(prompt)
    raise Refused("the stand-in takes one prompt: a text or a list of token ids", param="prompt")


def check_model(body: Json, options: Options) -> None:
    """Refuse a model that is not served."""
    name = body.get("model")
    if name and name not in options.names:
        known = ", ".join(options.names)
        raise Refused(
            f"The model `{name}` does not exist. Valid aliases: {known}.",
            code=404,
            kind="NotFoundError",
            param="model",
        )


def read(body: Json, options: Options, tokenizer: Tokenizer, rng: random.Random, *, chat: bool) -> Asked:
    """Understand a request.

    Raises:
        Refused: vLLM would refuse it too.
    """
    check_model(body, options)
    _check_sampling(body, options)
    prompt = prompt_tokens(body, tokenizer, chat=chat)
    room = options.max_len - len(prompt)
    if not prompt or room < 1:
        raise Refused(_too_long(options, len(prompt)), param="input_tokens")
    limit = _limit(body, room, len(prompt), options, chat=chat)
    call = wanted_call(body) if chat else None
    script = _script(body, tokenizer, _rng_for(body, prompt, rng), call, limit)
    prose = chat and call is None and not wanted_json(body)
    thinks = options.reasoning and (body.get("chat_template_kwargs") or {}).get("enable_thinking", True)
    stream_options = body.get("stream_options") or {}
    include = bool(stream_options.get("include_usage"))
    request = Request(
        id=f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}",
        prompt=prompt,
        max_tokens=limit,
        write=script.take,
        natural=script.natural,
        ignore_eos=bool(body.get("ignore_eos")),
        salt=str(body.get("cache_salt") or ""),
        arrived=time.monotonic(),
    )
    return Asked(
        request=request,
        script=script,
        chat=chat,
        stream=bool(body.get("stream")),
        include_usage=include,
        running_usage=include and bool(stream_options.get("continuous_usage_stats")),
        reasoning=round(script.natural * REASONING_SHARE) if prose and thinks else 0,
        call=call,
        ids=bool(body.get("return_token_ids")),
    )


def _script(body: Json, tokenizer: Tokenizer, rng: random.Random, call: ToolCall | None, limit: int) -> Script:
    fixed = json.dumps({"name": call.name, "arguments": call.arguments}) if call else wanted_json(body) or ""
    natural = None if fixed else max(natural_length(rng), int(body.get("min_tokens") or 0) + 1)
    script = Script(tokenizer, rng, fixed, natural)
    stops = body.get("stop") or []
    if stops := [stops] if isinstance(stops, str) else stops:
        script.stop_at(stops, limit)
    return script


def _rng_for(body: Json, prompt: list[int], rng: random.Random) -> random.Random:
    """The same words for the same seed, or for the same prompt when sampling is greedy."""
    seed = body.get("seed")
    if seed is None and body.get("temperature") != 0:
        return random.Random(rng.random())
    return random.Random(f"{seed} {zlib.crc32(json.dumps(prompt).encode())}")


def _check_sampling(body: Json, options: Options) -> None:
    if options.drafts and (body.get("min_p") or body.get("logit_bias")):
        raise Refused("The min_p and logit_bias sampling parameters are not yet supported with speculative decoding.")
    if body.get("n") not in (None, 1):
        raise Refused("the stand-in gives one answer a request: n must be 1", param="n")
    for name in ("max_tokens", "max_completion_tokens"):
        value = body.get(name)
        if value is not None and (not isinstance(value, int) or value < 1):
            raise Refused(f"{name} must be at least 1, got {value}.", param=name)


def _limit(body: Json, room: int, prompt: int, options: Options, *, chat: bool) -> int:
    given = body.get("max_completion_tokens") or body.get("max_tokens")
    if given is None:
        return room if chat else min(room, DEFAULT_COMPLETION)
    if given > room:
        raise Refused(
            f"This model's maximum context length is {options.max_len} tokens. However, you requested {given} output "
            f"tokens and your prompt contains at least {prompt} input tokens, for a total of at least "
            f"{given + prompt} tokens. Please reduce the length of the input prompt or the number of requested "
            "output tokens.",
            param="input_tokens",
        )
    return int(given)


def _too_long(options: Options, count: int) -> str:
    if not count:
        return "The prompt is empty."
    return (
        f"This model's maximum context length is {options.max_len} tokens. However, your prompt contains {count} "
        "input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the "
        "input prompt."
    )
