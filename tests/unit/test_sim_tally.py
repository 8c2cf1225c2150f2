"""The stand-in's counters agree with what its scheduler did."""

from __future__ import annotations

import pytest

from console.sim.batch import Limits, Output, Request
from console.sim.exposition import Family, Histogram, labels, page
from console.sim.families import bounds
from console.sim.options import Options, parse
from console.sim.scheduler import Scheduler
from console.sim.tally import Tally
from console.sim.timing import Build, Timing


def options(*flags: str) -> Options:
    return parse(["model", "--kv-cache-dtype", "fp8", *flags], {})


def request(prompt: int, answer: int, name: str = "r", start: int = 0) -> Request:
    tokens = list(range(start, start + prompt))
    return Request(id=name, prompt=tokens, max_tokens=answer, write=lambda count: [7] * count)


def live(drafts: int, *arrivals: tuple[float, Request]) -> tuple[Tally, list[Output]]:
    """Run requests to their ends in virtual time, counting as the engine does."""
    flags = ("--speculative-config", f'{{"method":"mtp","num_speculative_tokens":{drafts}}}') if drafts else ()
    tally = Tally(options(*flags), created=0.0)
    scheduler = Scheduler(Limits(drafts=drafts), Timing(Build(drafts=drafts), 1), 1)
    outputs: list[Output] = []
    now = 0.0
    pending = list(arrivals)
    while pending or scheduler.busy:
        while pending and pending[0][0] <= now:
            scheduler.add(pending[0][1], pending.pop(0)[0])
        step = scheduler.plan(now)
        if step is None:
            now = pending[0][0]
            continue
        now += step.seconds
        found = scheduler.finish(step, now)
        tally.step(scheduler, found, now)
        outputs += found
    return tally, outputs


def test_tokens_requests_and_cache_hits_are_counted_once() -> None:
    requests = [request(5000, 30, "a"), request(5000, 20, "b"), request(100, 1, "c", 9000)]
    tally, outputs = live(0, *((n * 20.0, one) for n, one in enumerate(requests)))
    assert tally.value("generation_tokens") == 51 == sum(len(output.tokens) for output in outputs)
    assert tally.value("prompt_tokens") == 10_100
    assert tally.value("prefix_cache_queries") == 10_100
    assert tally.value("prefix_cache_hits") == tally.value("prompt_tokens_cached") == 4800
    assert tally.value("prompt_tokens_by_source", source="local_compute") == 5300
    assert tally.value("prompt_tokens_by_source", source="local_cache_hit") == 4800
    assert tally.value("request_success", finished_reason="length") == 3
    assert tally.value("time_to_first_token_seconds") == 3
    assert tally.value("inter_token_latency_seconds") == 51 - 3
    assert tally.value("request_prefill_kv_computed_tokens") == 3
    assert tally.value("num_requests_running") == tally.value("kv_cache_usage_perc") == 0


def test_with_speculation_there_is_one_gap_a_step_and_one_draft_a_gap() -> None:
    tally, outputs = live(2, (0.0, request(200, 500)))
    assert tally.value("inter_token_latency_seconds") == tally.value("spec_decode_num_drafts") == len(outputs) - 1
    assert tally.value("spec_decode_num_draft_tokens") == 2 * (len(outputs) - 1)
    by_position = [tally.value("spec_decode_num_accepted_tokens_per_pos", position=str(n)) for n in (0, 1)]
    assert sum(by_position) == tally.value("spec_decode_num_accepted_tokens")
    assert by_position[0] > by_position[1] > 0


def test_times_of_a_request_add_up() -> None:
    one = request(5000, 50)
    tally, _ = live(0, (1.0, one))
    sums = {name: histogram_sum(tally, name) for name in TIMES}
    assert sums["e2e_request_latency_seconds"] == pytest.approx(
        sums["request_queue_time_seconds"] + sums["request_inference_time_seconds"]
    )
    assert sums["request_inference_time_seconds"] == pytest.approx(
        sums["request_prefill_time_seconds"] + sums["request_decode_time_seconds"]
    )
    assert sums["request_time_per_output_token_seconds"] == pytest.approx(sums["request_decode_time_seconds"] / 49)
    assert sums["inter_token_latency_seconds"] == pytest.approx(sums["request_decode_time_seconds"])


TIMES = (
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_time_per_output_token_seconds",
    "inter_token_latency_seconds",
)


def histogram_sum(tally: Tally, name: str) -> float:
    (line,) = [line for line in tally.page().splitlines() if line.startswith(f"vllm:{name}_sum")]
    return float(line.rpartition(" ")[2])


def test_no_token_counter_moves_during_a_chunked_prefill() -> None:
    tally = Tally(options(), created=0.0)
    scheduler = Scheduler(Limits(), Timing(Build(), 1), 1)
    scheduler.add(request(20_000, 5), 0.0)
    used = [0.0]
    for _ in range(5):
        step = scheduler.plan(0.0)
        assert step is not None
        tally.step(scheduler, scheduler.finish(step, 1.0), 1.0)
        used.append(tally.value("kv_cache_usage_perc"))
    assert used == sorted(set(used))
    assert tally.value("prompt_tokens") == tally.value("generation_tokens") == 0
    assert tally.value("iteration_tokens_total") == 0


def test_bucket_bounds_are_vllms_unless_the_user_gives_finer_ones() -> None:
    own = options("--custom-histogram-buckets", '{"inter_token_latency": [0.002, 0.004]}', "--max-model-len", "32768")
    assert bounds("inter_token_latency", own) == [0.002, 0.004]
    assert bounds("time_to_first_token", own)[0] == 0.001
    assert bounds("request_tokens", own)[-1] == 20_000
    text = Tally(own, created=0.0).page()
    assert 'vllm:request_time_per_output_token_seconds_bucket{engine="0",le="0.004",model_name="model"} 0.0' in text


def test_a_page_is_written_as_prometheus_writes_it() -> None:
    histogram = Histogram([0.1, 1])
    for value in (0.05, 0.1, 5.0):
        histogram.observe(value)
    families = [
        Family("hits", "counter", "Hits.", {labels(b="2", a='x"y'): 3.0}, created=5.0),
        Family("took", "histogram", "Took.", {(): histogram}),
    ]
    assert page(families).splitlines() == [
        "# HELP hits_total Hits.",
        "# TYPE hits_total counter",
        'hits_total{a="x\\"y",b="2"} 3.0',
        "# HELP hits_created Hits.",
        "# TYPE hits_created gauge",
        'hits_created{a="x\\"y",b="2"} 5.0',
        "# HELP took Took.",
        "# TYPE took histogram",
        'took_bucket{le="0.1"} 2.0',
        'took_bucket{le="1.0"} 2.0',
        'took_bucket{le="+Inf"} 3.0',
        "took_count 3.0",
        "took_sum 5.15",
    ]
