"""`status --url` on servers that answer oddly: the truth, or a sentence; never another number."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console_process import Console
from tests.contract.odd_server import Answer, OddServer, chunked, odd_server, reply
from tests.unit.metrics_pages import page, with_value

PAGE = page("mtp", 1)
HUGE = PAGE + ("#" * 99 + "\n") * 500_000


@pytest.fixture
def server() -> Iterator[OddServer]:
    with odd_server() as serving:
        yield serving


@pytest.fixture
def console(own_folders: Path) -> Console:
    return Console({"XDG_STATE_HOME": str(own_folders / "state"), "VLLM_API_KEY": ""})


def figures(whole: Any) -> tuple[Any, ...]:
    life = whole["lifetime"]
    return (
        life["ttft_s"]["n"],
        round(life["ttft_s"]["mean"], 4),
        round(life["itl_s"]["mean"], 4),
        round(life["tpot_s"]["mean"], 4),
        life["prefix_cache"]["computed_tokens"],
        round(life["mtp"]["acceptance_rate"], 4),
    )


TRUTH = (13, 1.1324, 0.0518, 0.0187, 45426, 0.8824)
"""By hand from the page: sums over counts of the whole life."""


@pytest.mark.parametrize(
    "answer",
    [
        reply(PAGE),
        reply(gzip.compress(PAGE.encode()), head=["content-encoding: gzip"]),
        chunked(PAGE, 8),
        reply(PAGE, length=False),
    ],
    ids=["plain", "gzip", "chunked", "until closed"],
)
def test_a_page_however_it_is_sent(console: Console, server: OddServer, answer: Answer) -> None:
    server.pages = [answer]
    whole = console.status("--url", server.url)
    assert whole["server"]["state"] == "foreign"
    assert figures(whole) == TRUTH
    assert "problem" not in whole["reading"]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (reply(PAGE)[:30_000], "without sending complete"),
        (b"".join(chunked(PAGE, 8)[:5]), "incomplete"),
        (chunked(PAGE, 100), "2 s"),
        (reply(HUGE), "8,000,000"),
        (reply(gzip.compress(HUGE.encode()), head=["content-encoding: gzip"]), "8,000,000"),
        (reply(b"no gzip" * 99, head=["content-encoding: gzip"]), "decompressing"),
        (reply("<html>It works</html>"), "HTML"),
        (reply(""), "no series"),
        (reply("", status="401 Unauthorized"), "key"),
        (reply("", status="404 Not Found"), "no metrics"),
        (reply("", status="503 Service Unavailable"), "behind it does not"),
        (reply("", status="307 Temporary Redirect", head=["location: /x"]), "another address"),
    ],
    ids=["cut", "cut-chunk", "slow", "50MB", "50MB-gzip", "bad-gzip", "html", "empty", "401", "404", "503", "307"],
)
def test_what_is_no_whole_page_is_a_sentence(console: Console, server: OddServer, answer: Answer, word: str) -> None:
    server.pages = [answer]
    whole = console.status("--url", server.url)
    assert word in whole["reading"]["problem"]["why"]
    assert whole["reading"]["problem"]["fix"]
    assert (whole["lifetime"], whole["reading"]["running"], whole["reading"]["ttft_s"]["mean"]) == ({}, None, None)


def test_a_restart_within_the_window_gives_no_figures_of_two_lives(console: Console, server: OddServer) -> None:
    start = "process_start_time_seconds"
    server.pages = [reply(PAGE), *(reply(with_value(page("mtp", which), start, "1.9e9")) for which in (0, 1))]
    reading = console.status("--url", server.url, "--window", "3")["reading"]
    assert (reading["window_s"], reading["generation_tokens_per_s"], reading["ttft_s"]["n"]) == (None, None, 0)
    # What the new one did while it was looked at is known all the same.
    assert [(last["n"], last["prompt_tokens"]) for last in reading["last"]] == [(12, 41_930)]


def test_a_restart_that_only_a_counter_tells_within_the_window(console: Console, server: OddServer) -> None:
    """The last page has counted more than the first one by then: only one between them tells."""
    before, after = (_unmarked(page("mtp", which)) for which in (0, 1))
    server.pages = [reply(text) for text in (before, _nothing_counted(before), after)]
    reading = console.status("--url", server.url, "--window", "4")["reading"]
    assert (reading["window_s"], reading["generation_tokens_per_s"], reading["ttft_s"]["n"]) == (None, None, 0)
    assert "began anew" in reading["problem"]["what"]


def _unmarked(text: str) -> str:
    return re.sub(r"(?m)^(process_start_time_seconds|\S*_created).*\n", "", text)


def _nothing_counted(text: str) -> str:
    return re.sub(r"(?m)^(vllm:\S*(?:_total|_count|_sum|_bucket)\{.*\}) .*$", r"\1 0.0", text)


def test_the_key_of_the_shell_opens_a_server_elsewhere(console: Console, server: OddServer) -> None:
    server.pages, server.key = [reply(PAGE)], "secret"
    shut = console.status("--url", server.url)
    assert "key" in shut["reading"]["problem"]["why"]
    assert "VLLM_API_KEY" in shut["server"]["note"]
    console.env["VLLM_API_KEY"] = "secret"
    opened = console.status("--url", server.url)
    assert (opened["server"]["model"], figures(opened)) == ("tiny", TRUTH)
    assert "secret" not in str(opened)


def test_a_server_that_does_not_answer_in_time_is_not_stopped(console: Console, server: OddServer) -> None:
    server.pages, server.silent = [reply(PAGE)], True
    whole = console.status("--url", server.url)
    assert whole["server"]["state"] == "foreign"
    assert "in time" in whole["server"]["note"]
    assert figures(whole) == TRUTH
