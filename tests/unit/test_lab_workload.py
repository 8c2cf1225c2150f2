"""Prompts: exact counts, equal for both arms, nothing shared where it has to be cold."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest

from console.errors import ConsoleError
from console.lab.corpus import Walk
from console.lab.shapes import Shape, shape_for
from console.lab.steady import is_steady
from console.lab.workload import Job, Message, build_jobs, fit

_PIECE = re.compile(r" ?[A-Za-z]{1,5}| ?\d|\s+|[^\sA-Za-z\d]{1,2}")


def count_text(text: str) -> int:
    return len(_PIECE.findall(text))


def count(messages: list[Message]) -> int:
    return 3 + sum(4 + count_text(message["content"]) for message in messages)


SMALL = shape_for("small", 300, 32768)


@pytest.mark.parametrize("size", ["small", "normal"])
def test_every_prompt_has_exactly_its_count(size: str) -> None:
    shape: Shape = shape_for(size, 400, 32768)
    jobs = build_jobs(shape, 11, 1, count)
    every = (*jobs.warm_up, *jobs.measured)
    assert [count(list(job.messages)) for job in every] == [job.prompt_tokens for job in every]
    assert len(jobs.measured) == shape.requests


def test_both_arms_of_a_round_get_the_same_and_every_round_something_else() -> None:
    first, again, other = (build_jobs(SMALL, 11, n, count) for n in (1, 1, 2))
    assert first == again
    assert {job.salt for job in first.measured}.isdisjoint(job.salt for job in other.measured)
    assert build_jobs(SMALL, 12, 1, count) != first


def _opening(job: Job) -> str:
    return job.messages[0]["content"]


def test_cold_prompts_differ_from_their_first_word_and_have_salts_of_their_own() -> None:
    jobs = build_jobs(shape_for("normal", 300, 32768), 11, 1, count)
    cold = [*jobs.warm_up, *jobs.decode, *(job for job in jobs.agent if job.phase == "cold")]
    assert len({_opening(job).split()[0] for job in cold}) == len(cold)
    assert len({job.salt for job in cold}) == len(cold)


def test_a_conversation_grows_by_results_and_keeps_its_beginning() -> None:
    agent = build_jobs(SMALL, 11, 1, count).agent
    assert [job.phase for job in agent] == ["cold", "prime", "warm", "warm"]
    assert agent[0].messages == agent[1].messages
    assert len({job.salt for job in agent}) == 1
    for before, after in pairwise(agent[1:]):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.prompt_tokens == before.prompt_tokens + SMALL.turn_tokens


def test_a_request_asks_for_a_fixed_length_and_running_counts() -> None:
    job = build_jobs(SMALL, 11, 1, count).decode[0]
    body = json.loads(job.body("tiny"))
    assert body["max_tokens"] == body["min_tokens"] == SMALL.decode_answer_tokens
    assert body["ignore_eos"] is True
    assert body["temperature"] == 0
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body["cache_salt"] == job.salt


@pytest.mark.parametrize("target", [1, 2, 17, 640, 5000])
def test_text_of_any_count_can_be_made(target: int) -> None:
    walk = Walk("x")
    assert count_text(fit(walk, count_text, target)) == target


def test_an_impossible_count_is_an_error_with_a_fix() -> None:
    with pytest.raises(ConsoleError, match="exactly 5 tokens"):
        fit(Walk("x"), lambda text: 10 + count_text(text), 5)
    with pytest.raises(ConsoleError, match="exactly 501 tokens"):
        fit(Walk("x"), lambda text: 2 * count_text(text), 501)


def test_the_corpus_repeats_when_it_ends() -> None:
    walk = Walk("x")
    assert len(walk.text(100_000)) > len(walk.text(50_000)) > 100_000
    assert walk.text(0) == ""


@pytest.mark.parametrize(
    ("gaps", "steady"),
    [
        ([], False),
        ([0.03], False),
        ([0.03, 0.0305], True),
        ([0.05, 0.03], False),
        ([0.05, 0.03, 0.031], True),
        ([None, 0.03], False),
    ],
)
def test_steady_is_two_in_a_row_that_agree(gaps: list[float | None], steady: bool) -> None:
    assert is_steady(gaps, 2) is steady
