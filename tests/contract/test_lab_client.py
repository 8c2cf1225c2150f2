"""The lab's client against a server whose script is known: every outcome told right, no token lost or counted twice."""

from __future__ import annotations

import asyncio
import json

import pytest

from console.endpoint import free_port
from console.lab.client import Asked, Lateness, Target, Wires, stream
from console.lab.trace import Trace
from tests.contract.scripted_stream import (
    CLOSE,
    DONE,
    END,
    HEAD,
    RESET,
    STALL,
    Script,
    event,
    events,
    serving,
    usage,
    wrap,
)

PAUSE = 0.03


async def ask(script: Script, *, expect: int | None = 3, timeout_s: float = 20.0, key: str | None = None) -> Trace:
    async with serving(script) as port:
        # The client blocks; the scripted server has the loop to itself.
        target = Target("127.0.0.1", port, key)
        return await asyncio.to_thread(stream, target, b'{"a": 1}', expect=expect, timeout_s=timeout_s)


def _say(text: str, count: int, finish: str | None = None) -> bytes:
    return event(count, finish, content=text)


PLAIN = events(_say("a", 1), PAUSE, _say("b", 2), PAUSE, _say("c", 3, "length"), usage(3, cached=5))


async def test_a_plain_stream() -> None:
    trace = await ask(Script(PLAIN))
    assert (trace.outcome, trace.detail, trace.finish) == ("ok", "", "length")
    assert trace.tokens == [1, 2, 3]
    assert (trace.prompt_tokens, trace.completion_tokens, trace.cached_tokens) == (7, 3, 5)
    assert trace.tpot_s == pytest.approx((trace.stamps[-1] - trace.stamps[0]) / 2)
    assert trace.stamps[1] - trace.stamps[0] >= 0.8 * PAUSE
    assert trace.gap_s == trace.tpot_s


async def test_the_request_goes_out_whole_and_with_the_key() -> None:
    script = Script(PLAIN)
    await ask(script, key="hush")
    head, _, body = script.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/chat/completions HTTP/1.1\r\n")
    assert b"authorization: Bearer hush" in head
    assert json.loads(body) == {"a": 1}


async def test_a_chunk_that_only_names_the_role_is_no_token() -> None:
    trace = await ask(Script(events(event(0, role="assistant", content=""), PAUSE, *_rest())))
    assert trace.role_at is not None
    assert trace.ttft_s is not None
    assert trace.ttft_s - trace.role_at >= 0.8 * PAUSE
    assert trace.tokens == [1, 3]


def _rest() -> list[bytes | float]:
    return [_say("a", 1), PAUSE, _say("bc", 3, "length"), usage(3)]


async def test_several_tokens_a_chunk_divide_by_those_after_the_first() -> None:
    script = Script(events(_say("abc", 3), PAUSE, _say("def", 6), PAUSE, _say("ghi", 9, "length"), usage(9)))
    trace = await ask(script, expect=9)
    span = trace.stamps[-1] - trace.stamps[0]
    assert trace.tokens == [3, 6, 9]
    assert trace.tpot_s == pytest.approx(span / 6)
    assert trace.gap_s == pytest.approx(span / 2)


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
async def test_reasoning_counts_as_the_first_token(field: str) -> None:
    trace = await ask(Script(events(event(1, **{field: "hm"}), *_rest()[1:])))
    assert trace.tokens == [1, 3]
    assert trace.content_at is not None
    assert trace.ttft_s is not None
    assert trace.content_at > trace.ttft_s


async def test_a_tool_call_counts_as_the_first_token() -> None:
    call = [{"index": 0, "function": {"name": "f", "arguments": ""}}]
    trace = await ask(Script(events(event(1, tool_calls=call), *_rest()[1:])))
    assert trace.ok
    assert trace.tokens[-1] == 3
    assert trace.ttft_s is not None


async def test_tokens_that_show_nothing_still_count() -> None:
    # Half of a character, or the end token: no text, but time passed and the count rose.
    parts = (_say("a", 1), PAUSE, event(2, content=""), PAUSE, event(3, "stop", content=""), usage(3))
    trace = await ask(Script(events(*parts)))
    assert trace.tokens == [1, 2, 3]


async def test_events_glued_into_one_write_are_one_arrival() -> None:
    glued = wrap(_say("a", 1) + _say("b", 2)) + wrap(_say("c", 3))
    steps: list[bytes | float | str] = [
        HEAD,
        wrap(_say("z", 1)),
        PAUSE,
        glued,
        PAUSE,
        wrap(_say("d", 4, "length")),
        wrap(usage(4) + DONE),
        END,
    ]
    trace = await ask(Script(steps), expect=4)
    assert trace.ok
    assert trace.tokens == [1, 3, 4]
    assert len(trace.stamps) == 3


