"""Pages that are odd: not a number, cut off, several engines, another process, no metrics at all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from console.metrics import window
from console.metrics.exposition import LIMIT_CHARS, MetricsError, parse
from console.metrics.span import Span, restarted
from console.metrics.vllm import Counters
from tests.unit.metrics_pages import add_engine, counters, drop, page, with_value


@pytest.mark.parametrize("odd", ["NaN", "+Inf", "-1.0", "1e300"])
def test_what_is_no_number_is_unknown(odd: str) -> None:
    for name, field in (
        ("vllm:generation_tokens_total", "generation_tokens"),
        ("vllm:kv_cache_usage_perc", "kv_used"),
        ("vllm:time_to_first_token_seconds_sum", "ttft"),
        ("vllm:spec_decode_num_accepted_tokens_per_pos_total", "spec_accepted_per_pos"),
        ("vllm:num_requests_running", "running"),
    ):
        assert getattr(counters(with_value(page("mtp", 1), name, odd)), field) is None, name


def test_kv_use_above_one_is_unknown() -> None:
    assert counters(with_value(page("mtp", 1), "vllm:kv_cache_usage_perc", "4.1")).kv_used is None


def test_several_engines_are_summed_and_fractions_averaged() -> None:
    text = with_value(page("mtp", 1), "vllm:kv_cache_usage_perc", "0.4")
    text = with_value(text, "vllm:num_requests_running", "2.0")
    both = add_engine(text)
    both = both.replace(
        'vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.4',
        'vllm:kv_cache_usage_perc{engine="1",model_name="tiny"} 0.2',
    )
    one, two = counters(text), counters(both)
    assert two.engines == 2
    assert two.kv_used == pytest.approx(0.3)
    assert (two.running, two.generation_tokens) == (4, 2 * 624)
    assert two.spec_accepted_per_pos == (416, 364)
    assert one.ttft is not None
    assert two.ttft is not None
    assert (two.ttft.count, two.ttft.sum) == (2 * one.ttft.count, 2 * one.ttft.sum)
    assert two.ttft.buckets == tuple((bound, 2 * count) for bound, count in one.ttft.buckets)


def test_an_engine_that_is_missing_in_one_series_makes_that_series_unknown() -> None:
    both = add_engine(page("mtp", 1))
    lines = [
        line
        for line in both.splitlines(True)
        if not line.startswith(('vllm:generation_tokens_total{engine="1"', 'vllm:kv_cache_usage_perc{engine="1"'))
    ]
    got = counters("".join(lines))
    assert (got.generation_tokens, got.kv_used, got.prompt_tokens) == (None, None, 2 * 45426)


def test_one_engine_of_several_that_began_anew_begins_the_window_anew() -> None:
    """The sum over both rises on: without a look at each of them it would give rates that nobody had."""
    old = counters(add_engine(page("mtp", 0)), 0.0)
    before = counters(page("mtp", 0)).generation_tokens
    assert before
    lines = add_engine(page("mtp", 1)).splitlines(True)
    anew = 'vllm:generation_tokens_total{engine="1",model_name="tiny"} '
    busy = anew.replace('engine="1"', 'engine="0"')
    lines = [f"{anew}{before - 1}.0\n" if line.startswith(anew) else line for line in lines]
    lines = [f"{busy}{10 * before}.0\n" if line.startswith(busy) else line for line in lines]
    new = counters("".join(lines), 9.0)
    assert new.generation_tokens is not None
    assert old.generation_tokens is not None
    assert new.generation_tokens > old.generation_tokens
    assert restarted(old, new)
    got = window.reading(old, new)
    assert (got.window_s, got.generation_tokens_per_s, got.ttft_s.n, got.running) == (None, None, 0, new.running)
    assert not restarted(old, counters(add_engine(page("mtp", 1)), 9.0))


def test_a_single_engine_is_not_counted_twice() -> None:
    assert not counters(page("mtp", 1)).parts


def test_another_number_of_engines_is_no_rise() -> None:
    old = counters(drop(page("mtp", 0), "x"), 0.0)
    new = counters(add_engine(page("mtp", 1)), 9.0)
    got = window.reading(old, new)
    assert (got.generation_tokens_per_s, got.ttft_s.n, got.mtp is not None and got.mtp.acceptance_rate) == (
        None,
        0,
        None,
    )


@pytest.mark.parametrize(
    ("label", "other"), [('model_name="tiny"', 'model_name="large"'), ('engine="0"', 'engine="1"')]
)
def test_as_many_series_of_another_model_or_engine_are_no_rise(label: str, other: str) -> None:
    old = counters(without_identity(page("mtp", 0)), 0.0)
    new = counters(without_identity(page("mtp", 1)).replace(label, other), 30.0)
    got = window.reading(old, new)
    assert (got.generation_tokens_per_s, got.prefix_cache.cached_tokens, got.ttft_s.n) == (None, None, 0)
    assert got.mtp is None or got.mtp.per_position is None
    assert window.last_requests(old, new, 30.0) is None


def few(model: str, engines: str, count: int) -> Counters:
    """A page of a version that tells cached tokens by the hits of lookups only."""
    lines = []
    for engine in engines:
        labels = f'{{engine="{engine}",model_name="{model}"}}'
        lines += [
            f"vllm:num_requests_running{labels} 1.0",
            f"vllm:prompt_tokens_total{labels} {count * 100}",
            f"vllm:prefix_cache_queries_total{labels} {count * 100}",
            f"vllm:prefix_cache_hits_total{labels} {count * 50}",
        ]
    return counters("".join(f"{line}\n" for line in lines), 30.0 if count > 10 else 0.0)


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        (("m", "0", 10), ("m", "0", 30), True),
        (("m", "0", 10), ("other", "0", 9000), False),
        (("m", "0", 10), ("m", "01", 20), False),
        (("m", "01", 10), ("m", "0", 9000), False),
    ],
)
def test_cached_tokens_that_hits_tell_are_of_one_model_and_the_same_engines(
    old: tuple[str, str, int], new: tuple[str, str, int], known: bool
) -> None:
    found = window.reading(few(*old), few(*new)).prefix_cache
    told = (1000, 1000, 0.5) if known else (None, None, None)
    assert (found.cached_tokens, found.computed_tokens, found.hit_rate) == told


def test_more_draft_positions_of_fewer_engines_are_no_rise() -> None:
    def positions(*series: tuple[int, int]) -> str:
        name = "vllm:spec_decode_num_accepted_tokens_per_pos_total"
        rows = "".join(f'{name}{{engine="{e}",model_name="tiny",position="{p}"}} 5.0\n' for e, p in series)
        return without_identity(drop(page("mtp", 1), "spec_decode_num_accepted_tokens_per_pos")) + rows

    old, new = counters(positions((0, 0), (0, 1), (1, 0), (1, 1))), counters(positions((0, 0), (0, 1), (0, 2), (0, 3)))
    assert Span(old, new).per_position() is None


def test_a_page_cut_off_loses_its_last_series_only() -> None:
    text = page("mtp", 1)
    whole = counters(text)
    at = text.index("vllm:generation_tokens_total{")
    cut = counters(text[: at + len('vllm:generation_tokens_total{engine="0",model_name="tiny"} 62')])
    assert (cut.generation_tokens, cut.prompt_tokens) == (None, whole.prompt_tokens)
    assert (cut.ttft, cut.running, cut.spec_drafts) == (None, 0, 221)


@pytest.mark.parametrize("engines", [1, 2])
def test_a_page_cut_anywhere_never_gives_another_number(engines: int) -> None:
    text = page("mtp", 1) if engines == 1 else add_engine(page("mtp", 1))
    whole = counters(text)
    start = text.index("vllm:")
    for end in range(start + 200, len(text), 577):
        try:
            cut = counters(text[:end])
        except MetricsError:
            continue
        for field in ("generation_tokens", "prompt_tokens", "cached_tokens", "spec_draft_tokens", "running", "kv_used"):
            assert getattr(cut, field) in (None, getattr(whole, field)), (end, field)
        for field in ("ttft", "itl", "tpot", "prefill_computed"):
            assert getattr(cut, field) in (None, getattr(whole, field)), (end, field)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<!DOCTYPE html><html><body>It works</body></html>", "HTML"),
        ("\n  <html>vllm:num_requests_running 1\n</html>", "HTML"),
        ("", "no series"),
        ("just words\n", "no series"),
        ("# TYPE up gauge\nup 1.0\n", "no series"),
        ('vllm:num_requests_running{engine="0" 1.0\n', "Prometheus"),
        ("vllm:num_requests_running words\n", "Prometheus"),
        ("vllm:x 1\n" * 60_000, "series"),
        ("vllm:num_requests_running 1\n" + "#" * LIMIT_CHARS, "larger"),
    ],
)
def test_what_is_no_page_of_vllm_is_a_sentence(text: str, words: str) -> None:
    with pytest.raises(MetricsError) as caught:
        parse(text)
    assert words in caught.value.why
    assert caught.value.what
    assert caught.value.fix


def test_a_restart_begins_a_new_window() -> None:
    old = counters(page("mtp", 1), 10.0)
    for text in (
        page("mtp", 0),  # Counters fell.
        with_value(page("mtp", 1), "process_start_time_seconds", "1.7959599e+09"),
        with_value(page("mtp", 1), "vllm:generation_tokens_created", "1.7959599e+09"),
    ):
        new = counters(text, 40.0)
        assert restarted(old, new)
        got = window.reading(old, new)
        assert (got.window_s, got.ttft_s.n, got.generation_tokens_per_s) == (None, 0, None)


def without_identity(text: str) -> str:
    """As several API servers give it."""
    return "".join(line for line in text.splitlines(True) if "_created" not in line and "process_" not in line)


@pytest.mark.parametrize("part", ["sum", "bucket"])
def test_a_restart_that_no_count_tells_is_told_by_sums_and_buckets(part: str) -> None:
    """The new server has done more than the former one had, but quicker: nothing of it is a rise."""
    old = counters(without_identity(page("mtp", 0)), 10.0)
    text = without_identity(page("mtp", 1))
    if part == "sum":
        text = with_value(text, "vllm:time_to_first_token_seconds_sum", "0.5")
    else:
        # The former one had a first request of seconds; this one has none so far.
        old = replace(old, ttft=replace(old.ttft, buckets=((0.001, 1.0), *old.ttft.buckets[1:])))  # type: ignore[type-var,union-attr]
    new = counters(text, 40.0)
    assert restarted(old, new)
    got = window.reading(old, new)
    assert (got.window_s, got.generation_tokens_per_s, got.itl_s.mean) == (None, None, None)


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ('http_requests_total{handler="/v1/models",method="GET",status="4xx"} 700.0', 0),
        ('http_requests_total{handler="none",method="POST",status="4xx"} 2.0', 2),
        ('http_requests_total{handler="/v1/completions",method="POST",status="404"} 3.0', 3),
        ('http_requests_total{handler="/v1/completions",method="POST",status="4xx"} NaN', None),
    ],
)
def test_refused_are_requests_to_work_and_not_looks(lines: str, refused: int | None) -> None:
    """A console or a health check that asks for pages which are not there refuses nobody."""
    assert counters(page("mtp", 1) + lines + "\n").refused == refused


@pytest.mark.parametrize(
    "change",
    [
        lambda text: re.sub(r"(?m)^([a-z][^#\n]*)$", r"\1 1795958115000", text),
        lambda text: re.sub(r"(?m)^(vllm:[^ ]*) ", "\\1\t", text),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("#")),
        lambda text: text.replace('model_name="tiny"', 'model_name="my \\"tiny\\" } {1} \\\\ model 12"'),
        lambda text: re.sub(
            r'engine="0",(?:(.*?),)?model_name="tiny"', r'model_name="tiny",\1,engine="0"', text
        ).replace(",,", ","),
        lambda text: "\ufeff" + text,
        lambda text: re.sub(
            r"(?m)^(vllm:generation_tokens_total.*) (\S+)$", lambda m: f"{m[1]} {float(m[2]):.6e}", text
        ),
    ],
    ids=["timestamps", "tabs", "crlf", "no help", "odd label", "label order", "byte order mark", "exponents"],
)
def test_other_ways_to_write_the_same_page(change: Callable[[str], str]) -> None:
    odd, plain = counters(change(page("mtp", 1))), counters(page("mtp", 1))
    assert change(page("mtp", 1)) != page("mtp", 1)
    # Another label is another series; what it says is the same.
    assert replace(odd, shape=plain.shape) == plain


@pytest.mark.parametrize("line", ["vllm:num_requests_running 1 2 3", "vllm:num_requests_running 1 x"])
def test_a_line_with_more_than_a_number_and_a_time_is_refused(line: str) -> None:
    with pytest.raises(MetricsError):
        parse(line + "\n")


def test_identity_that_one_page_does_not_tell_is_no_restart() -> None:
    assert not restarted(counters(page("mtp", 0), 0.0), counters(without_identity(page("mtp", 1)), 9.0))


def test_a_start_time_that_trembles_is_no_restart() -> None:
    trembling = with_value(page("mtp", 1), "process_start_time_seconds", "1.7959581152801e+09")
    assert not restarted(counters(page("mtp", 0), 0.0), counters(trembling, 9.0))


def test_a_sum_that_trembles_is_no_restart() -> None:
    """Added up over several processes in another order, it may be smaller by its last digit."""
    old = counters(page("mtp", 1), 0.0)
    assert old.ttft is not None
    new = replace(old, at=9.0, ttft=replace(old.ttft, sum=math.nextafter(old.ttft.sum, 0.0)))
    assert not restarted(old, new)
    got = window.reading(old, new)
    assert (got.window_s, got.ttft_s.n, got.ttft_s.mean) == (9.0, 0, None)


def test_the_block_floor() -> None:
    text = page("prefix", 1)
    assert counters(text).facts.block_tokens == 256
    finer = text.replace('cache_hit_alignment_tokens="None"', 'cache_hit_alignment_tokens="16"')
    assert counters(finer).facts.block_tokens == 16
    plain = text.replace('effective_attention_block_size="256"', 'effective_attention_block_size="None"')
    assert counters(plain.replace(',block_size="256"', ',block_size="1600"')).facts.block_tokens == 1600
    unresolved = plain.replace('_block_size_resolved="True"', '_block_size_resolved="False"')
    assert counters(unresolved).facts.block_tokens is None
