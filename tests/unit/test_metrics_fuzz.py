"""Pages damaged at random: a MetricsError or figures that the page really holds, nothing else."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import astuple

from hypothesis import given, settings
from hypothesis import strategies as st

from console.metrics import window
from console.metrics.exposition import MetricsError
from console.metrics.names import WANTED
from console.metrics.vllm import Counters
from tests.unit.metrics_pages import counters, page

LINES = tuple(line for line in page("mtp", 1).splitlines(True) if line.partition("{")[0] in WANTED)
BEFORE = counters(page("mtp", 0), 0.0)
TRUE = counters(page("mtp", 1), 9.0)
COUNTS = ("prompt_tokens", "generation_tokens", "spec_drafts", "spec_draft_tokens", "spec_accepted_tokens", "running")
HISTOGRAMS = ("ttft", "itl", "tpot", "e2e", "queue", "prefill", "prefill_computed")


def read(text: str, at: float = 9.0) -> Counters | None:
    try:
        return counters(text, at)
    except MetricsError:
        return None


def numbers(value: object) -> Iterator[float]:
    if isinstance(value, tuple | list):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, int | float):
        yield value


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_any_text(text: str) -> None:
    read(text)
    read("vllm:num_requests_running " + text)
    read("vllm:num_requests_running{" + text + "\n")
    read(f"vllm:num_requests_running 1\nvllm:time_to_first_token_seconds_bucket{{le={text!r}}} 1\n")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, unique=True))
def test_lines_lost_and_shuffled(lines: list[str]) -> None:
    got = read("".join(lines))
    # Without a single series of vLLM it is not its page.
    assert (got is not None) == any(line.startswith("vllm:") for line in lines)
    if got is None:
        return
    for name in (*COUNTS, "kv_used"):
        assert getattr(got, name) in (None, getattr(TRUE, name)), name
    for name in HISTOGRAMS:
        found, true = getattr(got, name), getattr(TRUE, name)
        assert found is None or (found.count, found.sum) == (true.count, true.sum), name
        # Fewer buckets are wider bounds: less is known, nothing is invented.
        assert found is None or set(found.buckets) <= set(true.buckets), name


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(LINES), st.floats() | st.integers()), max_size=8),
    st.lists(st.tuples(st.integers(0, 50_000), st.characters()), max_size=4),
)
def test_values_and_characters_replaced(values: list[tuple[str, float]], characters: list[tuple[int, str]]) -> None:
    text = page("mtp", 1)
    for line, value in values:
        text = text.replace(line, f"{line.rpartition(' ')[0]} {value}\n")
    for at, character in characters:
        text = text[:at] + character + text[at + 1 :]
    got = read(text)
    if got is None:
        return
    for reading in (window.reading(BEFORE, got, BEFORE), window.reading(None, got), window.lifetime(got)):
        assert all(math.isfinite(value) and value >= 0 for value in numbers(astuple(reading)))
        fractions = (reading.kv_used, reading.prefix_cache.hit_rate, reading.prefix_cache.hit_rate_lifetime)
        assert all(fraction is None or fraction <= 1 for fraction in fractions)
    window.last_requests(BEFORE, got, 10.0)
