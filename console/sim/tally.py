"""What the engine has done, counted from the scheduler's own events, and the `/metrics` page made of it."""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Iterable
from pathlib import Path

from console.sim.batch import Output, Request
from console.sim.exposition import Family, Histogram, Labels, labels, page
from console.sim.families import POSITIONS, engine_families
from console.sim.options import Options
from console.sim.scheduler import Scheduler


class Tally:
    """Counters of one engine."""

    def __init__(self, options: Options, *, created: float | None = None) -> None:
        self._started = time.time() if created is None else created
        self._model = options.names[0]
        self._base = labels(engine="0", model_name=self._model)
        self._families = engine_families(options, self._started)
        self._awake = labels(engine="0", model_name=self._model, sleep_state="awake")
        self._families["engine_sleep_state"].series[self._awake] = 1.0
        self._http: dict[tuple[str, str, str], int] = {}

    def value(self, name: str, **extra: str) -> float:
        """One plain series, for whoever asks inside this process."""
        found = self._families[name].series[self._labels(**extra)]
        return found.count if isinstance(found, Histogram) else found

    def step(self, scheduler: Scheduler, outputs: Iterable[Output], now: float) -> None:
        """Book an engine step that ended at `now` on the engine's clock."""
        tokens = 0
        for output in outputs:
            tokens += self._output(output, now)
        # As in vLLM, a step that gave nobody a token is not an iteration.
        if tokens:
            self._observe("iteration_tokens_total", tokens)
        self.state(scheduler)

    def state(self, scheduler: Scheduler) -> None:
        """Book queue lengths, cache use and what happened at the door."""
        self._set("num_requests_running", len(scheduler.running))
        self._set("num_requests_waiting", len(scheduler.waiting))
        self._set("num_requests_waiting_by_reason", len(scheduler.waiting), reason="capacity")
        self._set("kv_cache_usage_perc", scheduler.kv_used)
        door = scheduler.admissions
        self._add("prefix_cache_queries", door.queried)
        self._add("prefix_cache_hits", door.hit)
        self._add("prompt_tokens_cached_by_source", door.hit, source="device")
        self._add("num_preemptions", door.preemptions)
        door.queried = door.hit = door.preemptions = 0

    def finished(self, request: Request, now: float) -> None:
        """Book the end of a request."""
        if request.finish is None:
            return
        self._add("request_success", 1, finished_reason=request.finish)
        first, last = request.first or now, request.last or now
        scheduled = now if request.scheduled is None else request.scheduled
        decode = last - first
        self._observe("e2e_request_latency_seconds", now - request.arrived)
        self._observe("request_queue_time_seconds", scheduled - request.arrived)
        self._observe("request_prefill_time_seconds", first - scheduled)
        self._observe("request_decode_time_seconds", decode)
        self._observe("request_inference_time_seconds", last - scheduled)
        self._observe("request_time_per_output_token_seconds", decode / max(1, request.generated - 1))
        self._observe("request_prompt_tokens", len(request.prompt))
        self._observe("request_generation_tokens", request.generated)
        self._observe("request_max_num_generation_tokens", request.generated)
        self._observe("request_params_n", 1)
        self._observe("request_params_max_tokens", request.max_tokens)
        self._observe("request_num_preemptions", request.preemptions)
        self._observe("request_prefill_kv_computed_tokens", len(request.prompt) - request.cached)

    def answered(self, handler: str, method: str, status: int) -> None:
        """Book an HTTP answer."""
        key = (handler, method, f"{status // 100}xx")
        self._http[key] = self._http.get(key, 0) + 1

    def page(self) -> str:
        """The `/metrics` page."""
        return page([*_process(), *self._families.values(), self._http_family()])

    def _output(self, output: Output, now: float) -> int:
        """Book one request's share of a step; the tokens that count for the step."""
        request, tokens = output.request, len(output.tokens)
        self._add("generation_tokens", tokens)
        if output.first:
            tokens += len(request.prompt)
            self._prompt(request)
            self._observe("time_to_first_token_seconds", now - request.arrived)
        if output.gap is not None:
            self._observe("inter_token_latency_seconds", output.gap)
        if output.draft is not None:
            self._add("spec_decode_num_drafts", 1)
            self._add("spec_decode_num_draft_tokens", output.draft.tokens)
            self._add("spec_decode_num_accepted_tokens", output.draft.accepted)
            for position in range(output.draft.accepted):
                self._add(POSITIONS, 1, position=str(position))
        if request.finish is not None:
            self.finished(request, now)
        return tokens

    def _prompt(self, request: Request) -> None:
        total, cached = len(request.prompt), request.cached
        self._add("prompt_tokens", total)
        self._add("prompt_tokens_by_source", total - cached, source="local_compute")
        self._add("prompt_tokens_by_source", cached, source="local_cache_hit")
        self._add("prompt_tokens_cached", cached)

    def _labels(self, **extra: str) -> Labels:
        return labels(engine="0", model_name=self._model, **extra) if extra else self._base

    def _add(self, name: str, amount: float, **extra: str) -> None:
        if amount:
            self._families[name].add(amount, self._labels(**extra))

    def _set(self, name: str, value: float, **extra: str) -> None:
        self._families[name].series[self._labels(**extra)] = float(value)

    def _observe(self, name: str, value: float) -> None:
        histogram = self._families[name].series[self._base]
        assert isinstance(histogram, Histogram)
        histogram.observe(value)

    def _http_family(self) -> Family:
        series: dict[Labels, float | Histogram] = {
            labels(handler=handler, method=method, status=status): float(count)
            for (handler, method, status), count in self._http.items()
        }
        return Family("http_requests", "counter", "Requests by method, status and handler.", series, self._started)


def _age() -> float:
    """Seconds since this process began."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def _process() -> list[Family]:
    """What prometheus-client says about any Python process."""
    version = platform.python_version()
    major, minor, patch = version.split(".", 2)
    info = labels(implementation="CPython", major=major, minor=minor, patchlevel=patch, version=version)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    pages = Path("/proc/self/statm").read_text().split()
    size = os.sysconf("SC_PAGE_SIZE")
    plain = (
        ("process_virtual_memory_bytes", int(pages[0]) * size),
        ("process_resident_memory_bytes", int(pages[1]) * size),
        ("process_start_time_seconds", time.time() - _age()),
        ("process_open_fds", len(list(Path("/proc/self/fd").iterdir()))),
        ("process_max_fds", resource.getrlimit(resource.RLIMIT_NOFILE)[0]),
    )
    cpu = Family("process_cpu_seconds", "counter", "User and system CPU time.", {(): usage.ru_utime + usage.ru_stime})
    return [
        Family("python_info", "gauge", "Python platform.", {info: 1.0}),
        *(Family(name, "gauge", name.replace("_", " "), {(): float(value)}) for name, value in plain),
        cpu,
    ]
