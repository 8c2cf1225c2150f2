"""The page of metrics from which lifetime figures count: right after the console's own first request."""

from __future__ import annotations

import time
from contextlib import suppress

from console.endpoint import Endpoint, EndpointError
from console.metrics import vllm
from console.metrics.exposition import MetricsError, parse
from console.paths import Paths
from console.server.state import write_text

_COUNTED_S, _LOOK_EVERY_S = 2.0, 0.05


def keep_baseline(paths: Paths, endpoint: Endpoint, ended: int = 1) -> None:
    """Keep the page from which lifetime figures count; without it they start at zero, our own requests included.

    Args:
        paths: where.
        endpoint: of the server.
        ended: requests that ended by now, ours last: its answer is out a moment before it is counted.
    """
    with suppress(EndpointError, OSError):
        end = time.monotonic() + _COUNTED_S
        while (page := endpoint.get("/metrics")).status == 200:
            counted = _ended(page.text)
            if counted is None or counted >= ended or time.monotonic() > end:
                write_text(paths.baseline, page.text)
                return
            time.sleep(_LOOK_EVERY_S)


def requests_ended(endpoint: Endpoint) -> int:
    """How many requests the server counts as ended; 0 where it does not tell."""
    try:
        return _ended(endpoint.get("/metrics").text) or 0
    except EndpointError:
        return 0


def _ended(page: str) -> int | None:
    try:
        found = vllm.read(parse(page), at=0.0)
    except MetricsError:
        return None
    return min((n for n in (found.requests_finished, found.ttft_count) if n is not None), default=None)
