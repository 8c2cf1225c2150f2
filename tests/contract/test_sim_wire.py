"""The stand-in's answers on the wire, against a stream recorded from vLLM 0.32."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.contract.sim_process import DEADLINE_S, Stand, ready, stand_in

RECORDED = Path(__file__).resolve().parents[1] / "data" / "wire" / "vllm-0.32-chat-mtp.sse"
HELLO = [{"role": "user", "content": "Write a function that adds two numbers"}]
MTP = ("--speculative-config", '{"method": "mtp", "num_speculative_tokens": 2}')
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stand_in(tmp_path_factory.mktemp("sim"), "--enable-prompt-tokens-details", *MTP) as found:
        ready(found)
        yield found


@pytest.fixture
def client(stand: Stand) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stand.url, trust_env=False, timeout=30.0) as found:
        yield found


def events(text: str) -> list[Any]:
    found = [line.removeprefix("data: ") for line in text.split("\n\n") if line.strip()]
    return [line if line == "[DONE]" else json.loads(line) for line in found]


def stream(client: httpx.Client, path: str = "/v1/chat/completions", **body: Any) -> list[Any]:
    options = {"include_usage": True, "continuous_usage_stats": True}
    full = {"model": "q", "stream": True, "stream_options": options, **body}
    if path.endswith("chat/completions"):
        full.setdefault("messages", HELLO)
    answer = client.post(path, json=full)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    return events(answer.text)


def keys(value: Any) -> Any:
    """The shape of a chunk: key names all the way down."""
    if isinstance(value, dict):
        return {key: keys(part) for key, part in value.items()}
    return [keys(part) for part in value] if isinstance(value, list) else None


def test_chunks_have_the_shape_of_the_recorded_ones(client: httpx.Client) -> None:
    recorded, ours = events(RECORDED.read_text()), stream(client, max_tokens=12)
    assert ours[-1] == recorded[-1] == "[DONE]"
    # First the role, then tokens, the last of them with the finish reason, then usage without choices.
    for mine, theirs in ((0, 0), (1, 1), (-3, -3), (-2, -2)):
        assert keys(ours[mine]) == keys(recorded[theirs])
    assert ours[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}


def test_running_usage_counts_every_token_once(client: httpx.Client) -> None:
    chunks = stream(client, max_tokens=60, ignore_eos=True)[:-1]
    counts = [chunk["usage"]["completion_tokens"] for chunk in chunks]
    steps = [later - earlier for earlier, later in pairwise(counts)]
    assert counts[0] == 0
    assert steps[0] == 1
    assert steps[-1] == 0
    assert set(steps[1:-1]) <= {1, 2, 3}
    assert max(steps) == 3
    assert counts[-1] == 60
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"


def test_without_stream_options_there_is_no_usage(client: httpx.Client) -> None:
    chunks = stream(client, max_tokens=5, stream_options=None)
    assert all("usage" not in chunk for chunk in chunks[:-1])
    final = stream(client, max_tokens=5, stream_options={"include_usage": True})
    assert ["usage" in chunk for chunk in final[:-1]] == [False] * (len(final) - 2) + [True]


def test_a_plain_completion_streams_text(client: httpx.Client) -> None:
    chunks = stream(client, "/v1/completions", prompt="def add(a, b):", max_tokens=8)
    assert "".join(chunk["choices"][0]["text"] for chunk in chunks[:-2]).strip()
    assert chunks[-2]["usage"]["completion_tokens"] == 8
    assert chunks[0]["object"] == "text_completion"


def test_an_answer_in_one_piece_agrees_with_its_stream(client: httpx.Client) -> None:
    body = {"model": "q", "messages": HELLO, "temperature": 0, "max_tokens": 30}
    whole = client.post("/v1/chat/completions", json=body).json()
    chunks = stream(client, temperature=0, max_tokens=30)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-2])
    assert whole["choices"][0]["message"]["content"] == text
    assert whole["usage"]["completion_tokens"] == 30
    assert whole["object"] == "chat.completion"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_tool_call_is_valid(client: httpx.Client, streamed: bool) -> None:
    messages = [{"role": "user", "content": "What is the weather in Paris?"}]
    body: dict[str, Any] = {"tools": [WEATHER], "messages": messages, "max_tokens": 200}
    if streamed:
        chunks = stream(client, **body)[:-2]
        calls = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", [])]
        name, finish = calls[0]["function"]["name"], chunks[-1]["choices"][0]["finish_reason"]
        arguments = "".join(call["function"]["arguments"] for call in calls)
    else:
        choice = client.post("/v1/chat/completions", json={"model": "q", **body}).json()["choices"][0]
        function = choice["message"]["tool_calls"][0]["function"]
        name, arguments, finish = function["name"], function["arguments"], choice["finish_reason"]
    assert (name, json.loads(arguments), finish) == ("get_weather", {"city": "Paris"}, "tool_calls")


def test_structured_output_is_valid(client: httpx.Client) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    chunks = stream(client, response_format=form, max_tokens=200)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-2])
    assert set(json.loads(text)) == {"name", "age"}
    assert chunks[-3]["choices"][0]["finish_reason"] == "stop"


def test_cached_tokens_are_told_in_whole_blocks(client: httpx.Client) -> None:
    prompt = " word" * 4000
    first, again = (
        client.post("/v1/completions", json={"model": "q", "prompt": prompt, "max_tokens": 1}).json() for _ in range(2)
    )
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    # Speculation has the last whole block computed again.
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 1600


def test_tokenize_counts_what_a_chat_will_be_charged(client: httpx.Client) -> None:
    told = client.post("/tokenize", json={"model": "q", "messages": HELLO}).json()
    usage = client.post("/v1/chat/completions", json={"model": "q", "messages": HELLO, "max_tokens": 1}).json()["usage"]
    assert told["count"] == len(told["tokens"]) == usage["prompt_tokens"]
    assert told["max_model_len"] == 102_400
    back = client.post("/detokenize", json={"tokens": told["tokens"]}).json()["prompt"]
    assert client.post("/tokenize", json={"prompt": back}).json()["tokens"] == told["tokens"]
    bare = client.post("/tokenize", json={"messages": HELLO, "add_generation_prompt": False}).json()
    assert bare["count"] < told["count"]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ({"model": "other", "messages": HELLO}, 404, "does not exist"),
        ({"messages": HELLO, "min_p": 0.1}, 400, "speculative"),
        ({"messages": HELLO, "max_tokens": 10**6}, 400, "maximum context length"),
        ({}, 400, "messages"),
    ],
)
def test_refusals_have_vllms_shape(client: httpx.Client, body: dict[str, Any], code: int, says: str) -> None:
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == code
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert says in error["message"]
    assert client.post("/v1/chat/completions", content=b"no json").status_code == 400


def test_the_small_routes_answer(client: httpx.Client) -> None:
    assert client.get("/health").status_code == 200
    assert client.get("/version").json() == {"version": "0.32.0+sim"}
    assert client.get("/load").json() == {"server_load": 0}
    (card,) = client.get("/v1/models").json()["data"]
    assert (card["id"], card["max_model_len"]) == ("q", 102_400)


def test_counters_and_answers_agree(client: httpx.Client) -> None:
    def counted() -> dict[str, float]:
        lines = client.get("/metrics").text.splitlines()
        pairs = (line.rpartition(" ") for line in lines if line.startswith("vllm:"))
        return {name.partition("{")[0]: float(value) for name, _, value in pairs}

    before = counted()
    usages = [stream(client, max_tokens=20 + n, ignore_eos=True)[-2]["usage"] for n in range(3)]
    after = counted()
    assert after["vllm:generation_tokens_total"] - before["vllm:generation_tokens_total"] == 63
    prompts = sum(usage["prompt_tokens"] for usage in usages)
    assert after["vllm:prompt_tokens_total"] - before["vllm:prompt_tokens_total"] == prompts
    name = "vllm:time_to_first_token_seconds_count"
    assert after[name] - before[name] == 3


def test_a_client_that_leaves_frees_its_place_and_is_not_counted(client: httpx.Client) -> None:
    def ended() -> list[str]:
        return [line for line in client.get("/metrics").text.splitlines() if line.startswith("vllm:request_success_t")]

    before = ended()
    body = {"model": "q", "messages": HELLO, "stream": True, "max_tokens": 50_000, "ignore_eos": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as answer:
        lines = answer.iter_lines()
        next(lines)
        assert client.get("/load").json() == {"server_load": 1}
    end = time.monotonic() + DEADLINE_S
    while client.get("/load").json() != {"server_load": 0}:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert ended() == before


def test_two_cards_are_told_in_the_consoles_words(client: httpx.Client, stand: Stand) -> None:
    from dataclasses import fields

    from console.gpu.sample import GpuSample

    cards = client.get("/sim/gpus").json()["cards"]
    assert [card["index"] for card in cards] == [0, 1]
    # A remark, the CPU beside a card and what CUDA_VISIBLE_DEVICES leaves out belong to a real machine.
    told = {field.name for field in fields(GpuSample)} - {"note", "numa_node", "visible"}
    for card in cards:
        assert set(card) == told
        assert card["processes"][0]["pid"] == stand.process.pid
        assert 0.6 * 1024**3 < card["vram_total_bytes"] - card["vram_used_bytes"] < 1.0 * 1024**3
