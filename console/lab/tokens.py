"""The server's tokenizer, asked over `/tokenize`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from console.endpoint import TOKENIZE, Endpoint, EndpointError
from console.errors import ConsoleError


def tokens_of(endpoint: Endpoint, model: str, request: Mapping[str, Any]) -> list[int]:
    """The prompt of a chat request as the server would compute it.

    Args:
        endpoint: the server.
        model: the served name.
        request: `messages`, and `tools` or `chat_template_kwargs` where the request has them.

    Raises:
        EndpointError: the server does not answer.
        ConsoleError: it has no `/tokenize`, or refuses these messages.
    """
    body = {"model": model, "add_generation_prompt": True, **request}
    status, answer = endpoint.post_json(TOKENIZE, body)
    ids = answer.get("tokens") if isinstance(answer, dict) else None
    if status != 200 or not isinstance(ids, list):
        why = answer.get("error") if isinstance(answer, dict) else None
        reason = str(why.get("message", why)) if isinstance(why, dict) else f"HTTP {status}"
        raise ConsoleError("the server did not tokenise the request", reason, "it must be a vLLM server with /tokenize")
    return ids


def common(a: Sequence[int], b: Sequence[int]) -> int:
    """How many tokens two prompts share from their beginning."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def end_token(endpoint: Endpoint, model: str) -> int | None:
    """The token that ends a turn: the one that follows a message's text, whatever the text is.

    It is where an answer ends by itself; `None` if the template does not show it.
    """
    try:
        short, long = (
            tokens_of(endpoint, model, {"messages": [_user(text)], "add_generation_prompt": False})
            for text in ("red", "blue green")
        )
    except (EndpointError, ConsoleError):
        return None
    shared = common(short[::-1], long[::-1])
    return short[-shared] if 0 < shared < len(short) else None


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}
