"""Logs damaged at random: no crash, and no number that the text does not hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields

from hypothesis import given, settings
from hypothesis import strategies as st

from console.metrics.exposition import MetricsError
from console.server.chain import chain
from console.server.diagnose import diagnose
from console.server.facts import StartupFacts
from console.server.startup import StartupReader
from tests.unit.log_cases import read_log
from tests.unit.metrics_pages import counters, page

LINES = tuple(
    line for name in ("tp2-prefix-cache-ok", "tp2-mtp-ok", "mtp-prefix-crash") for line in read_log(f"real/{name}.log")
)
SAYING = tuple(line for line in LINES if re.search(r"\d", line))
PAGE = counters(page("mtp", 1), 9.0)
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_DERIVED = {"compile_seconds"}
"""Sums over the models of one rank."""


def read(lines: list[str]) -> StartupFacts:
    reader = StartupReader()
    reader.feed(lines)
    return reader.facts


def numbers_of(text: str) -> set[float]:
    """Every number that stands in the text, and the ratios of the percentages."""
    found = {float(word.replace(",", "")) for word in _NUMBER.findall(text)}
    return found | {round(value / 100, 6) for value in found}


def shown(facts: StartupFacts) -> Iterator[tuple[str, float]]:
    for field in fields(facts):
        value = getattr(facts, field.name)
        if isinstance(value, int | float) and not isinstance(value, bool) and field.name not in _DERIVED:
            yield field.name, float(value)


def check(lines: list[str]) -> None:
    facts = read(lines)
    known = numbers_of("\n".join(lines))
    for name, value in shown(facts):
        assert abs(value) in known, (name, value)
    for counted in (None, PAGE):
        links = chain(facts, counted)
        assert len({link.link for link in links}) == len(links) == 13
        assert all(link.value and link.verdict in ("ok", "look", "unknown") for link in links)
    diagnose(lines)
    diagnose(lines, alive=True, silent_s=400.0)
    diagnose(lines, exit_code=1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=200), max_size=20))
def test_any_lines(lines: list[str]) -> None:
    check(lines)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=80))
def test_lines_lost_doubled_and_shuffled(lines: list[str]) -> None:
    check(lines)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(SAYING), st.integers(0, 400), st.text(max_size=6)), min_size=1, max_size=30),
)
def test_lines_cut_and_overwritten(damaged: list[tuple[str, int, str]]) -> None:
    check([line[:at] + text + line[at + len(text) :] for line, at, text in damaged])


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=2000))
def test_a_page_of_bytes(raw: bytes) -> None:
    try:
        chain(StartupFacts(), counters(raw.decode("utf-8", errors="replace"), 1.0))
    except MetricsError:
        return
