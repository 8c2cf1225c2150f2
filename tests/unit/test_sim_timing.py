"""The stand-in's speed against the figures reported for two RTX 5060 Ti, in virtual time."""

from __future__ import annotations

import random
import statistics

import pytest

from console.sim.batch import Limits, Output, Request
from console.sim.scheduler import Scheduler, drive
from console.sim.timing import ACCEPTANCE, REFERENCE_PROMPT, Build, Chunk, Timing, accepted, linear


def words(count: int) -> list[int]:
    return [7] * count


def request(prompt: int, answer: int, name: str = "r", start: int = 0) -> Request:
    tokens = list(range(start, start + prompt))
    return Request(id=name, prompt=tokens, max_tokens=answer, write=words)


def engine(limits: Limits, build: Build | None = None, seed: int = 1) -> Scheduler:
    return Scheduler(limits, Timing(build or Build(drafts=limits.drafts), seed), seed)


def first_token(outputs: list[Output]) -> float:
    first = outputs[0].request.first
    assert first is not None
    return first


def rate(outputs: list[Output]) -> float:
    """Tokens a second after the first one."""
    one = outputs[0].request
    assert one.first is not None
    assert one.last is not None
    return (one.generated - 1) / (one.last - one.first)


@pytest.mark.parametrize(("budget", "reported"), [(512, 886.6), (1024, 912.5), (1600, 921.6), (2048, 952.5)])
def test_prefill_runs_at_the_reported_rate_for_each_chunk_budget(budget: int, reported: float) -> None:
    limits = Limits(budget=budget, prefix_caching=False, max_len=122_880)
    scheduler = engine(limits)
    outputs = drive(scheduler, [(0.0, request(REFERENCE_PROMPT, 1))])
    boot = Timing(Build(), 1).boot_factor
    assert REFERENCE_PROMPT / first_token(outputs) * boot == pytest.approx(reported, rel=0.01)


def test_with_prefix_caching_a_budget_of_2048_prefills_as_1600() -> None:
    times = [
        first_token(drive(engine(Limits(budget=budget, max_len=122_880)), [(0.0, request(REFERENCE_PROMPT, 1))]))
        for budget in (1600, 2048)
    ]
    assert times[0] == pytest.approx(times[1], rel=0.005)


@pytest.mark.parametrize(("drafts", "low", "high"), [(0, 32.5, 34.5), (2, 73.0, 79.0), (3, 65.5, 71.0)])
def test_decode_runs_at_the_reported_rate(drafts: int, low: float, high: float) -> None:
    rates = [
        rate(drive(engine(Limits(drafts=drafts), seed=seed), [(0.0, request(200, 2000))]))
        * Timing(Build(drafts=drafts), seed).boot_factor
        for seed in range(5)
    ]
    assert low < statistics.mean(rates) < high


def test_speculation_widens_the_gap_while_it_shortens_the_time_a_token() -> None:
    plain, drafted = (drive(engine(Limits(drafts=drafts)), [(0.0, request(200, 1000))]) for drafts in (0, 2))
    gaps = [statistics.mean(output.gap for output in outputs[1:] if output.gap) for outputs in (plain, drafted)]
    assert gaps[1] > gaps[0] * 1.05
    assert rate(drafted) > rate(plain) * 2


def test_more_streams_give_more_tokens_but_less_than_in_proportion() -> None:
    speeds = []
    for streams in (1, 4, 16):
        arrivals = [(0.0, request(100, 400, f"r{n}", n * 1000)) for n in range(streams)]
        outputs = drive(engine(Limits()), arrivals)
        speeds.append(400 * streams / max(output.request.last or 0 for output in outputs))
    assert speeds[0] < speeds[1] < speeds[2]
    assert speeds[1] < 4 * speeds[0] * 0.95
    assert speeds[2] < 4 * speeds[1] * 0.8


def test_a_prefill_chunk_holds_the_decoding_streams_up() -> None:
    stream, newcomer = request(100, 400, "stream"), request(8000, 1, "newcomer", 10_000)
    outputs = drive(engine(Limits(budget=3200)), [(0.0, stream), (2.0, newcomer)])
    gaps = [output.gap for output in outputs if output.request is stream and output.gap]
    assert max(gaps) > 1.0
    assert statistics.median(gaps) < 0.04


def test_one_boot_repeats_itself_and_boots_differ_by_a_few_percent() -> None:
    def boot(seed: int) -> float:
        return rate(drive(engine(Limits(), seed=seed), [(0.0, request(100, 300))]))

    assert boot(3) == boot(3)
    rates = [boot(seed) for seed in range(40)]
    assert 0.008 < statistics.stdev(rates) / statistics.mean(rates) < 0.022


def test_runs_within_a_boot_differ_by_about_a_fifth_of_a_percent() -> None:
    arrivals = [(n * 60.0, request(100, 300, f"r{n}", n * 1000)) for n in range(20)]
    outputs = drive(engine(Limits()), arrivals)
    ends = {output.request.id: output.request for output in outputs}.values()
    rates = [rate([Output(one, (), first=True, gap=None)]) for one in ends]
    assert len(rates) == 20
    assert 0.0005 < statistics.stdev(rates) / statistics.mean(rates) < 0.005


def test_acceptance_by_position_is_the_reported_kind() -> None:
    rng = random.Random(1)
    counts = [accepted(rng, 3, tail=False) for _ in range(20_000)]
    for position, share in enumerate(ACCEPTANCE[:3]):
        assert sum(count > position for count in counts) / len(counts) == pytest.approx(share, abs=0.01)
    assert statistics.mean(accepted(rng, 3, tail=True) for _ in range(5000)) > 2.7


def test_a_step_never_costs_less_than_reading_the_weights() -> None:
    assert linear(0) == 0.03
    assert linear(1) >= 0.03
    assert linear(4096) == pytest.approx(2 * linear(2048))


def test_a_slower_build_is_slower() -> None:
    plain, eager = Timing(Build(), 1), Timing(Build(eager=True), 1)
    marlin, single = Timing(Build(weight_only=True), 1), Timing(Build(tensor_parallel=1), 1)
    assert eager.ideal([], 1, 0) > plain.ideal([], 1, 0) + 0.005
    assert marlin.ideal([Chunk(1600, 0)], 0, 0) > 1.5 * plain.ideal([Chunk(1600, 0)], 0, 0)
    assert single.ideal([], 1, 0) > 1.6 * plain.ideal([], 1, 0)