async def test_events_torn_over_many_writes_are_whole() -> None:
    whole = wrap(_say("a", 1)) + wrap(_say("bc", 3, "length")) + wrap(usage(3)) + wrap(DONE) + END
    steps: list[bytes | float | str] = [HEAD[:20], 0.001, HEAD[20:]]
    for i in range(0, len(whole), 7):
        steps += [whole[i : i + 7], 0.001]
    trace = await ask(Script(steps))
    assert trace.ok
    assert trace.tokens == [1, 3]


async def test_line_ends_of_either_kind_and_comments() -> None:
    text = b": ping\n\n" + _say("a", 1).replace(b"\n", b"\r\n") + _say("bc", 3, "stop") + usage(3)
    assert (await ask(Script([HEAD, wrap(text), wrap(DONE), END]))).ok


async def test_without_running_counts_one_token_an_arrival_is_enough() -> None:
    parts = (event(None, content="a"), PAUSE, event(None, content="b"), PAUSE, event(None, "stop", content="c"))
    trace = await ask(Script(events(*parts, usage(3))))
    assert trace.tokens == [None, None, None]
    assert trace.tpot_s == pytest.approx((trace.stamps[-1] - trace.stamps[0]) / 2)


async def test_without_running_counts_several_tokens_an_arrival_are_unknown() -> None:
    parts = (event(None, content="ab"), PAUSE, event(None, "stop", content="cd"), usage(4))
    assert (await ask(Script(events(*parts)), expect=4)).tpot_s is None


async def test_an_error_in_the_stream_is_no_success() -> None:
    error = b'data: {"error": {"message": "EngineCore died", "code": 500}}\n\n'
    trace = await ask(Script(events(_say("a", 1), error)))
    assert (trace.outcome, trace.detail) == ("error-event", "EngineCore died")


@pytest.mark.parametrize("end", [CLOSE, RESET])
async def test_a_stream_that_breaks_off_is_cut(end: str) -> None:
    trace = await ask(Script([HEAD, wrap(_say("a", 1)), 0.02, end]))
    assert trace.outcome == "cut"
    assert trace.detail
    assert trace.tokens == [1]


async def test_a_clean_end_without_usage_is_cut_too() -> None:
    trace = await ask(Script([HEAD, wrap(_say("a", 1)), END]))
    assert trace.outcome == "cut"
    assert trace.detail == "the stream ended without [DONE], a finish reason"


async def test_a_wrong_length_is_no_success() -> None:
    trace = await ask(Script(PLAIN), expect=4)
    assert (trace.outcome, trace.detail) == ("wrong-length", "3 output tokens, 4 were asked for")


async def test_an_http_error_carries_the_servers_words() -> None:
    body = b'{"error": {"message": "min_p is not supported", "code": 400}}'
    answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    trace = await ask(Script([answer]))
    assert (trace.outcome, trace.status, trace.detail) == ("http-error", 400, "min_p is not supported")


async def test_a_server_that_says_nothing_more_times_out() -> None:
    trace = await ask(Script([HEAD, wrap(_say("a", 1)), STALL]), timeout_s=0.3)
    assert trace.outcome == "timeout"
    assert trace.tokens == [1]


def test_nobody_there_is_refused() -> None:
    trace = stream(Target("127.0.0.1", free_port()), b"{}", expect=None, timeout_s=5)
    assert trace.outcome == "refused"
    assert trace.stamps == []


async def test_what_is_no_http_is_cut() -> None:
    trace = await ask(Script([b"hello, who is there?\r\n\r\n"]))
    assert trace.outcome == "cut"
    assert "HTTP" in trace.detail


async def test_a_trace_survives_its_journal() -> None:
    trace = await ask(Script(PLAIN))
    again = Trace.from_json(json.loads(json.dumps(trace.to_json())))
    assert again.tokens == trace.tokens
    assert again.tpot_s == pytest.approx(trace.tpot_s, abs=2e-6)


async def test_our_own_lateness_is_known_after_a_request() -> None:
    late = Lateness()
    assert late.p99() is None
    script = Script(events(_say("a", 1), 0.2, _say("b", 2, "length"), usage(2)))
    async with serving(script) as port:
        wires = Wires(Target("127.0.0.1", port), late)
        (trace,) = await asyncio.to_thread(wires.perform, [Asked(b"{}", 2, 20.0)])
    assert trace.ok
    found = late.p99()
    assert found is not None
    assert found >= 0
