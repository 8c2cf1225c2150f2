"""The stand-in's scheduling: chunks in whole blocks, prefix reuse, starvation, preemption, all in virtual time."""

from __future__ import annotations

import pytest

from console.sim.batch import COLLAPSE_AT, Limits, Request, Step
from console.sim.blocks import Blocks, Holding, chain
from console.sim.scheduler import Scheduler, drive
from console.sim.timing import Build, Timing

BLOCK = 1600


def words(count: int) -> list[int]:
    return [7] * count


def request(prompt: list[int], answer: int = 4, name: str = "r", salt: str = "", natural: int = 1 << 60) -> Request:
    return Request(id=name, prompt=prompt, max_tokens=answer, write=words, salt=salt, natural=natural)


def engine(limits: Limits | None = None, seed: int = 1) -> Scheduler:
    limits = limits or Limits()
    return Scheduler(limits, Timing(Build(drafts=limits.drafts), seed), seed)


def run(scheduler: Scheduler, *requests: Request) -> None:
    """One request after the other."""
    for number, one in enumerate(requests):
        drive(scheduler, [(number * 1000.0, one)])


def chunks(scheduler: Scheduler, one: Request) -> list[int]:
    """The prefill chunks of a request, in order, up to its first token."""
    scheduler.add(one, 0.0)
    found = []
    now = 0.0
    while one.first is None:
        step = scheduler.plan(now)
        assert step is not None
        found += [piece.tokens for piece in step.prefill if piece.request is one]
        now += step.seconds
        scheduler.finish(step, now)
    return found


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (1600, [1600, 1600, 1600, 200]),
        (2048, [1600, 1600, 1600, 200]),
        (3200, [3200, 1600, 200]),
        (8192, [4800, 200]),
        # A block wider than the budget advances in parts and stops at each boundary.
        (1024, [1024, 576, 1024, 576, 1024, 576, 200]),
    ],
)
def test_prefill_ends_where_state_can_be_kept(budget: int, expected: list[int]) -> None:
    assert chunks(engine(Limits(budget=budget)), request(list(range(5000)))) == expected


def test_without_prefix_caching_the_whole_budget_is_used() -> None:
    assert chunks(engine(Limits(prefix_caching=False)), request(list(range(5000)))) == [2048, 2048, 904]


@pytest.mark.parametrize(("budget", "first"), [(3200, 1600), (1600, 0)])
def test_a_decoding_stream_takes_a_block_from_the_prefill_or_starves_it(budget: int, first: int) -> None:
    scheduler = engine(Limits(budget=budget))
    stream, newcomer = request([1] * 50, 500, "stream"), request(list(range(8000)), name="newcomer")
    chunks(scheduler, stream)
    scheduler.add(newcomer, 1.0)
    step = scheduler.plan(1.0)
    assert step is not None
    assert sum(piece.tokens for piece in step.prefill) == first
    assert step.decode == (stream,)


def test_a_starved_prefill_goes_on_when_the_stream_has_ended() -> None:
    newcomer = request(list(range(4000)), name="newcomer")
    drive(engine(Limits(budget=1600)), [(0.0, request([1] * 50, 60, "stream")), (0.2, newcomer)])
    assert newcomer.finish == "length"


@pytest.mark.parametrize("prompt", [1500, 1601, 3200, 5000, 9600])
def test_a_repeated_prompt_hits_in_whole_blocks_and_never_all_of_it(prompt: int) -> None:
    first, second = request(list(range(prompt))), request(list(range(prompt)), name="again")
    run(engine(), first, second)
    assert first.cached == 0
    assert second.cached == (prompt - 1) // BLOCK * BLOCK


def test_another_salt_or_another_start_hits_nothing() -> None:
    scheduler = engine()
    other = request([99_999, *range(1, 5000)], name="other")
    salted = request(list(range(5000)), name="salted", salt="nonce")
    run(scheduler, request(list(range(5000))), other, salted)
    assert other.cached == salted.cached == 0


def test_a_coarse_chunk_keeps_no_state_in_between_until_a_second_prompt_asks_for_it() -> None:
    shared = list(range(5300))
    turns = [request([*shared, *[number] * 1500], name=f"t{number}") for number in range(100_000, 100_003)]
    run(engine(Limits(budget=8192)), *turns)
    assert [turn.cached for turn in turns] == [0, 0, 4800]


def test_speculation_computes_one_block_more() -> None:
    again = request(list(range(9700)), name="again")
    run(engine(Limits(drafts=2)), request(list(range(9700))), again)
    assert again.cached == 5 * BLOCK


def test_an_answer_becomes_part_of_the_next_turns_prefix() -> None:
    first = request(list(range(3000)), 3000)
    scheduler = engine()
    run(scheduler, first)
    second = request([*first.tokens, 5], name="second")
    run(scheduler, second)
    assert second.cached == 3 * BLOCK


def test_the_oldest_idle_prefix_is_forgotten_from_its_end_when_the_cache_is_full() -> None:
    scheduler = engine(Limits(kv_tokens=8 * BLOCK, max_len=8 * BLOCK))
    prompts = [list(range(start, start + 4810)) for start in (0, 10_000, 20_000)]
    kept, gone = request(prompts[2], name="kept"), request(prompts[0], name="gone")
    run(scheduler, *(request(prompt) for prompt in prompts), kept, gone)
    assert kept.cached == 3 * BLOCK
    assert gone.cached == BLOCK


