"""One question to a server, and the tally of many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.files import parse_json

Message = Mapping[str, Any]
Problem = Callable[[Message], str | None]
"""Why an answer's message is wrong; `None` if it is right."""
ANSWER_TOKENS = 96
_DEADLINE_S = 120.0
_CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Tally:
    """How often a probe held."""

    passed: int
    of: int
    note: str | None = None
    """The first reason for a failure, or what was refused."""

    def to_json(self) -> dict[str, Any]:
        """For the journal."""
        return asdict(self)


@dataclass(slots=True)
class Asker:
    """Asks one server without streaming: greedy, short, without thinking aloud unless a question wants it."""

    endpoint: Endpoint
    model: str
    trouble: str | None = None
    """The last thing that went unanswered, or was answered with a failure of the server itself."""

    def ask(self, question: Mapping[str, Any], problem: Problem, deadline_s: float = _DEADLINE_S) -> str | None:
        """What is wrong with the answer; `None` if nothing is."""
        status, answer, why = self.raw(question, deadline_s)
        if why is not None:
            return why
        if status != 200:
            return refusal(status, answer)
        try:
            return problem(answer["choices"][0]["message"])
        except (LookupError, TypeError, AttributeError):
            return "an answer without a message"

    def raw(self, question: Mapping[str, Any], deadline_s: float = _DEADLINE_S) -> tuple[int, Any, str | None]:
        """Status and JSON of the answer, or why there is none."""
        body = {
            "model": self.model,
            "max_tokens": ANSWER_TOKENS,
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False},
            **question,
        }
        try:
            status, answer = self.endpoint.post_json(_CHAT, body, deadline=deadline_s)
        except EndpointError as error:
            self.trouble = f"no answer: {error.why}"
            return 0, None, self.trouble
        if status >= 500:
            self.trouble = refusal(status, answer)
        return status, answer, None

    def tally(self, questions: list[tuple[Mapping[str, Any], Problem]]) -> Tally:
        """Ask them all."""
        found = [self.ask(question, problem) for question, problem in questions]
        return Tally(sum(why is None for why in found), len(found), next((why for why in found if why), None))


def user(text: str) -> list[dict[str, str]]:
    """A conversation of one message."""
    return [{"role": "user", "content": text}]


def refusal(status: int, answer: object) -> str:
    """`HTTP 400: the server's own words`."""
    error = answer.get("error") if isinstance(answer, dict) else None
    words = error.get("message") if isinstance(error, dict) else error
    return f"HTTP {status}: {str(words)[:160]}" if words else f"HTTP {status}"


def parsed(text: object) -> Any:
    """JSON, or `None`."""
    try:
        return parse_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
