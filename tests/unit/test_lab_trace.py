"""One request's stamps: what is counted where an answer runs past its own end, and which gaps a long prompt tears."""

from __future__ import annotations

import json

import pytest

from console.lab.answer import read_answer
from console.lab.measures import Sent, boot_values
from console.lab.proof import drafts_of
from console.lab.trace import Trace

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = 99


def _event(count: int, ids: list[int], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": "x" * len(ids)}, "finish_reason": finish, "token_ids": ids}
    usage = {"prompt_tokens": 5, "completion_tokens": count}
    body = b"data: " + json.dumps({"choices": [choice], "usage": usage}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(body), body)


def _answer(*chunks: list[int], end_token: int | None = END) -> Trace:
    """An answer of one chunk a tenth of a second."""
    reads, count = [(0.05, HEAD)], 0
    for i, ids in enumerate(chunks):
        count += len(ids)
        reads.append((0.1 * (i + 1), _event(count, ids, "length" if i == len(chunks) - 1 else None)))
    reads.append((0.1 * (len(chunks) + 1), b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"))
    trace = Trace()
    read_answer(reads, trace, end_token)
    return trace


def test_the_natural_end_is_seen_by_its_token() -> None:
    trace = _answer([1], [2, 3], [4, END, 5], [6, 7, 8], [9])
    assert trace.ok
    assert (trace.natural, trace.past_natural) == (5, 5)
    assert trace.ids == [1, 2, 3, 4, END, 5, 6, 7, 8, 9]
    # The arrival that holds the end holds tokens past it too: what ends before it counts.
    assert trace.counted == 2
    assert trace.tpot_s == pytest.approx(0.1 / 2)
    assert trace.steps == [2]


def test_without_a_natural_end_all_of_it_counts() -> None:
    for end_token in (END, None):
        trace = _answer([1], [2, 3], [4, 5], end_token=end_token)
        assert trace.natural is None
        assert trace.past_natural == 0
        assert trace.tpot_s == pytest.approx(0.2 / 4)
        assert trace.gap_s == pytest.approx(0.1)


def test_an_answer_that_ends_at_once_has_no_time_per_token() -> None:
    trace = _answer([END], [1], [2])
    assert trace.natural == 1
    assert trace.tpot_s is None
    assert trace.gap_s is None
    assert trace.steps == []


def test_acceptance_before_the_end_comes_from_the_arrivals() -> None:
    drafts = drafts_of([_answer([1], [2, 3, 4], [5], [6, 7], [END, 8, 9], [10, 11, 12])], depth=2)
    assert (drafts.drafts, drafts.draft_tokens, drafts.accepted) == (3, 6, 3)
    assert drafts.per_position == (2, 1)
    assert drafts.acceptance == pytest.approx(0.5)


def test_the_gaps_that_touch_a_span() -> None:
    trace = Trace(stamps=[0.1, 0.2, 0.7, 0.8, 0.9])
    assert trace.gaps(0.25, 0.65) == [pytest.approx(0.5)]
    assert trace.gaps(0.0, 1.0) == [pytest.approx(gap) for gap in (0.1, 0.5, 0.1, 0.1)]
    assert trace.gaps(1.0, 2.0) == []


def _sent(workload: str, phase: str, key: str, trace: Trace) -> Sent:
    trace.outcome = "ok"
    return Sent(workload, phase, key, trace)


def test_interference_is_the_longest_gap_from_the_prompts_arrival_to_its_first_token() -> None:
    stream = Trace(sent=10.0, stamps=[0.1, 0.9, 1.0, 1.6, 1.7, 3.0], tokens=[1, 2, 3, 4, 5, 6], completion_tokens=6)
    intruder = Trace(sent=11.05, stamps=[0.6, 0.7], tokens=[1, 2], completion_tokens=2, ended=0.7)
    values = boot_values(
        [
            _sent("interference", "stream", "interference/0/stream", stream),
            _sent("interference", "intruder", "interference/0/intruder", intruder),
        ],
        None,
    )
    # 0.8 s came before the prompt did, 1.3 s after it was answered.
    assert values["interference.gap_max_s"] == {"interference/0": pytest.approx(0.6)}
    assert values["interference.ttft_s"] == {"interference/0/intruder": 0.6}


def test_throughput_of_sessions_is_over_the_wall_and_of_one_stream_over_its_own_time() -> None:
    def trace(sent: float) -> Trace:
        return Trace(sent=sent, stamps=[0.5, 1.0], tokens=[1, 10], completion_tokens=10, ended=1.0)

    values = boot_values(
        [
            *(_sent("concurrent", "session", f"c{i}", trace(0.5 * i)) for i in range(2)),
            *(_sent("decode", "decode", f"d{i}", trace(9.0 * i)) for i in range(2)),
        ],
        None,
    )
    assert values["concurrent.output_tokens_per_s"]["boot"] == pytest.approx(20 / 1.5)
    assert values["decode.output_tokens_per_s"]["boot"] == pytest.approx(10.0)


def test_what_failed_is_in_no_measure() -> None:
    bad = Sent("decode", "decode", "d", Trace(stamps=[0.1, 0.2], tokens=[1, 2], completion_tokens=2, outcome="cut"))
    assert boot_values([bad], None) == {}
