"""Prompts: exact counts, equal for both arms, nothing shared where it has to be cold."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from console.errors import ConsoleError, UsageError
from console.lab.corpus import Walk
from console.lab.fitting import fit
from console.lab.jobs import Job, Jobs, Message
from console.lab.plan import WORKLOADS
from console.lab.replay import read_recorded, write_recorded
from console.lab.shapes import TRIGGER, Shape, shape_for
from console.lab.steady import is_steady
from console.lab.workload import build_jobs
from console.presets import Preset

_PIECE = re.compile(r" ?[A-Za-z]{1,5}| ?\d|\s+|[^\sA-Za-z\d]{1,2}")


def count_text(text: str) -> int:
    return len(_PIECE.findall(text))


def count(messages: list[Message]) -> int:
    return 3 + sum(4 + count_text(message["content"]) for message in messages)


def preset(**args: Any) -> Preset:
    given = {"max-model-len": 32768, **{key.replace("_", "-"): value for key, value in args.items()}}
    return Preset("p", "m", args=given)


SMALL = shape_for("small", 300, [preset()])


def build(shape: Shape = SMALL, seed: int = 11, round_number: int = 1) -> Jobs:
    return build_jobs(shape, WORKLOADS, seed, round_number, count)


@pytest.mark.parametrize("size", ["small", "normal"])
def test_every_prompt_has_exactly_its_count(size: str) -> None:
    shape: Shape = shape_for(size, 400, [preset(max_num_seqs=3)])
    jobs = build(shape)
    every = (*jobs.warm_up, *jobs.measured)
    assert [count(list(job.messages)) for job in every] == [job.prompt_tokens for job in every]
    assert len(jobs.measured) == shape.requests(WORKLOADS)


def test_both_arms_of_a_round_get_the_same_and_every_round_something_else() -> None:
    first, again, other = build(), build(), build(round_number=2)
    assert first == again
    assert {job.salt for job in first.measured}.isdisjoint(job.salt for job in other.measured)
    assert build(seed=12) != first


def _opening(job: Job) -> str:
    return str(job.messages[0]["content"])


def test_cold_prompts_differ_from_their_first_word_and_have_salts_of_their_own() -> None:
    jobs = build(shape_for("normal", 300, [preset()]))
    cold = [job for job in (*jobs.warm_up, *jobs.measured) if job.phase not in ("prime", "warm")]
    assert len({_opening(job).split()[0] for job in cold}) == len(cold)
    assert len({job.salt for job in cold}) == len(cold)


def test_a_conversation_grows_by_results_and_keeps_its_beginning() -> None:
    agent = build().of("agent")
    assert [job.phase for job in agent] == ["cold", "prime", "warm", "warm"]
    assert agent[0].messages == agent[1].messages
    assert len({job.salt for job in agent}) == 1
    for before, after in pairwise(agent[1:]):
        assert after.messages[: len(before.messages)] == before.messages
        assert after.prompt_tokens is not None
        assert before.prompt_tokens is not None
        assert after.prompt_tokens == before.prompt_tokens + SMALL.turn_tokens


def test_a_request_asks_for_a_fixed_length_running_counts_and_no_forbidden_end() -> None:
    job = build().of("decode")[0]
    body = json.loads(job.body("tiny"))
    assert body["max_tokens"] == SMALL.decode_answer_tokens
    assert "min_tokens" not in body
    assert body["ignore_eos"] is True
    assert body["return_token_ids"] is True
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body["cache_salt"] == job.salt


def test_words_are_drawn_as_the_model_wants_and_greedily_beside_it() -> None:
    jobs = build()
    greedy = [job.key for job in jobs.of("decode") if json.loads(job.body("tiny")).get("temperature") == 0]
    assert greedy == ["decode/1"]
    assert [job.key for job in jobs.of("decode") if job.phase == "greedy"] == greedy
    for job in (*jobs.measured, *jobs.warm_up):
        assert "seed" not in json.loads(job.body("tiny"))
        assert ("temperature" in json.loads(job.body("tiny"))) == (job.key == "decode/1")


def test_a_long_prompt_arrives_once_the_stream_beside_it_runs() -> None:
    (act,) = build().acts["interference"]
    stream, intruder = act.jobs
    assert (stream.phase, intruder.phase) == ("stream", "intruder")
    assert act.after == TRIGGER
    assert intruder.prompt_tokens == SMALL.clash_prompt_tokens
    assert stream.answer_tokens is not None
    assert stream.answer_tokens > TRIGGER


@pytest.mark.parametrize(
    ("budget", "steps"),
    [(512, -(-6800 // 511)), (2048, -(-6800 // 2047))],
)
def test_the_stream_outlasts_the_prefill_beside_it_in_the_arm_with_the_smallest_chunks(budget: int, steps: int) -> None:
    arms = [preset(max_num_batched_tokens=n) for n in (budget, 4096)]
    shape = shape_for("normal", 1600, arms)
    assert shape.clash_prompt_tokens == 6800
    assert shape.clash_answer_tokens == TRIGGER + steps + 8
    drafting = preset(max_num_batched_tokens=budget, speculative_config={"num_speculative_tokens": 2})
    assert shape_for("normal", 1600, [*arms, drafting]).clash_answer_tokens >= 3 * shape.clash_answer_tokens - 3


def test_sessions_are_as_many_as_every_arm_decodes_at_once() -> None:
    assert shape_for("normal", 300, [preset(max_num_seqs=4), preset(max_num_seqs=3)]).sessions == 3
    assert shape_for("normal", 300, [preset(max_num_seqs=1)]).sessions == 2
    assert shape_for("full", 300, [preset(max_num_seqs=64)]).sessions == 8
    (act,) = build(shape_for("normal", 300, [preset(max_num_seqs=4)])).acts["concurrent"]
    assert (act.at_once, len(act.jobs)) == (4, 8)


def test_a_small_run_has_blocks_enough_to_show_a_hit_under_speculation() -> None:
    """Under speculation the last cached block is computed again: one block would show none."""
    assert SMALL.prefix_tokens > 2 * 300
    assert SMALL.warm_up_prefix_tokens < 2 * 300


def test_in_a_demo_nobody_waits_for_what_the_stand_in_cannot_show() -> None:
    shown = shape_for("small", 300, [replace(preset(), simulated=True)])
    assert (shown.recall_tokens, shown.probe_blocks) == (0, 0)
    assert SMALL.probe_blocks
    assert shape_for("normal", 300, [replace(preset(), simulated=True)]).recall_tokens > 0


def test_the_long_recall_stays_below_the_context() -> None:
    assert shape_for("normal", 1600, [preset()]).recall_tokens == 32768 - 256
    assert shape_for("small", 300, [preset()]).recall_tokens == SMALL.prefix_tokens
    assert shape_for("normal", 1600, [Preset("p", "m")]).recall_tokens == 0


def test_recorded_requests_are_sent_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    rows = [
        {"model": "x", "messages": [{"role": "user", "content": "a"}], "temperature": 0.6, "stream": False},
        {"request": {"messages": [{"role": "user", "content": "b"}], "max_tokens": 9}},
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    recorded = read_recorded(path)
    shape = shape_for("small", 300, [preset()], replays=len(recorded))
    jobs = build_jobs(shape, ("replay",), 11, 1, count, recorded).of("replay")
    first, second = (json.loads(job.body("tiny")) for job in jobs)
    assert (first["model"], first["temperature"], first["stream"]) == ("tiny", 0.6, True)
    assert "ignore_eos" not in first
    assert second["max_tokens"] == 9
    assert first["cache_salt"] == second["cache_salt"]
    write_recorded(recorded, tmp_path)
    assert read_recorded(tmp_path / "replay.jsonl") == recorded


@pytest.mark.parametrize("text", ["", "{", "[]", '{"prompt": "x"}', '{"messages": []}'])
def test_a_file_that_holds_no_requests_is_refused_with_its_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_recorded(path)
    assert caught.value.fix
    with pytest.raises(UsageError, match="cannot be read"):
        read_recorded(tmp_path / "nowhere")


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


def test_the_records_that_the_page_shows_are_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ab.md").read_text()
    file = tmp_path / "mine.jsonl"
    file.write_text(page.partition("```json\n")[2].partition("```")[0])
    jobs = read_recorded(file)
    assert len(jobs) == 2
    assert all(job.messages for job in jobs)
    assert jobs[0].recorded == {"max_tokens": 256, "temperature": 0.7}
