"""Looks at random: no rule falls over, every notice is a whole sentence, and an episode begins once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from console.gpu.sample import GpuProcess, GpuReport, GpuSample
from console.metrics.reading import Distribution, LastRequests, Mtp, PrefixCache, Reading
from console.notices import Look, Watcher
from console.server.facts import StartupFacts
from console.server.status import ServerStatus, State

SHARE = st.none() | st.sampled_from((0.0, 0.04, 0.2, 0.5, 0.9, 1.0))
COUNT = st.none() | st.sampled_from((0, 1, 2, 30, 5000))
SIZE = st.none() | st.sampled_from((0, 90 * 2**20, 150 * 2**20, 2**34))
LAST = st.builds(LastRequests, st.just(1.0), st.integers(1, 9), st.none() | st.just(0.2), COUNT, COUNT, COUNT)
MTP = st.none() | st.builds(Mtp, SHARE, st.none() | st.just(2.0), st.none(), st.sampled_from((0, 30, 9000)))
READING = st.builds(
    Reading,
    window_s=st.none() | st.just(30.0),
    running=COUNT,
    waiting=COUNT,
    kv_used=SHARE,
    preemptions=COUNT,
    ttft_s=st.builds(Distribution, st.integers(0, 5)),
    generation_tokens_per_s=SHARE,
    prefix_cache=st.builds(PrefixCache, st.booleans(), SHARE, SHARE, COUNT, COUNT, st.none() | st.just(1600)),
    mtp=MTP,
    last=st.lists(LAST, max_size=3).map(tuple),
    refused_requests=COUNT,
)
CARD: st.SearchStrategy[GpuSample] = st.builds(
    GpuSample,
    index=st.integers(0, 1),
    name=st.none() | st.just("NVIDIA GeForce RTX 5060 Ti"),
    vram_used_bytes=SIZE,
    vram_total_bytes=SIZE,
    vram_free_bytes=SIZE,
    pcie_gen=COUNT,
    pcie_gen_max=COUNT,
    pcie_width=COUNT,
    pcie_width_max=COUNT,
    pcie_replays=COUNT,
    util=SHARE,
    throttle=st.none() | st.lists(st.sampled_from(("thermal", "power cap", "hw thermal")), max_size=2).map(tuple),
    processes=st.none()
    | st.lists(st.builds(GpuProcess, st.just(2**22 + 1), SIZE, st.booleans()), max_size=3).map(tuple),
    display=st.none() | st.booleans(),
    visible=st.none() | st.booleans(),
    problem=st.none() | st.just("fell off the bus"),
)
SEEN = st.fixed_dictionaries(
    {
        "status": st.builds(
            ServerStatus, st.sampled_from(State), pid=st.none() | st.integers(1, 2), note=st.none() | st.just("silent")
        ),
        "cards": st.none()
        | st.builds(
            GpuReport,
            st.just(0.0),
            st.lists(CARD, max_size=2, unique_by=lambda card: card.index).map(tuple),
            st.none() | st.just("no driver"),
        ),
        "reading": st.none() | READING,
        "lifetime": st.none() | READING,
        "facts": st.none() | st.builds(StartupFacts, mamba_mode=st.none() | st.just("align")),
        "log_errors": st.integers(0, 2),
        "log_error": st.just("ERROR something"),
        "measured": st.booleans(),
    }
)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from((0.5, 1.0, 20.0, 400.0)), SEEN), min_size=1, max_size=12))
def test_any_looks(looks: list[tuple[float, dict[str, Any]]]) -> None:
    watcher, at = Watcher(), 0.0
    before: frozenset[tuple[str, int]] = frozenset()
    for pause, seen in looks:
        at += pause
        notices = watcher.see(Look(at, **seen))
        told = frozenset((notice.id, notice.episode) for notice in notices)
        begun = frozenset((notice.id, notice.episode) for notice in watcher.begun)
        assert len(told) == len(notices)
        assert begun <= told - before
        for notice in notices:
            assert notice.what and notice.why and notice.fix, notice  # noqa: PT018 - one sentence each
            assert "None" not in notice.what + notice.why + notice.fix, notice
        before = told