def test_cache_use_rises_during_a_chunked_prefill_and_falls_at_the_end() -> None:
    scheduler = engine()
    one = request(list(range(20_000)))
    scheduler.add(one, 0.0)
    used = []
    now = 0.0
    while one.finish is None:
        step = scheduler.plan(now)
        assert step is not None
        used.append(scheduler.kv_used)
        now += step.seconds
        scheduler.finish(step, now)
    assert used == sorted(used)
    assert used[-1] > 5 * used[0] > 0
    assert scheduler.kv_used == 0


def test_no_more_requests_run_than_allowed_and_the_others_wait_their_turn() -> None:
    scheduler = engine(Limits(streams=2))
    requests = [request([number] * 100, 20, f"r{number}") for number in range(5)]
    for one in requests:
        scheduler.add(one, 0.0)
    scheduler.plan(0.0)
    assert [len(scheduler.running), len(scheduler.waiting)] == [2, 3]
    drive(scheduler, [])
    starts = [one.scheduled for one in requests]
    assert all(start is not None for start in starts)
    assert starts == sorted(start for start in starts if start is not None)


def test_a_full_cache_sends_the_youngest_back_and_everybody_ends() -> None:
    scheduler = engine(Limits(kv_tokens=8 * BLOCK, max_len=8 * BLOCK, streams=3))
    requests = [request([number] * 3000, 4000, f"r{number}") for number in range(3)]
    drive(scheduler, [(0.0, one) for one in requests])
    assert [one.generated for one in requests] == [4000] * 3
    assert requests[0].preemptions == 0
    assert requests[2].preemptions > 0
    assert scheduler.admissions.preemptions == sum(one.preemptions for one in requests)
    assert scheduler.kv_used == 0


def test_an_answer_ends_by_itself_unless_told_to_go_on() -> None:
    short, going = request([1] * 10, 50, natural=20), request([2] * 10, 50, "going", natural=20)
    going.ignore_eos = True
    run(engine(Limits(drafts=2)), short, going)
    assert (short.generated, short.finish) == (20, "stop")
    assert (going.generated, going.finish) == (50, "length")


def test_the_context_ends_an_answer() -> None:
    one = request(list(range(4000)), 10_000)
    run(engine(Limits(max_len=4100)), one)
    assert (one.generated, one.finish) == (100, "length")


def test_a_draft_yields_one_to_all_of_its_tokens_and_one() -> None:
    outputs = drive(engine(Limits(drafts=3)), [(0.0, request([1] * 10, 800))])
    counts = [len(output.tokens) for output in outputs]
    assert counts[0] == 1
    assert set(counts[1:-1]) == {1, 2, 3, 4}
    assert sum(counts) == 800
    drafts = [output.draft for output in outputs if output.draft]
    assert len(drafts) == len(counts) - 1
    assert all(draft.tokens == 3 and draft.accepted >= 0 for draft in drafts)


def test_acceptance_can_collapse_when_a_request_crosses_the_position() -> None:
    scheduler = engine(Limits(drafts=2, collapse=True))
    outputs = drive(scheduler, [(0.0, request(list(range(COLLAPSE_AT - 300)), 600))])
    drafts = [output.draft.accepted for output in outputs if output.draft]
    assert max(drafts[:50]) == 2
    assert max(drafts[-100:]) == 0


def test_a_request_may_leave_while_it_waits_or_while_its_step_runs() -> None:
    scheduler = engine(Limits(streams=1))
    running, waiting = request(list(range(5000))), request([5] * 10, name="waiting")
    scheduler.add(running, 0.0)
    scheduler.add(waiting, 0.0)
    step = scheduler.plan(0.0)
    assert isinstance(step, Step)
    assert scheduler.abort(running)
    assert scheduler.abort(waiting)
    assert scheduler.finish(step, 1.0) == []
    assert not scheduler.busy
    assert scheduler.kv_used == 0
    assert not scheduler.abort(running)


def test_the_same_seed_gives_the_same_hours() -> None:
    def life(seed: int) -> list[tuple[float | None, int]]:
        arrivals = [(n * 3.0, request(list(range(n, n + 3000)), 200, f"r{n}")) for n in range(12)]
        outputs = drive(engine(Limits(drafts=2, streams=4), seed), arrivals)
        return [(output.request.last, len(output.tokens)) for output in outputs]

    assert life(1) == life(1)
    assert life(1) != life(2)


def test_a_chain_of_keys_tells_prefixes_apart() -> None:
    one, two = chain(range(40), 10, ""), chain([*range(20), *range(120, 140)], 10, "")
    assert len(one) == 4
    assert one[:2] == two[:2]
    assert not set(one[2:]) & set(two[2:])
    assert chain(range(40), 10, "", one[:3]) == one
    assert chain(range(9), 10, "") == []


def test_twins_that_compute_one_block_at_once_both_give_their_room_back() -> None:
    blocks = Blocks(10)
    holdings = [Holding(), Holding()]
    keys = chain(range(20), 10, "")
    for holding in holdings:
        assert blocks.take(holding, [], 2)
    for holding in holdings:
        blocks.fill(holding, keys, 2)
    assert blocks.used == 0.4
    assert blocks.match(keys).hit == 2
    for holding in holdings:
        blocks.release(holding)
    assert blocks.used == 0
    assert blocks.match(keys).hit == 2
