"""Two requests held together: where they part, what it costs, what reordering saves; where greedy answers part."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from console.errors import UsageError
from console.lab.probes.divergence import diverge
from console.lab.probes.layout import Layout, compare_layout, read_request
from console.lab.tokens import common
from console.lab.trace import Trace

BLOCK = 8
_IDS: dict[str, int] = {}
RULES = "rule " * 40


def tokenise(request: Any) -> list[int]:
    """A token a word; every message has a beginning and an end of its own."""
    parts = [json.dumps(tool) for tool in request.get("tools") or []]
    for message in request["messages"]:
        parts += ["<|im_start|>", message["role"], *re.findall(r"\S+|\n", str(message["content"])), "<|im_end|>"]
    if request.get("add_generation_prompt", True):
        parts += ["<|im_start|>", "assistant"]
    return [_IDS.setdefault(part, len(_IDS)) for part in parts]


def _ask(system: str, *turns: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, *({"role": "user", "content": turn} for turn in turns)]
    return {"messages": messages, **more}


def _layout(first: dict[str, Any], second: dict[str, Any]) -> Layout:
    return compare_layout(first, second, BLOCK, tokenise)


def test_a_date_at_the_top_costs_everything_below_it() -> None:
    found = _layout(_ask(f"now 10:00\n{RULES}", "hello"), _ask(f"now 10:05\n{RULES}", "hello"))
    assert found.where == "message 1 of 2 (system)"
    assert found.shared == 3
    assert found.blocks == 0
    assert found.saved_tokens >= 40
    assert "10:00" in found.excerpts[0]
    assert "10:05" in found.excerpts[1]
    assert any("tokens saved" in text for text in found.sentences)


def test_a_request_that_only_goes_on_shares_all_of_the_one_before() -> None:
    found = _layout(_ask(RULES, "hello"), _ask(RULES, "hello", "and now?"))
    assert found.where == "message 3 of 3 (user)"
    assert found.saved_tokens == 0
    assert any("no whole block" in text for text in found.sentences)


def test_equal_requests_part_nowhere() -> None:
    found = _layout(_ask(RULES, "hello"), _ask(RULES, "hello"))
    assert found.where == "the end"
    assert found.shared == found.tokens[0] == found.tokens[1]
    assert found.excerpts == ("", "")


def test_a_changed_turn_is_found_by_its_message() -> None:
    turns = [f"turn {i} {RULES}" for i in range(6)]
    other = [*turns[:3], f"turn x {RULES}", *turns[4:]]
    assert _layout(_ask("s", *turns), _ask("s", *other)).where == "message 5 of 7 (user)"


def test_tools_in_another_order_are_told_and_saved() -> None:
    tools = [{"function": {"name": name}} for name in ("read", "write", "run")]
    found = _layout(_ask(RULES, "go", tools=tools), _ask(RULES, "go", tools=tools[::-1]))
    assert found.where == "the tools, before the first message"
    assert found.blocks == 0
    assert found.blocks_possible >= 5


def test_requests_are_read_as_they_were_recorded(tmp_path: Path) -> None:
    body = _ask("s", "hello") | {"temperature": 1, "tools": []}
    path = tmp_path / "a.json"
    for raw in (body, {"request": body}, {"body": body}):
        path.write_text(json.dumps(raw))
        assert read_request(path) == {"messages": body["messages"]}
    path.write_text(json.dumps(body["messages"]))
    assert read_request(path) == {"messages": body["messages"]}


@pytest.mark.parametrize("text", ["", "{", "{}", '{"messages": []}', "3"])
def test_what_is_no_request_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_request(path)
    assert caught.value.fix


def test_the_result_is_json() -> None:
    found = _layout(_ask("a", "b"), _ask("a", "c")).to_json()
    assert json.loads(json.dumps(found))["blocks"] == 0


def test_what_prompts_share() -> None:
    assert common([1, 2, 3], [1, 2, 4]) == 2
    assert common([1, 2], [1, 2, 3]) == 2
    assert common([], [1]) == 0


def _greedy(ids: list[int], natural: int | None = None) -> Trace:
    return Trace(ids=ids, natural=natural)


def test_where_greedy_answers_part() -> None:
    ours = {"a": _greedy([1, 2, 3]), "b": _greedy([1, 9, 9]), "c": _greedy([1, 2, 7], natural=2), "d": _greedy([])}
    theirs = {"a": _greedy([1, 2, 3]), "b": _greedy([1, 2, 3]), "c": _greedy([1, 2, 8], natural=2), "e": _greedy([1])}
    found = diverge(ours, theirs)
    assert found is not None
    # What stands past an answer's own end is no difference.
    assert (found.pairs, found.equal, found.first) == (3, 2, (1,))
    assert found.median_first == 1
    assert diverge({"a": _greedy([])}, {"a": _greedy([])}) is None
