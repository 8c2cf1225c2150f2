"""Sends requests that belong together in time; in a stream's life nothing but its bytes is looked at."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from console.lab.client import Asked, Lateness, Target, Wires
from console.lab.jobs import Act, Job
from console.lab.trace import Trace

Pair = tuple[Job, Trace]


class Stage:
    """Performs acts.

    Args:
        target: where requests go.
        model: the served name.
    """

    def __init__(self, target: Target, model: str) -> None:
        self.target = target
        self._model = model
        self.lateness = Lateness()

    def perform(self, act: Act) -> list[Pair]:
        """All requests of an act, in their order, once the last has ended."""
        asked = [Asked(job.body(self._model), job.answer_tokens, job.timeout_s) for job in act.jobs]
        with _no_collection():
            traces = Wires(self.target, self.lateness).perform(asked, act.at_once, act.after)
        return list(zip(act.jobs, traces, strict=True))


@contextmanager
def _no_collection() -> Iterator[None]:
    """A collection takes milliseconds: it waits until no stream is read."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.collect(1)
