"""What a stream is held against: what the server really sent, not what it meant to."""

from __future__ import annotations

from console.lab.trace import Trace
from tests.bench.client_cases import Case, Truth, problems

SENT = {"received": 100.0, "writes": [["role", 0, 100.05], *(["tokens", 2, 100.1 + 0.03 * i] for i in range(5))]}
CASE = Case("two tokens a chunk", {}, "ok", 0.1, 0.01, 0.03)


def _seen(late_s: float = 0.0) -> Trace:
    stamps = [0.1 + late_s + 0.03 * i for i in range(5)]
    return Trace(stamps=stamps, tokens=[2, 4, 6, 8, 10], completion_tokens=10, outcome="ok")


def test_truth_comes_from_the_writes_that_were_made() -> None:
    truth = Truth.of(SENT, reasoning=3)
    assert [round(value or 0, 6) for value in (truth.ttft, truth.tpot, truth.gap, truth.content)] == [
        0.1,
        0.015,
        0.03,
        0.19,
    ]
    glued = Truth.of({"received": 0.0, "writes": [["tokens", 1, 0.1], ["tokens", 1, 0.1], ["tokens", 1, 0.3]]})
    assert (glued.arrivals, glued.tpot) == (2, 0.3 - 0.1)
    assert Truth.of({"received": 0.0, "writes": []}) == Truth()


def test_a_server_that_was_late_is_not_the_clients_mistake_and_a_late_stamp_is() -> None:
    truth = Truth.of(SENT)
    assert problems(CASE, _seen(), truth) == []
    late = {"received": 100.0, "writes": [["tokens", 2, at + 0.5] for _, _, at in SENT["writes"][1:]]}  # type: ignore[index]
    assert problems(CASE, _seen(0.5), Truth.of(late)) == []
    assert problems(CASE, _seen(0.5), truth) == ["TTFT 600.00 ms where 100.00 is true"]
    assert problems(CASE, Trace(outcome="cut"), truth)[0] == "outcome cut, not ok"


def test_two_writes_in_one_read_leave_their_first_tokens_unknown() -> None:
    trace = Trace(stamps=[0.1, 0.16, 0.22], tokens=[None, None, None], completion_tokens=10, outcome="ok")
    assert trace.tpot_s is None
    assert problems(CASE, trace, Truth.of(SENT)) == []
