"""The lab's probes and workloads against the stand-in engine in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from console.endpoint import Endpoint
from console.errors import ConsoleError
from console.lab.acts import Stage
from console.lab.client import Target
from console.lab.jobs import Act, Job, Message
from console.lab.probes.asking import Asker
from console.lab.probes.function import EXTRA, USUAL, json_schema, sampling, tool_call
from console.lab.probes.layout import compare_layout
from console.lab.probes.prefix import prefix_test
from console.lab.probes.recall import recall
from console.lab.tokens import end_token, tokens_of
from tests.contract.sim_process import ready, stand_in

BLOCK = 1600
MTP = json.dumps({"method": "mtp", "num_speculative_tokens": 2})
PLAIN = ("--enable-prefix-caching", "--enable-prompt-tokens-details", "--max-model-len", "16384")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with stand_in(tmp_path_factory.mktemp("plain"), *PLAIN) as stand:
        ready(stand)
        with closing(Endpoint(stand.url)) as endpoint:
            yield endpoint


@pytest.fixture(scope="module")
def drafting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    with stand_in(tmp_path_factory.mktemp("drafting"), *PLAIN, "--speculative-config", MTP) as stand:
        ready(stand)
        with closing(Endpoint(stand.url)) as endpoint:
            yield endpoint


def counting(endpoint: Endpoint) -> Callable[[list[Message]], int]:
    return lambda messages: len(tokens_of(endpoint, "q", {"messages": messages}))


def test_tool_calls_and_json_hold(plain: Endpoint) -> None:
    asker = Asker(plain, "q")
    assert tool_call(asker, 3, auto=True).to_json() == {"passed": 3, "of": 3, "note": None}
    assert tool_call(asker, 2, auto=False).passed == 2
    assert json_schema(asker, 3).passed == 3


def test_a_model_that_is_not_served_fails_every_probe_with_the_servers_words(plain: Endpoint) -> None:
    found = json_schema(Asker(plain, "another"), 2)
    assert (found.passed, found.of) == (0, 2)
    assert "HTTP 404" in str(found.note)
    assert "does not exist" in str(found.note)


def test_refused_sampling_settings_are_named(plain: Endpoint, drafting: Endpoint) -> None:
    assert sampling(Asker(plain, "q"), {**USUAL, **EXTRA}).note is None
    refused = sampling(Asker(drafting, "q"), {**USUAL, **EXTRA})
    assert refused.passed == len(USUAL)
    assert str(refused.note).startswith("min_p, logit_bias refused (HTTP 400: The min_p and logit_bias")


def test_the_prefix_cache_takes_whole_blocks(plain: Endpoint) -> None:
    found = prefix_test(Asker(plain, "q"), counting(plain), BLOCK, 2)
    assert found.prompt_tokens == 2 * BLOCK + BLOCK // 4
    assert found.cached[0] == 0
    assert found.cached[-1] == found.expected == 2 * BLOCK
    assert found.ok
    assert "whole blocks of 1600" in found.sentence


def test_under_speculation_the_last_block_is_computed_again(drafting: Endpoint) -> None:
    found = prefix_test(Asker(drafting, "q"), counting(drafting), BLOCK, 2, speculates=True)
    assert found.cached[-1] == BLOCK
    assert found.ok


def test_a_cache_that_is_off_is_told_from_one_that_says_nothing(tmp_path: Path) -> None:
    flags = ("--no-enable-prefix-caching", "--enable-prompt-tokens-details", "--max-model-len", "16384")
    with stand_in(tmp_path, *flags) as stand:
        ready(stand)
        with closing(Endpoint(stand.url)) as endpoint:
            off = prefix_test(Asker(endpoint, "q"), counting(endpoint), BLOCK, 1)
    assert off.ok is False
    assert "took nothing" in off.sentence
    with stand_in(tmp_path, "--max-model-len", "16384") as stand:
        ready(stand)
        with closing(Endpoint(stand.url)) as endpoint:
            silent = prefix_test(Asker(endpoint, "q"), counting(endpoint), BLOCK, 1)
    assert silent.ok is None
    assert "--enable-prompt-tokens-details" in silent.sentence


def test_recall_asks_over_a_prompt_of_exactly_its_length(plain: Endpoint) -> None:
    found = recall(Asker(plain, "q"), counting(plain), 6000, seed=3)
    # The stand-in reads nothing: it answers, and does not know.
    assert (found.passed, found.of) == (0, 1)
    assert "it answered" in str(found.note)
    too_long = recall(Asker(plain, "q"), counting(plain), 16384, seed=3)
    assert "maximum context length" in str(too_long.note)


def test_two_requests_of_an_agent_are_held_together(plain: Endpoint) -> None:
    def request(when: str) -> dict[str, Any]:
        rules = "\n".join(f"rule {i}: leave the tests as they are" for i in range(300))
        return {"messages": [{"role": "system", "content": f"now {when}\n{rules}"}, {"role": "user", "content": "go"}]}

    found = compare_layout(request("10:00"), request("11:00"), BLOCK, lambda body: tokens_of(plain, "q", body))
    assert found.where == "message 1 of 2 (system)"
    assert found.blocks == 0
    assert found.saved_tokens >= BLOCK
    with pytest.raises(ConsoleError, match="did not tokenise"):
        tokens_of(plain, "another", request("10:00"))


def _job(answer: int, **more: Any) -> Job:
    messages = ({"role": "user", "content": "write"},)
    tokens = {"workload": "decode", "phase": "decode", "key": "decode/0", "salt": "s", "prompt_tokens": None}
    return Job(messages=messages, answer_tokens=answer, **(tokens | more))


def test_an_answer_is_followed_past_its_own_end(drafting: Endpoint) -> None:
    end = end_token(drafting, "q")
    stage = Stage(Target.of(drafting.url, None, end), "q")
    ((_, trace),) = stage.perform(Act((_job(2000, ids=True),)))
    assert trace.ok, trace.detail
    assert len(trace.ids) == trace.completion_tokens == 2000
    assert trace.natural is not None
    assert trace.ids[trace.natural - 1] == end
    assert trace.past_natural == 2000 - trace.natural
    assert trace.tpot_s is not None


def test_a_long_prompt_is_sent_beside_a_stream_that_runs(plain: Endpoint) -> None:
    stage = Stage(Target.of(plain.url, None), "q")
    stream, intruder = _job(60), _job(4, workload="interference", phase="intruder", key="x")
    pairs = stage.perform(Act((stream, intruder), at_once=2, after=8))
    traces = [trace for _, trace in pairs]
    assert [job for job, _ in pairs] == [stream, intruder]
    assert all(trace.ok for trace in traces)
    # A busy machine may bring several tokens in one read: the ninth read, or the end of a stream that had fewer.
    assert traces[1].sent > traces[0].sent + traces[0].stamps[:7][-1]
    # A stream that ends before lets the other go all the same.
    short = stage.perform(Act((_job(2), intruder), at_once=2, after=8))
    assert all(trace.ok for _, trace in short)


def test_sessions_are_so_many_at_a_time(plain: Endpoint) -> None:
    stage = Stage(Target.of(plain.url, None), "q")
    act = Act(tuple(_job(24, key=str(i)) for i in range(5)), at_once=2)
    traces = [trace for _, trace in stage.perform(act)]
    assert all(trace.ok for trace in traces)
    spans = [(trace.sent, trace.sent + (trace.ended or 0)) for trace in traces]
    for at, _ in spans:
        assert sum(start <= at < end for start, end in spans) <= 2
    assert stage.lateness.p99() is not None
