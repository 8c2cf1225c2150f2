"""One boot of the stand-in engine in virtual time: nothing sleeps, and its noise is whatever one asks for."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from console.lab.measures import Sent, boot_values
from console.lab.trace import Trace
from console.sim.batch import Limits, Output, Request
from console.sim.scheduler import Scheduler, drive
from console.sim.timing import Build, Timing

Values = Mapping[str, Mapping[str, float]]
BLOCK = 256
LIMITS = Limits(budget=1024, streams=4, block=BLOCK, kv_tokens=65_536, max_len=32_768)
_PREFIX = list(range(700))
_LONG = list(range(10_000, 12_400))
_SHORT = list(range(50))
_ANSWER, _SESSION_ANSWER, _TURN_ANSWER = 24, 12, 3
_STREAM_S = 0.3
"""When the long prompt arrives: the stream has brought about eight tokens by then."""


@dataclass(frozen=True)
class Noise:
    """Standard deviations on log scale."""

    name: str
    boot: float
    """Between boots."""
    run: float
    """Between two busy stretches of one boot: here between requests."""


REPORTED = Noise("reported for two RTX 5060 Ti: 2.8 % between boots, 0.2 % within", 0.028, 0.002)
# Boot means of three runs each had a CV of 8.8 %, runs within a boot 11.7 %: 8.8² = boot² + 11.7²/3.
PLAIN = Noise("the CPU engine, plain: 8.8 % between boot means, 11.7 % within", 0.056, 0.117)
MTP = Noise("the CPU engine, MTP: 5.5 % between boot means, 7.6 % within", 0.033, 0.076)


class NoisyTiming(Timing):
    """The stand-in's timing with another spread; normal on log scale, nothing cut off."""

    def __init__(self, noise: Noise, rng: random.Random) -> None:
        super().__init__(Build(), rng.getrandbits(31))
        self._noise, self._own = noise, rng
        self.boot_factor = math.exp(rng.gauss(0, noise.boot))

    def new_run(self) -> None:
        self._run_factor = math.exp(self._own.gauss(0, self._noise.run))


def boot(noise: Noise, rng: random.Random) -> Values:
    """All measures of one boot, by the lab's own way from stamps to values."""
    scheduler = Scheduler(LIMITS, NoisyTiming(noise, rng), 1)
    return boot_values(list(_sent(scheduler)), None)


def _sent(scheduler: Scheduler) -> list[Sent]:
    found: list[Sent] = []

    def send(workload: str, jobs: Sequence[tuple[str, str, float, list[int], int, str]]) -> None:
        arrivals = [(at, _request(key, prompt, answer, salt)) for _, key, at, prompt, answer, salt in jobs]
        outputs = drive(scheduler, arrivals)
        for (phase, key, at, *_), (_, request) in zip(jobs, arrivals, strict=True):
            found.append(Sent(workload, phase, key, _trace(request, at, outputs)))

    for phase, place, extra in (("cold", "cold", 0), ("prime", "prime", 0), ("warm", "w0", 40), ("warm", "w1", 80)):
        prompt = [*_PREFIX, *range(20_000, 20_000 + extra)]
        send("agent", [(phase, f"agent/0/{place}", 0.0, prompt, _TURN_ANSWER, "agent")])
    for i in range(3):
        send("decode", [("decode", f"decode/{i}", 0.0, _SHORT, _ANSWER, f"decode{i}")])
    stream = ("stream", "interference/0/stream", 0.0, _SHORT, _ANSWER, "stream")
    send("interference", [stream, ("intruder", "interference/0/intruder", _STREAM_S, _LONG, _TURN_ANSWER, "cold")])
    sessions = [("session", f"concurrent/{i}", 0.0, _SHORT, _SESSION_ANSWER, f"s{i}") for i in range(2)]
    send("concurrent", sessions)
    return found


def _request(key: str, prompt: list[int], answer: int, salt: str) -> Request:
    return Request(key, prompt, answer, lambda count: [7] * count, ignore_eos=True, salt=salt)


def _trace(request: Request, at: float, outputs: Sequence[Output]) -> Trace:
    trace = Trace(sent=at, outcome="ok", prompt_tokens=len(request.prompt))
    trace.completion_tokens, trace.cached_tokens = request.generated, request.cached
    stamp, count = (request.first or 0.0) - at, 0
    for output in outputs:
        if output.request is request:
            stamp, count = stamp + (output.gap or 0.0), count + len(output.tokens)
            trace.stamps.append(stamp)
            trace.tokens.append(count)
    trace.ended = stamp
    return trace
