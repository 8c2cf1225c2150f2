"""What is done with a ready server: warm up, prove the arm, run the workloads, see that nobody else was there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from console.endpoint import TOKENIZE, Endpoint, EndpointError
from console.lab.acts import Pair, Stage
from console.lab.client import Target
from console.lab.counting import Counting
from console.lab.jobs import GREEDY, Act, Job, Jobs, Message
from console.lab.journal import Journal
from console.lab.outcome import BootEnd, BootVoid, look_for_death
from console.lab.plan import Plan
from console.lab.proof import Drafts, add_drafts, drafts_between, drafts_of, traffic, treatment
from console.lab.steady import is_steady
from console.lab.tokens import end_token
from console.lab.trace import DEATHLY, Trace
from console.lab.workload import build_jobs
from console.metrics.reading import CacheFacts
from console.metrics.vllm import Counters
from console.metrics.window import reading
from console.presets import Preset
from console.server.life import Server
from console.server.log import ends
from console.server.startup import read_startup


@dataclass(slots=True)
class Prompts:
    """The prompts of each round: made by its first boot, the same for the others."""

    recorded: tuple[Job, ...] = ()
    made: dict[int, Jobs] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Place:
    """The server under test and where everything goes."""

    plan: Plan
    preset: Preset
    """The arm as it was booted."""
    server: Server
    endpoint: Endpoint
    journal: Journal
    log: Path
    """The server's log."""
    end: BootEnd
    """The boot's record."""

    def say(self, text: str) -> None:
        """Journal what happens now."""
        self.journal.add("step", n=self.end.n, text=text)


