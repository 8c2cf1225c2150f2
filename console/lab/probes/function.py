"""Tool calls, JSON by schema, sampling settings: what a coding agent asks of a server besides text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from console.lab.probes.asking import Asker, Message, Problem, Tally, parsed, refusal, user

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
USUAL: Mapping[str, Mapping[str, Any]] = {
    "temperature, top_p, top_k": {"temperature": 0.7, "top_p": 0.8, "top_k": 20},
    "penalties": {"presence_penalty": 0.5, "frequency_penalty": 0.1, "repetition_penalty": 1.05},
    "seed": {"temperature": 1.0, "seed": 7},
    "stop": {"stop": ["\n\n"]},
    "logprobs": {"logprobs": True, "top_logprobs": 3},
}
"""What chat clients and the model's own generation_config send."""
EXTRA: Mapping[str, Mapping[str, Any]] = {"min_p": {"min_p": 0.05}, "logit_bias": {"logit_bias": {"5": 1.0}}}
"""What newer versions refuse under speculation (older ones ignore it)."""


def tool_call(asker: Asker, times: int, *, auto: bool) -> Tally:
    """Ask for the weather of a city: valid JSON for the right function with the right city.

    Args:
        asker: the server.
        times: how many different requests.
        auto: whether the server was started to choose tools by itself; otherwise the function is named.
    """
    choice: Any = "auto" if auto else {"type": "function", "function": {"name": "get_weather"}}
    questions: list[tuple[Mapping[str, Any], Problem]] = []
    for i in range(times):
        city = _CITIES[i % len(_CITIES)]
        text = f"What is the weather in {city}? Use the tool."
        question = {"messages": user(text), "tools": [_TOOL], "tool_choice": choice}
        # A small model that is forced to call may name any city: there the form alone is the probe.
        questions.append((question, _called(city if auto else None)))
    return asker.tally(questions)


def _called(city: str | None) -> Problem:
    def problem(message: Message) -> str | None:
        calls = message.get("tool_calls") or []
        if not calls:
            return "no tool call"
        function = calls[0].get("function") or {}
        if function.get("name") != "get_weather":
            return f"the function {function.get('name')!r} was called"
        arguments = parsed(function.get("arguments"))
        if not isinstance(arguments, dict):
            return "arguments that are no JSON object"
        given = arguments.get("city")
        return None if given in _CITIES and city in (None, given) else "another city was asked for"

    return problem


def json_schema(asker: Asker, times: int) -> Tally:
    """Ask for answers by a JSON schema and check them."""
    form = {"type": "json_schema", "json_schema": {"name": "report", "schema": _SCHEMA, "strict": True}}
    texts = [f"Report {i + 1}: card 1 fell off the bus under load. Classify it." for i in range(times)]
    return asker.tally([({"messages": user(text), "response_format": form}, _fits_schema) for text in texts])


def _fits_schema(message: Message) -> str | None:
    answer = parsed(message.get("content"))
    if not isinstance(answer, dict) or answer.keys() != {"severity", "confirmed"}:
        return "not the fields of the schema"
    good = answer["severity"] in ("low", "medium", "high") and isinstance(answer["confirmed"], bool)
    return None if good else "values outside the schema"


def sampling(asker: Asker, settings: Mapping[str, Mapping[str, Any]]) -> Tally:
    """Which of the settings are accepted; the refused ones are named with the server's words."""
    refused: dict[str, str] = {}
    passed = 0
    for name, values in settings.items():
        status, answer, why = asker.raw({"messages": user("Say yes."), "max_tokens": 4, **values})
        if why is not None or status >= 500:
            # A server that failed at one setting says nothing about those that would come after it.
            return Tally(passed, len(settings), f"{name}: {why or refusal(status, answer)}")
        if status != 200:
            refused[name] = refusal(status, answer)
        passed += status == 200
    words = next(iter(refused.values()), "")
    return Tally(passed, len(settings), f"{', '.join(refused)} refused ({words})" if refused else None)
