"""The stand-in's tokenizer, answers and command line."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.paths import data
from console.presets import argv, load_catalog
from console.presets.buckets import measured
from console.sim.answers import Script, example, wanted_call, wanted_json
from console.sim.options import OptionError, human_int, parse
from console.sim.prompts import Refused, chat_text, read
from console.sim.tokens import END, UNKNOWN, Tokenizer

MODEL = "unsloth/Qwen3.8-27B-NVFP4"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
            "required": ["city"],
        },
    },
}
SEARCH = {"type": "function", "function": {"name": "search_files", "description": "Search files for a text"}}


@given(st.text(max_size=300))
def test_decoding_gives_the_text_back(text: str) -> None:
    tokenizer = Tokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_counts_add_up_at_word_boundaries() -> None:
    tokenizer = Tokenizer()
    parts = ["The quick", " brown fox", ".\n", "It jumps 123456 times", " <|im_end|>"]
    assert sum(len(tokenizer.encode(part)) for part in parts) == len(tokenizer.encode("".join(parts)))
    assert len(tokenizer.encode(" word" * 1000)) == 1000


def test_special_tokens_are_one_id_and_unknown_ids_are_visible() -> None:
    tokenizer = Tokenizer()
    assert tokenizer.encode(f"a.{END}b")[-2] == tokenizer.end
    assert tokenizer.decode([10**9, -1]) == UNKNOWN * 2
    assert tokenizer.visible([*tokenizer.encode("done"), tokenizer.end]) == "done"


def script(seed: int, natural: int | None = 50, fixed: str = "") -> tuple[Script, Tokenizer]:
    tokenizer = Tokenizer()
    return Script(tokenizer, random.Random(seed), fixed, natural), tokenizer


def test_an_answer_is_the_same_for_the_same_seed_however_it_is_taken() -> None:
    (one, tokenizer), (other, _), (third, _) = script(1), script(1), script(2)
    whole = one.take(200)
    pieces = [token for _ in range(50) for token in other.take(4)]
    assert whole == pieces == one.given
    assert whole != third.take(200)
    assert whole[49] == tokenizer.end
    assert tokenizer.encode(tokenizer.decode(whole[:49])) == whole[:49]


def test_a_stop_text_ends_the_answer_where_it_first_appears() -> None:
    one, tokenizer = script(1, natural=500)
    one.stop_at([".\n"], 500)
    text = tokenizer.decode(one.take(one.natural - 1))
    assert one.natural < 500
    assert ".\n" not in text


@pytest.mark.parametrize(
    ("text", "choice", "called"),
    [
        ("What is the weather in Paris?", None, {"city": "Paris", "unit": "celsius"}),
        ("Use get_weather for 'Oslo', in Fahrenheit", "auto", {"city": "Oslo", "unit": "fahrenheit"}),
        ("Good morning", "required", {}),
        ("Good morning", None, None),
        ("What is the weather in Paris?", "none", None),
    ],
)
def test_a_call_is_made_where_the_user_asks_for_one(text: str, choice: Any, called: dict[str, str] | None) -> None:
    body = {"tools": [SEARCH, WEATHER], "tool_choice": choice, "messages": [{"role": "user", "content": text}]}
    call = wanted_call(body)
    if called is None:
        assert call is None
    else:
        assert call is not None
        assert json.loads(call.arguments) == called


def test_a_tools_answer_is_not_answered_with_another_call() -> None:
    messages = [{"role": "user", "content": "What is the weather?"}, {"role": "tool", "content": "sunny; call again"}]
    assert wanted_call({"tools": [WEATHER], "messages": messages}) is None


def test_json_fits_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 8},
            "age": {"type": "integer", "minimum": 18, "maximum": 99},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 2},
            "kind": {"enum": ["red", "blue"]},
            "fixed": {"const": 7},
            "either": {"anyOf": [{"type": "null"}, {"type": "string"}]},
            "score": {"type": ["number", "null"]},
            "on": {"type": "boolean"},
        },
        "$defs": {"tag": {"type": "string"}},
    }
    value = example(schema, "a blue one, 5 years old")
    assert (len(value["name"]), value["age"], value["kind"], value["fixed"]) == (8, 18, "blue", 7)
    assert value["tags"] == ["value", "value"]
    assert value["either"] is None
    assert isinstance(value["score"], float)
    assert value["on"] is True
    body = {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}, "messages": [{}]}
    assert set(json.loads(wanted_json(body) or "")) == set(schema["properties"])
    assert wanted_json({"response_format": {"type": "text"}}) is None
    assert wanted_json({"response_format": {"type": "json_object"}}) is not None


def test_the_chat_template_holds_tools_roles_and_calls() -> None:
    messages = [
        {"role": "system", "content": "Be brief"},
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
    ]
    text = chat_text({"messages": messages, "tools": [WEATHER]})
    assert text.endswith("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n")
    assert "get_weather" in text
    assert '"name": "f"' in text
    assert not chat_text({"messages": messages, "add_generation_prompt": False}).endswith("assistant\n")


def ask(*flags: str, chat: bool = True, **body: Any) -> Any:
    options = parse([MODEL, "--served-model-name", "q", *flags], {})
    if chat:
        body.setdefault("messages", [{"role": "user", "content": "hello"}])
    return read(body, options, Tokenizer(), random.Random(1), chat=chat)


@pytest.mark.parametrize(
    ("flags", "body", "code", "says"),
    [
        ((), {"model": "other"}, 404, "does not exist"),
        ((), {"messages": []}, 400, "messages"),
        ((), {"max_tokens": 0}, 400, "at least 1"),
        ((), {"n": 2}, 400, "n must be 1"),
        (("--max-model-len", "100"), {"messages": [{"content": " word" * 200}]}, 400, "maximum context length is 100"),
        (("--max-model-len", "100"), {"max_tokens": 99}, 400, "you requested 99 output tokens"),
        (("--speculative-config", '{"method":"mtp"}'), {"min_p": 0.1}, 400, "speculative decoding"),
        (("--speculative-config", '{"method":"mtp"}'), {"logit_bias": {"1": 2}}, 400, "speculative decoding"),
    ],
)
def test_what_vllm_refuses_is_refused(flags: tuple[str, ...], body: dict[str, Any], code: int, says: str) -> None:
    with pytest.raises(Refused, match=says) as refused:
        ask(*flags, **body)
    assert refused.value.code == code


def test_defaults_of_a_request() -> None:
    assert ask("--max-model-len", "1000").request.max_tokens == 1000 - 12
    assert ask(chat=False, prompt="hello").request.max_tokens == 16
    assert ask(chat=False, prompt=[5, 6, 7]).request.prompt == [5, 6, 7]
    assert ask(min_p=0.1).request.max_tokens > 0
    assert ask("--reasoning-parser", "qwen3").reasoning > 0
    assert ask("--reasoning-parser", "qwen3", chat_template_kwargs={"enable_thinking": False}).reasoning == 0
    assert ask().reasoning == 0


def test_seeded_and_greedy_requests_repeat_themselves_and_others_do_not() -> None:
    def texts(**body: Any) -> tuple[list[int], list[int]]:
        options, tokenizer, rng = parse([MODEL], {}), Tokenizer(), random.Random(1)
        body = {"messages": [{"role": "user", "content": "hello"}], "ignore_eos": True, **body}
        one, two = (read(body, options, tokenizer, rng, chat=True).script.take(40) for _ in range(2))
        return one, two

    for body in ({"seed": 3}, {"temperature": 0}):
        one, two = texts(**body)
        assert one == two
    one, two = texts()
    assert one != two


@pytest.mark.parametrize(
    "line",
    [
        "--max-model 8192",
        "--no-enable-prefix 1",
        "--speculative-config.method mtp -tp 2",
        "--compilation-config.level=3 -O3",
        "--kv-cache-memory 2500000000 --max_num_seqs 4",
    ],
)
def test_flags_are_known_as_vllm_knows_them(line: str) -> None:
    assert parse([MODEL, *line.split()], {}).model == MODEL


def test_every_shipped_preset_can_be_tried_on_it() -> None:
    for preset in load_catalog([data("presets")]).presets.values():
        assert parse(argv(measured(preset))[2:], {}).model == preset.model


@pytest.mark.parametrize("line", ["--max-modle-len 8", "--no-such=1", "--no-such-thing", "--max-num 4"])
def test_what_vllm_does_not_know_is_refused_in_its_words(line: str) -> None:
    with pytest.raises(OptionError, match=f"^unrecognized arguments: {line}$"):
        parse([MODEL, *line.split(), "--port", "0"], {})


def test_the_command_line_of_a_preset_is_understood() -> None:
    line = (
        "--served-model-name qwen q2 --host 127.0.0.1 --port 8123 --tensor-parallel-size 2 --kv-cache-dtype fp8 "
        "--max-model-len 100k --max-num-batched-tokens 3200 --max-num-seqs 4 --enable-prefix-caching "
        "--kv-cache-memory-bytes 2500000000 --enforce-eager --no-async-scheduling --enable-prompt-tokens-details "
        "--compilation-config {} --middleware 3 4 --no-enable-flashinfer-autotune --reasoning-parser qwen3"
    )
    spec = json.dumps({"method": "mtp", "num_speculative_tokens": 3})
    options = parse([MODEL, *line.split(), "--speculative-config", spec], {"VLLM_API_KEY": "secret"})
    assert (options.model, options.names, options.port) == (MODEL, ("qwen", "q2"), 8123)
    assert (options.max_len, options.budget, options.streams, options.drafts) == (100_000, 3200, 4, 3)
    assert (options.block, options.kv_tokens) == (1600, 122_880)
    assert options.eager
    assert not options.async_scheduling
    assert options.prompt_details
    assert options.key == "secret"
    assert "secret" not in repr(options)


def test_flags_come_in_several_spellings() -> None:
    options = parse(["serve", "--no-enable-prefix-caching", MODEL, "--block_size=256", "--kv-cache-memory", "1g"], {})
    assert options.model == MODEL
    assert not options.prefix_caching
    assert (options.block, options.kv_bytes, options.mamba_mode) == (256, 10**9, "none")
    assert parse([MODEL, "--api-key", "k"], {"VLLM_API_KEY": "other"}).key == "k"
    assert parse([MODEL, "--max-model-len", "-1"], {}).max_len > 200_000


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["--port", "8000"],
        [MODEL, "--port", "eight"],
        [MODEL, "--port"],
        [MODEL, "--max-model-len", "12q"],
        [MODEL, "--speculative-config", "{not json"],
        [MODEL, "--speculative-config", "3"],
        [MODEL, "--gpu-memory-utilization", "much"],
    ],
)
def test_a_malformed_command_line_is_refused(argv: list[str]) -> None:
    with pytest.raises(OptionError):
        parse(argv, {})


def test_human_integers() -> None:
    assert [human_int(text) for text in ("2048", "2k", "2K", "25.6k", "-1")] == [2048, 2000, 2048, 25_600, -1]
    for text in ("1.5", "", "k", "1 2"):
        with pytest.raises(ValueError, match=r".*"):
            human_int(text)
