"""The server's own counters beside what we sent: is it idle, has it booked everything, was anybody else there?"""

from __future__ import annotations

import time
from collections.abc import Sequence

from console.endpoint import Endpoint, EndpointError
from console.lab.outcome import BootVoid, look_for_death
from console.lab.proof import traffic
from console.lab.trace import Trace
from console.metrics.exposition import MetricsError
from console.metrics.feed import Feed
from console.metrics.vllm import Counters
from console.server.life import Server

_SETTLE_S = 5.0
"""How long the server's counters may lag behind a request that has ended."""


class Counting:
    """Scrapes one server for one boot; every page may be the one that shows its death.

    Args:
        server: the server, to be asked whether it lives.
        endpoint: where it answers.
    """

    def __init__(self, server: Server, endpoint: Endpoint) -> None:
        self._server = server
        self._feed = Feed(endpoint)
        self.newest: Counters | None = None

    def scrape(self) -> Counters | None:
        """One page; `None` where the server gives no metrics that can be read.

        Raises:
            ArmCrashed: the server died.
            BootVoid: it lives and does not answer.
        """
        try:
            self.newest = self._feed.scrape()
        except MetricsError:
            return None
        except EndpointError as error:
            look_for_death(self._server, error.why)
        return self.newest

    def wait_idle(self) -> None:
        """Nobody's requests may run when the measurement begins.

        Raises:
            BootVoid: somebody's do.
        """
        end = time.monotonic() + _SETTLE_S
        while True:
            counters = self.scrape()
            if counters is None or not counters.busy:
                return
            if time.monotonic() > end:
                raise BootVoid("the server was not idle before the measurement: somebody else's requests run")
            time.sleep(0.1)

    def settled(self, since: Counters | None, traces: Sequence[Trace]) -> Counters | None:
        """The counters once the server has booked our requests; it does so a moment after their last token."""
        end = time.monotonic() + _SETTLE_S
        while True:
            now = self.scrape()
            done = now is None or (not now.busy and (since is None or traffic(since, now, traces).settled))
            if done or time.monotonic() > end:
                return now
            time.sleep(0.05)
