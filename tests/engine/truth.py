"""A plain client that knows what it saw: the truth that the console's figures are held against."""

from __future__ import annotations

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

_VOCABULARY = ("port", "queue", "block", "cache", "token", "draft", "layer", "shard", "graph", "kernel", "stream")


@dataclass(frozen=True)
class Seen:
    """One streamed answer as its client saw it; times in seconds from the sending."""

    ttft: float
    last: float
    end: float
    chunks: int
    first_tokens: int
    tokens: int
    prompt_tokens: int
    cached_tokens: int
    began: float = 0.0
    """Monotonic second of the sending."""
    stamps: tuple[float, ...] = ()
    """Arrival of every chunk that carries tokens."""
    counts: tuple[int, ...] = ()
    """Tokens so far with each of them."""

    @property
    def tpot(self) -> float:
        """Time per output token after the first."""
        return (self.last - self.ttft) / (self.tokens - self.first_tokens)

    @property
    def gap(self) -> float:
        """Mean time between chunks."""
        return (self.last - self.ttft) / (self.chunks - 1)


def prompt(words: int, seed: int) -> str:
    """Text of about `words` tokens times two that differs from its first word by seed."""
    start = (seed * 7919) % len(_VOCABULARY)
    return f"{seed} " + " ".join(_VOCABULARY[(start + i * (seed + 3)) % len(_VOCABULARY)] for i in range(words))


def ask(url: str, content: str, max_tokens: int, key: str | None = None, model: str = "tiny") -> Seen:
    """One streamed request, read chunk by chunk."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)
    body = {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
    }
    headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {key}"} if key else {})
    began = time.monotonic()
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    assert response.status == 200, response.read()
    stamps: list[float] = []
    counts: list[int] = []
    usage: dict[str, Any] = {}
    for raw in response:
        at = time.monotonic() - began
        line = raw.strip()
        if not line.startswith(b"data: ") or line == b"data: [DONE]":
            continue
        event = json.loads(line[6:])
        assert "error" not in event, event
        usage = event.get("usage") or usage
        if event["choices"] and event["choices"][0]["delta"].get("content"):
            stamps.append(at)
            counts.append(usage["completion_tokens"])
    end = time.monotonic() - began
    connection.close()
    details = usage.get("prompt_tokens_details") or {}
    return Seen(
        ttft=stamps[0],
        last=stamps[-1],
        end=end,
        chunks=len(stamps),
        first_tokens=counts[0],
        tokens=counts[-1],
        prompt_tokens=usage["prompt_tokens"],
        cached_tokens=details.get("cached_tokens") or 0,
        began=began,
        stamps=tuple(stamps),
        counts=tuple(counts),
    )


def load(url: str, prompts: list[str], max_tokens: int, at_once: int, key: str | None = None) -> list[Seen]:
    """All prompts, `at_once` of them in flight."""
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda content: ask(url, content, max_tokens, key), prompts))


def mean(values: list[float]) -> float:
    """The mean of what was seen."""
    return sum(values) / len(values)