class Bench:
    """The measured part of one boot; what it finds goes into the boot's record and the journal.

    Args:
        place: server, plan and journal.
        prompts: shared by the boots of a run.
        look: called between workloads: whoever looks at the cards does it when no stream is read.
    """

    def __init__(self, place: Place, prompts: Prompts, look: Callable[[], None]) -> None:
        self._place, self._prompts, self._look = place, prompts, look
        self._counting = Counting(place.server, place.endpoint)
        self._stage = Stage(Target.of(place.endpoint.url, place.endpoint.key), place.preset.served)

    @property
    def lateness_s(self) -> float | None:
        """How late this process ran while it measured: 99 % of the looks were less."""
        return self._stage.lateness.p99()

    @property
    def cache(self) -> CacheFacts | None:
        """What `/metrics` says of the KV cache."""
        newest = self._counting.newest
        return newest.facts if newest else None

    def run(self) -> None:
        """All of it.

        Raises:
            ArmCrashed: the server died.
            BootVoid: the boot does not count.
        """
        place = self._place
        self._counting.wait_idle()
        jobs = self._jobs()
        target = Target.of(place.endpoint.url, place.endpoint.key, end_token(place.endpoint, place.preset.served))
        self._stage.target = target
        self._warm_up(jobs)
        self._prove()
        self._look()
        self._workloads(jobs)

    def _jobs(self) -> Jobs:
        place, made = self._place, self._prompts.made
        if place.end.round not in made:
            place.say("making prompts")
            plan = place.plan
            try:
                made[place.end.round] = build_jobs(
                    plan.shape, plan.workloads, plan.seed, place.end.round, self._count, self._prompts.recorded
                )
            except EndpointError as error:
                look_for_death(place.server, error.why)
        return made[place.end.round]

    def _count(self, messages: list[Message]) -> int:
        body = {"model": self._place.preset.served, "messages": messages, "add_generation_prompt": True}
        status, answer = self._place.endpoint.post_json(TOKENIZE, body)
        if status != 200 or not isinstance(answer, dict) or not isinstance(answer.get("count"), int):
            raise BootVoid(f"/tokenize answered HTTP {status}: prompts cannot be made to exact token counts")
        return int(answer["count"])

    def _warm_up(self, jobs: Jobs) -> None:
        place, gaps = self._place, list[float | None]()
        for i, job in enumerate(jobs.warm_up):
            place.say(f"warm-up {i + 1}")
            (trace,) = self._send(Act((job,)))
            if job.phase == "decode":
                gaps.append(trace.gap_s)
            if is_steady(gaps, place.plan.shape.warm_up_least):
                break
        else:
            place.end.warn(f"not steady after {len(jobs.warm_up)} warm-up requests")
        place.journal.add("warm", n=place.end.n)

    def _prove(self) -> None:
        place = self._place
        facts = read_startup(ends(place.log)).facts
        proof = treatment(place.preset, facts, self._counting.scrape())
        for text in proof.unproved:
            place.end.warn(f"not proved: {text}")
        if proof.refuted:
            raise BootVoid("; ".join(proof.refuted))

    def _workloads(self, jobs: Jobs) -> None:
        """Decode comes in two halves, first and last, so that acceptance is seen at the start and at the end.

        Greedy decodes lie between them: drafts are accepted at another rate there.
        """
        counting, end = self._counting, self._place.end
        decode = [act for act in jobs.acts.get("decode", ()) if act.jobs[0].phase != GREEDY]
        greedy = [act for act in jobs.acts.get("decode", ()) if act.jobs[0].phase == GREEDY]
        half = len(decode) // 2
        begun = self._counting.settled(None, [])
        agent = self._perform(jobs.acts.get("agent", ()))
        at = [counting.settled(begun, agent)]
        if agent and at[0] is not None:
            end.prefill_tokens_per_s = reading(begun, at[0]).prefill_tokens_per_s
        first = self._perform(decode[:half])
        at.append(counting.settled(at[0], first))
        between = [greedy, *(jobs.acts.get(name, ()) for name in ("interference", "concurrent", "replay"))]
        others = [trace for acts in between for trace in self._perform(acts)]
        at.append(counting.settled(at[1], others))
        second = self._perform(decode[half:])
        at.append(counting.settled(at[2], second))
        self._note_drafts((at[0], at[1], first), (at[2], at[3], second))
        self._check(begun, at[3], [*agent, *first, *others, *second])

    def _perform(self, acts: Sequence[Act]) -> list[Trace]:
        """The acts, each announced before it begins."""
        traces: list[Trace] = []
        for i, act in enumerate(acts):
            self._place.say(f"{act.title} {i + 1}/{len(acts)}" if len(acts) > 1 else act.title)
            traces += self._send(act)
        if acts:
            self._look()
        return traces

    def _send(self, act: Act) -> list[Trace]:
        pairs = self._stage.perform(act)
        self._write_down(pairs)
        for job, trace in pairs:
            if trace.outcome in DEATHLY:
                look_for_death(self._place.server, f"{trace.outcome}: {trace.detail}")
            if trace.ok and job.prompt_tokens not in (None, trace.prompt_tokens):
                text = f"the server counted {trace.prompt_tokens} prompt tokens of {job.prompt_tokens} made"
                self._place.end.warn(text)
        return [trace for _, trace in pairs]

    def _write_down(self, pairs: Iterable[Pair]) -> None:
        for job, trace in pairs:
            place = {"workload": job.workload, "phase": job.phase, "key": job.key}
            self._place.journal.add("request", n=self._place.end.n, **place, trace=trace.to_json())

    def _check(self, before: Counters | None, after: Counters | None, traces: Sequence[Trace]) -> None:
        bad = [trace for trace in traces if not trace.ok]
        if bad:
            raise BootVoid(
                f"{len(bad)} of {len(traces)} requests failed, the first: {bad[0].outcome} ({bad[0].detail})"
            )
        if before is None or after is None:
            self._place.end.warn("the server gives no metrics: nobody can say whether others used it")
        elif foreign := traffic(before, after, traces).foreign:
            raise BootVoid(foreign)

    def _note_drafts(self, start: _Part, end: _Part) -> None:
        """Acceptance over the first half of the decode workload, its second half, and both."""
        depth = int((self._place.preset.speculative or {}).get("num_speculative_tokens") or 0)
        parts = [self._drafts(part, depth) for part in (start, end)]
        if all(part is None for part in parts):
            return
        whole = add_drafts([part for part in parts if part is not None])
        named = zip(("start", "end", "all"), (*parts, whole), strict=True)
        self._place.end.drafts = {name: None if part is None else asdict(part) for name, part in named}

    def _drafts(self, part: _Part, depth: int) -> Drafts | None:
        before, after, traces = part
        counted = drafts_between(before, after)
        if counted is not None and depth and any(trace.past_natural for trace in traces):
            return drafts_of(traces, depth)
        return counted


_Part = tuple[Counters | None, Counters | None, list[Trace]]
"""Counters before and after, and the answers between them."""
