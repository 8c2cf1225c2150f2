"""What is done with a ready server: warm up, prove the arm, run the workloads, see that nobody else was there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.lab import probes
from console.lab.client import Lateness, Target, stream
from console.lab.journal import Journal
from console.lab.outcome import ArmCrashed, BootEnd, BootVoid, diagnosis_of, look_for_death
from console.lab.plan import Plan
from console.lab.proof import Drafts, drafts_between, traffic, treatment
from console.lab.steady import is_steady
from console.lab.trace import DEATHLY, Trace
from console.lab.workload import Job, Jobs, Message, build_jobs
from console.metrics.exposition import MetricsError
from console.metrics.feed import Feed
from console.metrics.reading import CacheFacts
from console.metrics.vllm import Counters
from console.metrics.window import reading
from console.presets import Preset
from console.server.life import Server
from console.server.log import ends
from console.server.startup import read_startup
from console.server.status import State

_SETTLE_S = 5.0
"""How long the server's counters may lag behind a request that has ended."""


class Bench:
    """The measured part of one boot; what it finds goes into `end` and the journal.

    Args:
        plan: the run's plan.
        preset: the arm as it was booted.
        server: the server it runs on.
        endpoint: where it answers.
        journal: where every request goes as it ends.
        log: the server's log.
        end: the boot's record.
        made: the prompts of each round, made by its first boot and the same for the others.
    """

    def __init__(
        self,
        plan: Plan,
        preset: Preset,
        server: Server,
        endpoint: Endpoint,
        journal: Journal,
        log: Path,
        end: BootEnd,
        made: dict[int, Jobs],
    ) -> None:
        self._plan, self._preset, self._server, self._log = plan, preset, server, log
        self._endpoint, self._journal, self._end, self._made = endpoint, journal, end, made
        self._target = Target.of(endpoint.url, endpoint.key)
        self._feed = Feed(endpoint)
        self._newest: Counters | None = None
        self._lateness = Lateness()

    @property
    def lateness_s(self) -> float | None:
        """How late this process ran while it measured: 99 % of the looks were less."""
        return self._lateness.p99()

    @property
    def cache(self) -> CacheFacts | None:
        """What `/metrics` says of the KV cache."""
        return self._newest.facts if self._newest else None

    def run(self) -> None:
        """All of it.

        Raises:
            ArmCrashed: the server died.
            BootVoid: the boot does not count.
        """
        self._wait_idle()
        jobs = self._jobs()
        # One loop for the whole boot: a new one for each request would stamp its own beginnings.
        with asyncio.Runner() as loop:
            self._warm_up(loop, jobs)
            self._prove()
            self._workloads(loop, jobs)

    def probe(self) -> None:
        """Tool calls and JSON by schema.

        Raises:
            ArmCrashed: the server died of it.
        """
        shape, model = self._plan.shape, self._preset.served
        self._say("probes: tool calls")
        auto = self._preset.args.get("enable-auto-tool-choice") is True
        calls = probes.tool_call(self._endpoint, model, shape.tool_probes, auto=auto)
        self._say("probes: JSON by schema")
        answers = probes.json_schema(self._endpoint, model, shape.schema_probes)
        self._end.probes = {"tool_call": calls.to_json(), "json_schema": answers.to_json()}
        status = self._server.status()
        if status.state in (State.FAILED, State.STOPPED):
            raise ArmCrashed(diagnosis_of(status))

    def _say(self, text: str) -> None:
        self._journal.add("step", n=self._end.n, text=text)

    def _jobs(self) -> Jobs:
        if self._end.round not in self._made:
            self._say("making prompts")
            try:
                jobs = build_jobs(self._plan.shape, self._plan.seed, self._end.round, self._count)
            except EndpointError as error:
                look_for_death(self._server, error.why)
            self._made[self._end.round] = jobs
        return self._made[self._end.round]

    def _count(self, messages: list[Message]) -> int:
        body = {"model": self._preset.served, "messages": messages, "add_generation_prompt": True}
        status, answer = self._endpoint.post_json("/tokenize", body)
        if status != 200 or not isinstance(answer, dict) or not isinstance(answer.get("count"), int):
            raise BootVoid(f"/tokenize answered HTTP {status}: prompts cannot be made to exact token counts")
        return int(answer["count"])

    def _wait_idle(self) -> None:
        end = time.monotonic() + _SETTLE_S
        while True:
            counters = self._scrape()
            if counters is None or not counters.busy:
                return
            if time.monotonic() > end:
                raise BootVoid("the server was not idle before the measurement: somebody else's requests run")
            time.sleep(0.1)

    def _scrape(self) -> Counters | None:
        """One page; `None` where the server gives no metrics that can be read."""
        try:
            self._newest = self._feed.scrape()
        except MetricsError:
            return None
        except EndpointError as error:
            look_for_death(self._server, error.why)
        return self._newest

    def _settled(self, since: Counters | None, traces: Sequence[Trace]) -> Counters | None:
        """The counters once the server has booked our requests; it does so a moment after their last token."""
        end = time.monotonic() + _SETTLE_S
        while True:
            now = self._scrape()
            done = now is None or (not now.busy and (since is None or traffic(since, now, traces).settled))
            if done or time.monotonic() > end:
                return now
            time.sleep(0.05)

    def _warm_up(self, loop: asyncio.Runner, jobs: Jobs) -> None:
        gaps: list[float | None] = []
        for i, job in enumerate(jobs.warm_up):
            self._say(f"warm-up {i + 1}")
            trace = self._send(loop, job)
            if job.phase == "decode":
                gaps.append(trace.gap_s)
            if is_steady(gaps, self._plan.shape.warm_up_least):
                break
        else:
            self._end.warn(f"not steady after {len(jobs.warm_up)} warm-up requests")
        self._journal.add("warm", n=self._end.n)

    def _prove(self) -> None:
        proof = treatment(self._preset, read_startup(ends(self._log)).facts, self._scrape())
        for text in proof.unproved:
            self._end.warn(f"not proved: {text}")
        if proof.refuted:
            raise BootVoid("; ".join(proof.refuted))

    def _workloads(self, loop: asyncio.Runner, jobs: Jobs) -> None:
        half = len(jobs.decode) // 2
        begun = self._settled(None, [])
        agent = [self._send(loop, job) for job in self._told(jobs.agent)]
        start = self._settled(begun, agent)
        told = self._told(jobs.decode)
        first = [self._send(loop, next(told)) for _ in range(half)]
        middle = self._settled(start, first)
        second = [self._send(loop, job) for job in told]
        end = self._settled(middle, second)
        if start is not None:
            self._end.prefill_tokens_per_s = reading(begun, start).prefill_tokens_per_s
        self._end.drafts = _drafts(start, middle, end)
        self._check(begun, end, [*agent, *first, *second])

    def _told(self, jobs: Sequence[Job]) -> Iterator[Job]:
        """The jobs, each announced before it is sent."""
        for i, job in enumerate(jobs):
            phase = "" if job.phase == job.workload else f" {job.phase}"
            self._say(f"{job.workload}{phase} {i + 1}/{len(jobs)}")
            yield job

    def _send(self, loop: asyncio.Runner, job: Job) -> Trace:
        body = job.body(self._preset.served)
        timeout = 120.0 + 0.02 * job.prompt_tokens + 1.0 * job.answer_tokens

        async def once() -> Trace:
            with self._lateness.watching():
                return await stream(self._target, body, expect=job.answer_tokens, timeout_s=timeout)

        trace = loop.run(once())
        place = {"workload": job.workload, "phase": job.phase, "key": job.key}
        self._journal.add("request", n=self._end.n, **place, trace=trace.to_json())
        if trace.outcome in DEATHLY:
            look_for_death(self._server, f"{trace.outcome}: {trace.detail}")
        if trace.ok and trace.prompt_tokens not in (None, job.prompt_tokens):
            self._end.warn(f"the server counted {trace.prompt_tokens} prompt tokens of {job.prompt_tokens} made")
        return trace

    def _check(self, before: Counters | None, after: Counters | None, traces: Sequence[Trace]) -> None:
        bad = [trace for trace in traces if not trace.ok]
        if bad:
            raise BootVoid(
                f"{len(bad)} of {len(traces)} requests failed, the first: {bad[0].outcome} ({bad[0].detail})"
            )
        if before is None or after is None:
            self._end.warn("the server gives no metrics: nobody can say whether others used it")
        elif foreign := traffic(before, after, traces).foreign:
            raise BootVoid(foreign)


def _drafts(start: Counters | None, middle: Counters | None, end: Counters | None) -> dict[str, Any] | None:
    parts: dict[str, Drafts | None] = {
        "start": drafts_between(start, middle),
        "end": drafts_between(middle, end),
        "all": drafts_between(start, end),
    }
    if parts["all"] is None:
        return None
    return {name: None if part is None else asdict(part) for name, part in parts.items()}
