"""The page from which lifetime figures count: not before our own request is in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.endpoint import Endpoint
from console.metrics.feed import kept_page
from console.paths import Paths
from console.server import baseline
from console.server.baseline import keep_baseline, requests_ended
from tests.contract.odd_server import odd_server, reply
from tests.unit.metrics_pages import page, with_value


def _page(ended: int) -> bytes:
    text = page("prefix", 0)
    for name in ("vllm:request_success_total", "vllm:time_to_first_token_seconds_count"):
        text = with_value(text, name, f"{ended}.0")
    return reply(text)


def _kept(paths: Paths) -> int | None:
    found = kept_page(paths.baseline.read_text())
    return found.ttft_count if found else None


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path, tmp_path, tmp_path)


def test_a_request_that_is_answered_and_not_counted_yet_is_waited_on(paths: Paths) -> None:
    with odd_server() as server:
        server.pages = [_page(0), _page(0), _page(1), _page(2)]
        keep_baseline(paths, Endpoint(server.url))
    assert _kept(paths) == 1


def test_the_long_prompt_of_a_proof_is_waited_on_behind_those_before_it(paths: Paths) -> None:
    with odd_server() as server:
        server.pages = [_page(7), _page(7), _page(8)]
        before = requests_ended(Endpoint(server.url))
        keep_baseline(paths, Endpoint(server.url), before + 1)
    assert (before, _kept(paths)) == (7, 8)


def test_a_server_that_never_counts_it_costs_a_moment_and_no_more(
    paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "_COUNTED_S", 0.1)
    with odd_server() as server:
        server.pages = [_page(0)]
        keep_baseline(paths, Endpoint(server.url))
        assert _kept(paths) == 0
        server.pages = [reply("no metrics at all")]
        keep_baseline(paths, Endpoint(server.url))
        assert requests_ended(Endpoint(server.url)) == 0
