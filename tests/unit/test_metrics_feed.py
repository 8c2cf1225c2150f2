"""A feed on a real HTTP server: windows, last requests, restarts, bad answers; what was seen stays."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from console.endpoint import Endpoint, EndpointError, free_port
from console.metrics.exposition import MetricsError
from console.metrics.feed import Feed
from console.metrics.reading import Distribution
from console.metrics.vllm import Counters, Histogram
from console.timely import asleep_s
from tests.unit.metrics_pages import counters, page, with_value


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server(ThreadingHTTPServer):
    """Answers every GET with what the test put there."""

    daemon_threads = True
    status = 200
    body: bytes = b""
    endless = False

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.send_response(self.server.status)
        if not self.server.endless:
            self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)
        for _ in range(50 if self.server.endless else 0):
            self.wfile.write(b"# nothing to see here\n" * 45_000)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, args=(0.02,))
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def endpoint(server: Server) -> Iterator[Endpoint]:
    found = Endpoint(f"http://127.0.0.1:{server.server_port}")
    yield found
    found.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def feed(endpoint: Endpoint, clock: Clock) -> Feed:
    return Feed(endpoint, clock=clock)


def set_page(server: Server, text: str) -> None:
    server.body = text.encode()


def test_the_window_is_the_newest_pair_that_spans_it(server: Server, feed: Feed, clock: Clock) -> None:
    set_page(server, page("mtp", 0))
    assert feed.update().window_s is None
    clock.now += 9
    set_page(server, page("mtp", 1))
    first = feed.update()
    assert (first.window_s, first.ttft_s.n) == (9.0, 12)
    spans = []
    for _ in range(40):
        clock.now += 1
        spans.append(feed.update().window_s)
    # The page before the load is the start until the next one is 30 s old.
    assert spans == [float(second) for second in range(10, 39)] + [30.0] * 11
    idle = feed.reading()
    assert (idle.ttft_s, idle.generation_tokens_per_s) == (Distribution(), 0.0)
    assert idle.mtp is not None
    assert idle.mtp.acceptance_rate is None
    assert feed.lifetime().ttft_s.n == 13


def test_a_few_seconds_give_means_but_no_rate(server: Server, feed: Feed, clock: Clock) -> None:
    set_page(server, page("prefix", 0))
    feed.update()
    clock.now += 4
    set_page(server, page("prefix", 1))
    young = feed.update()
    assert young.ttft_s.mean is not None
    assert young.generation_tokens_per_s is None
    assert young.prompt_tokens_per_s is None
    clock.now += 7
    assert (feed.update().generation_tokens_per_s or 0) > 0


def test_last_requests_stand_beside_the_window(server: Server, feed: Feed, clock: Clock) -> None:
    set_page(server, page("prefix", 0))
    assert feed.update().last == ()
    clock.now += 6
    set_page(server, page("prefix", 1))
    feed.update()
    clock.now += 120
    (last,) = feed.reading().last
    assert (last.age_s, last.n, last.prompt_tokens, last.cached_tokens, last.computed_tokens) == (
        120.0,
        12,
        41930,
        33280,
        8650,
    )
    assert last.ttft_s == pytest.approx(0.107762, abs=6e-7)


def test_last_requests_are_newest_first_and_eight_at_most(server: Server, feed: Feed, clock: Clock) -> None:
    for n in range(1, 13):
        text = with_value(page("prefix", 1), "vllm:time_to_first_token_seconds_count", str(100 + n))
        text = with_value(text, "vllm:time_to_first_token_seconds_sum", str(n * (n + 1) / 2))
        set_page(server, text)
        clock.now += 1
        feed.update()
    last = feed.reading().last
    assert [round(entry.ttft_s or 0) for entry in last] == [12, 11, 10, 9, 8, 7, 6, 5]
    assert [entry.age_s for entry in last] == [float(age) for age in range(8)]


def test_requests_that_ended_while_nobody_looked_are_dated_by_no_guess(
    server: Server, feed: Feed, clock: Clock
) -> None:
    set_page(server, page("prefix", 0))
    feed.update()
    clock.now += 65.0
    set_page(server, page("prefix", 1))
    assert feed.update().last == ()


def test_what_was_counted_while_this_machine_slept_is_no_rate(
    server: Server, feed: Feed, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_page(server, page("prefix", 0))
    feed.update()
    clock.now += 15.0
    assert feed.update().window_s == pytest.approx(15.0)
    set_page(server, page("prefix", 1))
    for place in ("console.timely", "console.metrics.feed"):
        monkeypatch.setattr(f"{place}.asleep_s", lambda: 3600.0 + asleep_s())
    clock.now += 15.0
    woken = feed.update()
    assert woken.window_s is None
    assert woken.generation_tokens_per_s is None


def test_a_restart_forgets_the_former_process(server: Server, feed: Feed, clock: Clock) -> None:
    for which in (0, 1):
        set_page(server, page("mtp", which))
        feed.update()
        clock.now += 9
    assert feed.reading().last
    set_page(server, page("mtp", 0))
    fresh = feed.update()
    assert (fresh.window_s, fresh.last, fresh.ttft_s.n) == (None, (), 0)
    clock.now += 5
    assert feed.update().window_s == 5.0


def test_a_long_silence_is_no_window(server: Server, feed: Feed, clock: Clock) -> None:
    set_page(server, page("mtp", 0))
    feed.update()
    clock.now += 3600
    set_page(server, page("mtp", 1))
    late = feed.update()
    assert (late.window_s, late.ttft_s.n) == (None, 0)
    clock.now += 2
    assert feed.update().window_s == 2.0


def test_a_failed_scrape_keeps_what_was_seen(server: Server, feed: Feed, clock: Clock) -> None:
    set_page(server, page("mtp", 0))
    feed.update()
    clock.now += 9
    set_page(server, page("mtp", 1))
    before = feed.update()
    for status, text in ((200, "<html>hello</html>"), (503, page("mtp", 1)), (200, "")):
        server.status = status
        set_page(server, text)
        clock.now += 1
        with pytest.raises(MetricsError) as caught:
            feed.update()
        assert caught.value.what
        assert caught.value.fix
    assert feed.age_s == 3.0
    assert feed.reading().ttft_s == before.ttft_s
    server.status = 200
    set_page(server, page("mtp", 1))
    assert feed.update().window_s == 12.0


def test_nobody_there(clock: Clock) -> None:
    feed = Feed(Endpoint(f"http://127.0.0.1:{free_port()}"), clock=clock)
    with pytest.raises(EndpointError):
        feed.update()
    assert (feed.newest, feed.age_s, feed.reading().window_s, feed.lifetime().window_s) == (None, None, None, None)


def test_fifty_megabytes_are_refused(server: Server, feed: Feed) -> None:
    server.endless = True
    with pytest.raises(EndpointError) as caught:
        feed.update()
    assert caught.value.kind == "too-big"


def test_a_dead_proxy_does_not_stand_before_loopback(
    server: Server, endpoint: Endpoint, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    set_page(server, page("mtp", 1))
    assert Feed(endpoint, clock=clock).update().running == 0


class Recorded(Feed):
    """Pages without a server: a request ends every minute."""

    first = counters(page("mtp", 1))

    def scrape(self) -> Counters:
        assert self.first.ttft is not None
        done, ttft = self._clock() // 60, self.first.ttft
        return replace(self.first, at=self._clock(), ttft=replace(ttft, count=ttft.count + done, sum=ttft.sum + done))


def test_memory_is_flat_over_hours(clock: Clock) -> None:
    feed = Recorded(Endpoint("http://127.0.0.1:1"), clock=clock)
    for _ in range(7200):
        clock.now += 1
        feed.update()
    assert len(feed._ring) <= 32
    assert len(feed.reading().last) == 8


def test_memory_is_flat_over_a_simulated_day(clock: Clock) -> None:
    """A page a second for a day: what the feed keeps does not grow after its first window."""
    feed = Feed(Endpoint("http://127.0.0.1:9"), clock=clock)
    last = counters(page("mtp", 1))

    def live(seconds: int) -> None:
        for _ in range(seconds):
            clock.now += 1.0
            n = clock.now
            feed.keep(replace(last, at=n, ttft=Histogram((), n, n), generation_tokens=int(n)))
            if int(n) % 100 == 0:
                assert feed.reading().ttft_s.n == 30

    live(600)
    before = sys.getallocatedblocks()
    live(86_400 - 600)
    assert sys.getallocatedblocks() - before < 500


def test_file_handles_are_flat(server: Server, endpoint: Endpoint) -> None:
    server.body = page("mtp", 0).encode()
    feed = Feed(endpoint)

    def handles() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    feed.scrape()
    before = handles()
    for i in range(200):
        server.status = 503 if i % 10 == 0 else 200
        try:
            feed.update()
        except MetricsError:
            continue
    assert handles() <= before + 1
