"""What the stand-in says: plausible words, a tool call or valid JSON; the same for the same seed."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from console.sim.tokens import Tokenizer

Json = dict[str, Any]

_PROSE = (
    "the value of each block is kept in a cache so that later turns can start from it without reading the whole prompt "
    "again when the first part stays the same we only compute what follows and return early if nothing changed this "
    "function takes a list of items and returns their sum call it once per request then check the result before you "
    "write it back note that an empty list gives zero while none means that the data is not known yet the loop ends "
    "after the last token and the scheduler moves on to the next stream"
)
_WORDS = tuple(_PROSE.split())
_ASKS = re.compile(
    r"\b(tools?|call|use|function|look up|search|weather|fetch|read|open|list|run|get|find|send|create|compute)\b", re.I
)
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a function that the request offered."""

    name: str
    arguments: str
    """JSON text."""


class Script:
    """The planned tokens of one answer: a fixed beginning, then words without end."""

    def __init__(self, tokenizer: Tokenizer, rng: random.Random, fixed: str, natural: int | None) -> None:
        self._tokenizer = tokenizer
        self._words = self._endless(rng)
        self._ahead = tokenizer.encode(fixed)
        self.given: list[int] = []
        """Everything that was taken."""
        self.natural = len(self._ahead) + 1 if natural is None else natural
        """Tokens of the whole answer, its end token included."""

    def take(self, count: int) -> list[int]:
        """The next `count` tokens."""
        self._plan(count)
        taken, self._ahead = self._ahead[:count], self._ahead[count:]
        position = self.natural - 1 - len(self.given)
        if 0 <= position < count:
            taken[position] = self._tokenizer.end
        self.given += taken
        return taken

    def stop_at(self, stops: list[str], limit: int) -> None:
        """End the answer where one of `stops` would first appear within `limit` tokens."""
        self._plan(min(limit, self.natural))
        text = ""
        for count, token in enumerate(self._ahead[: min(limit, self.natural)], 1):
            text += self._tokenizer.piece(token)
            if any(stop in text for stop in stops):
                self.natural = count
                return

    def _plan(self, count: int) -> None:
        if len(self._ahead) < count:
            self._ahead += islice(self._words, count - len(self._ahead))

    def _endless(self, rng: random.Random) -> Iterator[int]:
        line = 0
        while True:
            yield from self._tokenizer.encode(" " + rng.choice(_WORDS))
            line += 1
            if line % 14 == 0:
                yield from self._tokenizer.encode(".\n" if line % 42 == 0 else ".")


def natural_length(rng: random.Random) -> int:
    """Tokens after which a prose answer ends by itself: median 300, most between 100 and 900."""
    return max(24, min(2000, round(300 * rng.lognormvariate(0, 0.5))))


def wanted_call(body: Json) -> ToolCall | None:
    """The call that a request asks for, or `None` if it wants prose."""
    tools = [tool["function"] for tool in body.get("tools") or [] if isinstance(tool.get("function"), dict)]
    choice = body.get("tool_choice")
    if not tools or choice == "none":
        return None
    last = (body.get("messages") or [{}])[-1]
    text = message_text(last)
    named = choice.get("function", {}).get("name") if isinstance(choice, dict) else None
    if named is None and choice != "required":
        mentioned = any(str(tool.get("name", "")).lower() in text.lower() for tool in tools)
        if last.get("role") != "user" or not (mentioned or _ASKS.search(text)):
            return None
    tool = _best_tool(tools, named, text)
    arguments = example(tool.get("parameters") or {"type": "object"}, text)
    return ToolCall(str(tool.get("name", "")), json.dumps(arguments))


def _best_tool(tools: list[Json], named: str | None, text: str) -> Json:
    words = set(re.findall(r"[a-z]{3,}", text.lower()))

    def score(tool: Json) -> int:
        about = f"{tool.get('name', '')} {tool.get('description', '')}".lower().replace("_", " ")
        return 1000 * (tool.get("name") == named) + len(words & set(re.findall(r"[a-z]{3,}", about)))

    return max(tools, key=score)


def message_text(message: Json) -> str:
    """The text of a chat message, whichever form its content has."""
    content = message.get("content")
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def wanted_json(body: Json) -> str | None:
    """The JSON text that a request's response format demands, or `None` if it demands none."""
    form = body.get("response_format") or {}
    schema: Any = None
    if form.get("type") == "json_schema":
        schema = (form.get("json_schema") or {}).get("schema")
    elif form.get("type") == "json_object":
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    structured = body.get("structured_outputs") or {}
    schema = schema or structured.get("json") or body.get("guided_json")
    if isinstance(schema, str):
        schema = json.loads(schema)
    if not isinstance(schema, dict):
        return None
    text = message_text((body.get("messages") or [{}])[-1])
    return json.dumps(example(schema, text))


def example(schema: Json, text: str = "", root: Json | None = None, depth: int = 0) -> Any:
    """A value that fits a JSON schema, taken from `text` where that is easy."""
    root = schema if root is None else root
    if depth > _DEPTH:
        return None
    if isinstance(schema.get("$ref"), str):
        return example(_resolve(schema["$ref"], root), text, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return next((v for v in schema["enum"] if str(v).lower() in text.lower()), schema["enum"][0])
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return example(schema[key][0], text, root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    return _of_kind(kind[0] if isinstance(kind, list) else kind, schema, text, root, depth)


def _of_kind(kind: str, schema: Json, text: str, root: Json, depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties") or {}
        return {name: example(value, text, root, depth + 1) for name, value in properties.items()}
    if kind == "array":
        count = max(int(schema.get("minItems", 1)), 1)
        return [example(schema.get("items") or {"type": "string"}, text, root, depth + 1) for _ in range(count)]
    if kind in ("integer", "number"):
        return _number(kind, schema, text)
    if kind == "boolean":
        return True
    return None if kind == "null" else _string(schema, text)


def _number(kind: str, schema: Json, text: str) -> float | int:
    found = re.search(r"-?\d+(?:\.\d+)?", text)
    value = float(found.group()) if found else 1.0
    low = schema.get("minimum", schema.get("exclusiveMinimum", value - 1) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", value + 1) - 1)
    value = max(float(low), min(float(high), value))
    return int(value) if kind == "integer" else value


def _string(schema: Json, text: str) -> str:
    quoted = re.findall(r"[\"'`]([^\"'`]{1,60})[\"'`]", text)
    names = re.findall(r"(?<=[a-z,:] )[A-Z][A-Za-z]+", text)
    value = str((quoted or names or ["value"])[-1])
    value = value.ljust(int(schema.get("minLength", 0)), "x")
    return value[: int(schema.get("maxLength", len(value)))]


def _resolve(reference: str, root: Json) -> Json:
    node: Any = root
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part, {}) if isinstance(node, dict) else {}
    return node if isinstance(node, dict) else {}
