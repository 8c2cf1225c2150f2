"""Histograms: what samples cannot be, and what a bucket tells."""

from __future__ import annotations

import math

import pytest

from console.metrics import window
from console.metrics.span import distribution
from console.metrics.vllm import Histogram
from tests.unit.metrics_pages import counters, page


def histogram(**counts: float) -> Histogram:
    """A histogram by its upper bounds in ms, given the samples in each bucket; `inf` is the last one."""
    bounds = [(math.inf if name == "inf" else float(name[1:]) / 1000, count) for name, count in counts.items()]
    total, below, whole, buckets = 0.0, 0.0, 0.0, []
    for bound, count in bounds:
        total += count
        whole += count * (below + min(bound, 2 * below + 0.01)) / 2
        below = bound
        buckets.append((bound, total))
    return Histogram(tuple(buckets), total, whole)


@pytest.mark.parametrize(("count", "total"), [(10.0, 4000.0), (10.0, 0.2), (1.5, 1.0)])
def test_sums_that_samples_of_these_buckets_cannot_have_are_no_mean(count: float, total: float) -> None:
    garbled = distribution(Histogram(((0.1, 0.0), (0.25, count), (math.inf, count)), count, total))
    assert (garbled.mean, garbled.p50, garbled.p50_bounds) == (None, None, None)
    assert distribution(Histogram(((0.1, 0.0), (0.25, 10.0), (math.inf, 10.0)), 10.0, 2.0)).mean == 0.2


def test_a_quantile_only_where_its_bucket_is_narrow() -> None:
    wide = distribution(histogram(_10=5, _25=4, inf=1))
    assert (wide.p50, wide.p50_bounds) == (None, (0.0, 0.025))
    assert (wide.p99, wide.p99_bounds) == (None, (0.01, None))
    narrow = distribution(histogram(_100=0, _110=50, _120=50, inf=0))
    assert narrow.p50 == pytest.approx(0.11, abs=0.01)
    assert narrow.p50_bounds == (0.1, 0.12)
    assert narrow.p99 is not None
    assert 0.11 < narrow.p99 <= 0.12


def test_one_sample_is_known_exactly() -> None:
    one = distribution(Histogram(((0.5, 0.0), (1.0, 1.0), (math.inf, 1.0)), 1.0, 0.73))
    assert (one.n, one.mean, one.p50, one.p99, one.p50_bounds) == (1, 0.73, 0.73, 0.73, None)


def test_buckets_that_do_not_add_up_give_a_mean_and_no_quantile() -> None:
    text = "".join(
        line for line in page("mtp", 1).splitlines(True) if 'seconds_bucket{engine="0",le="+Inf"' not in line
    )
    got = window.lifetime(counters(text)).ttft_s
    assert (got.n, got.p50, got.p50_bounds) == (13, None, None)
    assert got.mean == pytest.approx(14.721034 / 13)
