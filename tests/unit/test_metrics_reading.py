"""Recorded pages give exactly the figures that independent arithmetic gives; absence is never a number."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from console.metrics import window
from console.metrics.reading import Distribution, Reading
from console.metrics.span import distribution, of_several_tokens
from console.metrics.vllm import Histogram
from tests.unit.metrics_pages import SECONDS, VERSIONS, as_version, counters, drop, expected, page, with_value


def reading(case: str, version: str | None = None) -> Reading:
    old, new = (page(case, which) if version is None else as_version(page(case, which), version) for which in (0, 1))
    return window.reading(counters(old, 100.0), counters(new, 100.0 + SECONDS[case]))


@pytest.mark.parametrize("case", ["prefix", "mtp"])
def test_every_expected_figure(case: str) -> None:
    want, got = expected(case), reading(case)
    exact = {
        "seconds": got.window_s,
        "requests": got.ttft_s.n,
        "ttft_mean_s": got.ttft_s.mean,
        "itl_mean_s": got.itl_s.mean,
        "itl_n": got.itl_s.n,
        "tpot_mean_s": got.tpot_s.mean,
        "e2e_mean_s": got.e2e_s.mean,
        "queue_mean_s": got.queue_s.mean,
        "generation_tokens_per_s": got.generation_tokens_per_s,
        "prompt_tokens_per_s": got.prompt_tokens_per_s,
        "prefix_hit_rate": got.prefix_cache.hit_rate,
        "cached_tokens": got.prefix_cache.cached_tokens,
        "computed_tokens": got.prefix_cache.computed_tokens,
        "prefill_tokens_per_s": got.prefill_tokens_per_s,
    }
    for name, value in exact.items():
        assert value == pytest.approx(want[name], abs=6e-4 if name.endswith("per_s") else 6e-7), name


def test_acceptance_and_positions_of_mtp() -> None:
    want, got = expected("mtp")["mtp"], reading("mtp").mtp
    assert got is not None
    assert got.acceptance_rate == pytest.approx(want["acceptance_rate"], abs=6e-7)
    assert got.mean_acceptance_length == pytest.approx(want["mean_acceptance_length"], abs=6e-7)
    assert got.per_position == pytest.approx(want["per_position"], abs=6e-7)
    assert got.drafts == want["drafts"]
    assert reading("prefix").mtp is None


def test_gap_and_time_per_token_are_two_numbers() -> None:
    got = reading("mtp")
    assert got.itl_s.mean == pytest.approx(0.053, abs=1e-3)
    assert got.tpot_s.mean == pytest.approx(0.019, abs=1e-3)


def test_client_and_server_agree() -> None:
    for case in ("prefix", "mtp"):
        seen, got = expected(case)["client"], reading(case)
        assert got.ttft_s.mean == pytest.approx(seen["ttft_mean_s"], abs=0.015)
        assert got.itl_s.mean == pytest.approx(seen["gap_mean_s"], rel=0.05)
        assert got.tpot_s.mean == pytest.approx(seen["tpot_mean_s"], rel=0.05)


def test_prefix_caching_off_is_not_no_hits() -> None:
    off = reading("mtp").prefix_cache
    assert (off.enabled, off.hit_rate, off.hit_rate_lifetime) == (False, None, None)
    # On, but nothing was found.
    names = ("vllm:prefix_cache_hits_total", "vllm:prompt_tokens_cached_total")
    pages = [page("prefix", which) for which in (0, 1)]
    for name in names:
        pages = [with_value(text, name, "0.0") for text in pages]
    pages = [drop(drop(text, "prompt_tokens_by_source"), "request_prefill_kv_computed_tokens") for text in pages]
    miss = window.reading(counters(pages[0], 0.0), counters(pages[1], 6.0)).prefix_cache
    assert (miss.enabled, miss.hit_rate, miss.cached_tokens, miss.computed_tokens) == (True, 0.0, 0, 41930)
    # On, and nothing was asked.
    same = counters(page("prefix", 1), 0.0)
    idle = window.reading(same, counters(page("prefix", 1), 30.0)).prefix_cache
    assert (idle.enabled, idle.hit_rate, idle.cached_tokens) == (True, None, 0)


def test_the_hit_rate_never_contradicts_the_tokens_beside_it() -> None:
    """Under load prompts were looked up in the window whose prefill ends after it."""
    old, new = counters(page("prefix", 0), 0.0), counters(page("prefix", 1), 6.0)
    assert new.prefix_queries is not None
    assert new.prefix_hits is not None
    ahead = replace(new, prefix_queries=new.prefix_queries + 9000, prefix_hits=new.prefix_hits + 8000)
    got = window.reading(old, ahead, old).prefix_cache
    assert (got.cached_tokens, got.computed_tokens) == (33280, 8650)
    assert got.hit_rate == got.hit_rate_lifetime == 33280 / (33280 + 8650)
    # Looked up, and not one prompt read yet: no rate rather than one of other prompts.
    waiting = replace(old, at=6.0, prefix_queries=(old.prefix_queries or 0) + 9000)
    assert window.reading(old, waiting).prefix_cache.hit_rate is None


def test_an_idle_window_has_no_figures_and_lifetime_does_not_fill_in() -> None:
    busy = page("mtp", 1)
    got = window.reading(counters(busy, 10.0), counters(busy, 40.0), counters(page("mtp", 0)))
    for each in (got.ttft_s, got.itl_s, got.tpot_s, got.e2e_s, got.queue_s):
        assert each == Distribution()
    assert (got.generation_tokens_per_s, got.prompt_tokens_per_s, got.prefill_tokens_per_s) == (0.0, 0.0, None)
    assert got.mtp is not None
    assert (got.mtp.acceptance_rate, got.mtp.mean_acceptance_length, got.mtp.per_position, got.mtp.drafts) == (
        None,
        None,
        None,
        0,
    )


def test_one_page_gives_gauges_only() -> None:
    got = window.reading(None, counters(page("mtp", 1), 5.0))
    assert (got.window_s, got.running, got.waiting, got.kv_used) == (None, 0, 0, 0.0)
    assert (got.ttft_s, got.generation_tokens_per_s, got.preemptions) == (Distribution(), None, None)
    assert got.prefix_cache.block_tokens == 256
    assert got.mtp is not None
    assert got.mtp.acceptance_rate is None


def test_lifetime_counts_from_its_base() -> None:
    first, last = counters(page("prefix", 0)), counters(page("prefix", 1), 6.009)
    since_canary, whole = window.lifetime(last, first), window.lifetime(last)
    assert (since_canary.window_s, since_canary.generation_tokens_per_s) == (None, None)
    assert (since_canary.ttft_s.n, whole.ttft_s.n) == (12, 13)
    assert since_canary.prefix_cache.hit_rate == pytest.approx(0.793704, abs=6e-7)
    assert whole.prefix_cache.hit_rate == pytest.approx(33280 / 45426)
    live = window.reading(first, last, first).prefix_cache
    assert live.hit_rate_lifetime == live.hit_rate
    # A base of a former process does not count.
    former = counters(with_value(page("prefix", 0), "process_start_time_seconds", "1.0"))
    assert window.lifetime(last, former) == whole


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", ["prefix", "mtp"])
def test_names_of_older_versions(case: str, version: str) -> None:
    now, then = reading(case), reading(case, version)
    assert (then.ttft_s, then.itl_s, then.e2e_s, then.queue_s) == (now.ttft_s, now.itl_s, now.e2e_s, now.queue_s)
    assert (then.kv_used, then.running, then.waiting) == (now.kv_used, now.running, now.waiting)
    assert then.mtp == now.mtp
    assert then.prefix_cache.hit_rate == now.prefix_cache.hit_rate
    assert then.generation_tokens_per_s == now.generation_tokens_per_s
    old_tpot = version in ("0.10", "0.8.5")
    assert then.tpot_s == (Distribution() if old_tpot else now.tpot_s)
    # The renamed page still says in its help line that hits are tokens; of one that says blocks see the names' test.
    assert then.prefix_cache.cached_tokens == now.prefix_cache.cached_tokens
    assert then.prefix_cache.computed_tokens == now.prefix_cache.computed_tokens
    assert then.prefill_tokens_per_s == pytest.approx(now.prefill_tokens_per_s)


def test_a_hit_counter_that_stays_zero_on_a_hybrid_model_is_cross_checked() -> None:
    for version in ("0.18", "0.15"):
        pages = [as_version(page("prefix", which), version) for which in (0, 1)]
        pages = [with_value(text, "vllm:prefix_cache_hits_total", "0.0") for text in pages]
        got = window.reading(counters(pages[0], 0.0), counters(pages[1], 6.0)).prefix_cache
        assert got.hit_rate == pytest.approx(0.793704, abs=6e-7), version
        assert (got.cached_tokens, got.computed_tokens) == (33280, 8650), version


def test_absent_series_are_unknown_and_not_zero() -> None:
    gone = ("kv_cache_usage_perc", "num_requests_running", "generation_tokens", "prompt_tokens", "cache_config_info")
    pages = [page("mtp", which) for which in (0, 1)]
    for name in (*gone, "spec_decode_num_accepted_tokens_per_pos"):
        pages = [drop(text, name) for text in pages]
    got = window.reading(counters(pages[0], 0.0), counters(pages[1], 9.0))
    assert (got.kv_used, got.running, got.generation_tokens_per_s, got.prompt_tokens_per_s) == (None, None, None, None)
    assert (got.prefix_cache.enabled, got.prefix_cache.block_tokens) == (None, None)
    assert got.mtp is not None
    assert (got.mtp.per_position, got.mtp.drafts) == (None, 204)


def test_answers_of_one_token_have_no_time_per_token() -> None:
    """vLLM counts them as 0 s: alone they are no measure, among others they would halve the mean."""
    one = Histogram(((1.0, 1.0), (2.0, 1.0), (math.inf, 1.0)), 1, 1.0)
    none = Histogram(((0.01, 1.0), (math.inf, 1.0)), 1, 0.0)
    assert distribution(of_several_tokens(none, one)) == Distribution()
    assert distribution(of_several_tokens(none, None)) == Distribution()
    both = Histogram(((1.0, 1.0), (2.0, 1.0), (math.inf, 2.0)), 2, 101.0)
    times = Histogram(((0.01, 1.0), (0.1, 2.0), (math.inf, 2.0)), 2, 0.05)
    got = distribution(of_several_tokens(times, both))
    assert (got.n, got.mean) == (1, 0.05)
    # Requests that are not the same ones tell nothing.
    assert of_several_tokens(times, one) == times


def test_more_accepted_than_drafted_is_no_acceptance() -> None:
    old, new = counters(page("mtp", 0), 100.0), counters(page("mtp", 1), 190.0)
    drafted = new.spec_draft_tokens
    assert drafted is not None
    got = window.reading(old, replace(new, spec_accepted_tokens=drafted + 10**6)).mtp
    assert got is not None
    assert (got.acceptance_rate, got.mean_acceptance_length) == (None, None)
    per_position = new.spec_accepted_per_pos
    assert per_position is not None
    odd = window.reading(old, replace(new, spec_accepted_per_pos=(10**9, *per_position[1:]))).mtp
    assert odd is not None
    assert odd.per_position is None


def test_more_hits_than_prompt_tokens_leave_nothing_computed_that_is_known() -> None:
    text = as_version(page("prefix", 1), "0.10")
    whole = counters(with_value(text, "vllm:prefix_cache_hits_total", "1e12"), 100.0)
    assert whole.computed_tokens is None
    assert window.lifetime(whole).prefix_cache.hit_rate is None


def test_lookups_of_other_requests_than_the_prompt_tokens_are_not_set_against_them() -> None:
    old = replace(counters(page("prefix", 0), 100.0), cached_by_hits=True, cached_tokens=0, computed_tokens=0)
    base = replace(old, prompt_tokens=0, prefix_queries=0, prefix_hits=0)
    after = replace(base, at=130.0, prompt_tokens=1000, prefix_queries=2000, prefix_hits=1000, cached_tokens=1000)
    got = window.reading(base, after).prefix_cache
    assert (got.hit_rate, got.cached_tokens, got.computed_tokens) == (0.5, 1000, None)
