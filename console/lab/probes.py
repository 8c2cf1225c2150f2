"""Does the arm still do its work: tool calls and JSON by schema. Narrow, and only ever read relative to the other arm.

An arm fails a probe where another arm passed it; what every arm fails says something about the model or the preset, and
nothing about the setting under test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from console.endpoint import Endpoint, EndpointError

_DEADLINE_S = 120.0
_ANSWER_TOKENS = 96
_CITIES = ("Aarhus", "Bergen", "Cork", "Delft", "Espoo", "Faro", "Ghent", "Hilo")

_TOOL: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city now",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "enum": list(_CITIES)}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": ["low", "medium", "high"]},
        "confirmed": {"type": "boolean"},
    },
    "required": ["severity", "confirmed"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a probe held."""

    passed: int
    of: int
    note: str | None = None
    """The first reason for a failure."""

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return asdict(self)


def tool_call(endpoint: Endpoint, model: str, times: int, *, auto: bool) -> Tally:
    """Ask for the weather of a city: valid JSON for the right function with the right city.

    Args:
        endpoint: the server.
        model: the served name.
        times: how many different requests.
        auto: whether the server was started to choose tools by itself; otherwise the function is named.
    """
    choice: Any = "auto" if auto else {"type": "function", "function": {"name": "get_weather"}}

    def ask(i: int) -> dict[str, Any]:
        text = f"What is the weather in {_CITIES[i % len(_CITIES)]}? Use the tool."
        return {"messages": [{"role": "user", "content": text}], "tools": [_TOOL], "tool_choice": choice}

    def problem(message: Mapping[str, Any], i: int) -> str | None:
        calls = message.get("tool_calls") or []
        if not calls:
            return "no tool call"
        function = calls[0].get("function") or {}
        if function.get("name") != "get_weather":
            return f"the function {function.get('name')!r} was called"
        arguments = _json(function.get("arguments"))
        if not isinstance(arguments, dict):
            return "arguments that are no JSON object"
        wanted = _CITIES[i % len(_CITIES)] if auto else arguments.get("city")
        # A small model that is forced to call may name any city: there the form alone is the probe.
        return None if arguments.get("city") == wanted and wanted in _CITIES else "another city was asked for"

    return _tally(endpoint, model, times, ask, problem)


def json_schema(endpoint: Endpoint, model: str, times: int) -> Tally:
    """Ask for an answer by a JSON schema and check it."""

    def ask(i: int) -> dict[str, Any]:
        text = f"Report {i + 1}: card 1 fell off the bus under load. Classify it."
        form = {"type": "json_schema", "json_schema": {"name": "report", "schema": _SCHEMA, "strict": True}}
        return {"messages": [{"role": "user", "content": text}], "response_format": form}

    def problem(message: Mapping[str, Any], _: int) -> str | None:
        answer = _json(message.get("content"))
        if not isinstance(answer, dict) or answer.keys() != {"severity", "confirmed"}:
            return "not the fields of the schema"
        good = answer["severity"] in ("low", "medium", "high") and isinstance(answer["confirmed"], bool)
        return None if good else "values outside the schema"

    return _tally(endpoint, model, times, ask, problem)


def _tally(
    endpoint: Endpoint,
    model: str,
    times: int,
    ask: Callable[[int], dict[str, Any]],
    problem: Callable[[Mapping[str, Any], int], str | None],
) -> Tally:
    passed, note = 0, None
    for i in range(times):
        body = {
            "model": model,
            "max_tokens": _ANSWER_TOKENS,
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False},
            **ask(i),
        }
        why = _once(endpoint, body, lambda message, i=i: problem(message, i))  # type: ignore[misc]
        passed += why is None
        note = note or why
    return Tally(passed, times, note)


def _once(endpoint: Endpoint, body: object, problem: Callable[[Mapping[str, Any]], str | None]) -> str | None:
    try:
        status, answer = endpoint.post_json("/v1/chat/completions", body, deadline=_DEADLINE_S)
    except EndpointError as error:
        return f"no answer: {error.why}"
    if status != 200:
        return f"HTTP {status}"
    try:
        return problem(answer["choices"][0]["message"])
    except (LookupError, TypeError, AttributeError):
        return "an answer without a message"


def _json(text: object) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except ValueError:
        return None
