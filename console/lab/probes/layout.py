"""Two successive requests of an agent: where their prompts part, and what that costs in cache blocks.

A prefix cache shares whole blocks from the first token on. One changing line near the top (a date, a list in another
order) makes everything after it new.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console.errors import ConsoleError, UsageError
from console.files import describe, read_json
from console.lab.tokens import common

Request = Mapping[str, Any]
Tokenise = Callable[[Request], list[int]]
TOOLS = "tools"
_EXCERPT = 48
_LARGEST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """What two requests share, and what they could."""

    block_tokens: int
    tokens: tuple[int, int]
    """Of either prompt."""
    shared: int
    """Tokens up to the first that differs."""
    where: str
    """The message that token lies in, such as `message 1 (system)`; `the end` if the second only goes on."""
    excerpts: tuple[str, str]
    """What either request says there."""
    shared_reordered: int
    """Tokens they would share if what differs came last."""

    @property
    def blocks(self) -> int:
        """Whole blocks the second request takes from the first as it is."""
        return self.shared // self.block_tokens

    @property
    def blocks_possible(self) -> int:
        """Whole blocks of what both say at all, in whatever order."""
        return self.shared_reordered // self.block_tokens

    @property
    def saved_tokens(self) -> int:
        """Prompt tokens a request fewer to compute after reordering."""
        return max(0, self.blocks_possible - self.blocks) * self.block_tokens

    @property
    def sentences(self) -> tuple[str, ...]:
        """The result in words."""
        first, second = self.tokens
        lines = [
            f"prompts of {first:,} and {second:,} tokens share the first {self.shared:,}; they part in {self.where}"
        ]
        if any(self.excerpts):
            lines.append(f"there the first says {self.excerpts[0]!r}, the second {self.excerpts[1]!r}")
        lost = second // self.block_tokens - self.blocks
        lines.append(
            f"of the second, {self.blocks} blocks of {self.block_tokens} tokens can come from the cache; {lost} not"
        )
        if self.saved_tokens:
            lines.append(
                f"with what differs put last, {self.blocks_possible} could: {self.saved_tokens:,} tokens saved"
            )
        else:
            lines.append("putting what differs last would save no whole block")
        return tuple(lines)

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        extra = {"blocks": self.blocks, "blocks_possible": self.blocks_possible, "saved_tokens": self.saved_tokens}
        return asdict(self) | extra | {"sentences": list(self.sentences)}


def read_request(path: Path) -> Request:
    """One recorded request: a chat completion's body, bare or under `request` or `body`.

    Raises:
        UsageError: the file is no such request.
    """
    try:
        raw = read_json(path, _LARGEST_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON", describe(error), "give the body of a request as it was sent"
        ) from None
    if isinstance(raw, list):
        raw = {"messages": raw}
    request = next((raw[name] for name in ("request", "body") if isinstance(raw, dict) and name in raw), raw)
    if not isinstance(request, Mapping) or not isinstance(request.get("messages"), list) or not request["messages"]:
        raise UsageError(
            f"{path} is no chat request", "it has no `messages`", "give the body of a request as it was sent"
        )
    kept = ("messages", TOOLS, "chat_template_kwargs")
    return {key: request[key] for key in kept if request.get(key)}


def compare_layout(first: Request, second: Request, block_tokens: int, tokenise: Tokenise) -> Layout:
    """Hold two requests against each other.

    Args:
        first: the earlier request.
        second: the later one.
        block_tokens: the server's cache block.
        tokenise: the prompt tokens of a request, chat template included.

    Raises:
        ConsoleError: the server does not tokenise them.
    """
    a, b = tokenise(first), tokenise(second)
    shared = common(a, b)
    place = _place(second, shared, len(b), tokenise)
    where = "the end" if place is None else _title(second, place)
    excerpts = ("", "") if place is None else _excerpts(first, second, place)
    best = max(shared, common(*(tokenise(request) for request in _reordered(first, second))))
    return Layout(block_tokens, (len(a), len(b)), shared, where, excerpts, best)


def _place(request: Request, position: int, whole: int, tokenise: Tokenise) -> int | None:
    """The message that holds the token at `position`, counted from 0; -1 is what stands before them; None: past all."""
    if position >= whole:
        return None
    messages = request["messages"]
    if TOOLS in request and position < _length(request, 0, tokenise):
        return -1
    low, high = 0, len(messages) - 1
    while low < high:
        middle = (low + high) // 2
        if _length(request, middle + 1, tokenise) > position:
            high = middle
        else:
            low = middle + 1
    return low


def _length(request: Request, count: int, tokenise: Tokenise) -> int:
    """Tokens of the request's first `count` messages; of its tools alone for none."""
    messages = request["messages"][:count] or [{"role": "user", "content": ""}]
    try:
        return len(tokenise({**request, "messages": messages, "add_generation_prompt": False}))
    except ConsoleError:
        # A template may refuse a conversation that stops at a tool's call.
        return 0


def _title(request: Request, place: int) -> str:
    if place < 0:
        return "the tools, before the first message"
    return f"message {place + 1} of {len(request['messages'])} ({request['messages'][place].get('role', 'user')})"


def _excerpts(first: Request, second: Request, place: int) -> tuple[str, str]:
    if place < 0:
        texts = [json.dumps(request.get(TOOLS) or []) for request in (first, second)]
    else:
        texts = [
            _text(request["messages"][place]) if place < len(request["messages"]) else "" for request in (first, second)
        ]
    same = next((i for i, (x, y) in enumerate(zip(*texts, strict=False)) if x != y), min(map(len, texts)))
    start = max(0, same - _EXCERPT // 3)
    return texts[0][start : start + _EXCERPT], texts[1][start : start + _EXCERPT]


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        content = "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    extra = json.dumps(message["tool_calls"]) if message.get("tool_calls") else ""
    return f"{content or ''}{extra}"


def _reordered(first: Request, second: Request) -> tuple[Request, Request]:
    """Both requests with what differs moved behind what is equal: lines within a message, then to the very end."""
    stable: list[dict[str, Any]] = []
    moved: tuple[list[str], list[str]] = ([], [])
    pairs = list(zip(first["messages"], second["messages"], strict=False))
    for one, other in pairs:
        if one == other or one.get("role") != other.get("role"):
            if one != other:
                break
            stable.append(dict(one))
            continue
        kept, left, right = _split(_text(one).splitlines(), _text(other).splitlines())
        stable.append({**other, "content": "\n".join(kept)})
        moved[0].extend(left)
        moved[1].extend(right)
    tails = [list(request["messages"][len(stable) :]) for request in (first, second)]
    tools = _same_tools(first, second)
    return tuple(  # type: ignore[return-value]
        {**request, **tools, "messages": [*stable, *tail, {"role": "user", "content": "\n".join(lines)}]}
        for request, tail, lines in zip((first, second), tails, moved, strict=True)
    )


def _split(one: Sequence[str], other: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Lines that both have, in the second's order; those only the first has; those only the second has."""
    both = set(one) & set(other)
    return [x for x in other if x in both], [x for x in one if x not in both], [x for x in other if x not in both]


def _same_tools(first: Request, second: Request) -> dict[str, Any]:
    """The tools in one order, if they are the same tools."""
    ours, theirs = (sorted(json.dumps(tool, sort_keys=True) for tool in r.get(TOOLS) or []) for r in (first, second))
    return {TOOLS: second[TOOLS]} if ours and ours == theirs else {}
