"""Stand-ins for the ports of the TUI, and the screen as text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from textual.app import App
from textual.pilot import Pilot

from console.errors import ConsoleError, NothingError
from console.gpu.sample import GpuReport
from console.lab.adopt import Draft
from console.lab.plan import Plan, make_plan
from console.lint import Finding, Weight
from console.metrics.vllm import Counters
from console.paths import Paths
from console.presets import Catalog, Preset, Problem
from console.server.chain import Link, chain
from console.server.facts import StartupFacts
from console.server.life import Server
from console.server.run_lock import refuse_during_a_run
from console.server.status import ServerStatus, State
from console.server.stop import StopReport
from console.tui.app import ConsoleApp
from console.tui.config import Config
from console.tui.preset_page import Inspection
from console.tui.services import Services
from console.tui.sources import Sources
from tests.tui.facts import (
    BROKEN as BROKEN,
)
from tests.tui.facts import (
    BUSY as BUSY,
)
from tests.tui.facts import (
    CARDS as CARDS,
)
from tests.tui.facts import (
    DIAGNOSIS as DIAGNOSIS,
)
from tests.tui.facts import (
    FAILED as FAILED,
)
from tests.tui.facts import (
    GIB as GIB,
)
from tests.tui.facts import (
    IDLE as IDLE,
)
from tests.tui.facts import (
    PRESETS as PRESETS,
)
from tests.tui.facts import (
    READY as READY,
)
from tests.tui.facts import (
    SIZES as SIZES,
)
from tests.tui.facts import (
    STARTING as STARTING,
)
from tests.tui.facts import (
    WHOLE as WHOLE,
)
from tests.tui.facts import (
    sizes as sizes,
)


@dataclass
class FakeServer:
    """A server that is what it is told to be; `calls` says what was asked of it."""

    now: ServerStatus = field(default_factory=ServerStatus)
    calls: list[str] = field(default_factory=list)
    start_error: ConsoleError | None = None
    after_start: ServerStatus = READY
    endpoint_now: Any = None
    hold: threading.Event = field(default_factory=threading.Event)
    """A stop waits for it when `slow` is set."""
    slow: bool = False
    slow_start: bool = False
    """A start goes on until it is stopped."""
    worked_last: Preset | None = None
    ran: Preset | None = PRESETS[0]
    """What its last life was started from."""
    paths: Paths = field(default_factory=Paths.from_env)

    def status(self, *, probe: bool = True) -> ServerStatus:  # noqa: ARG002
        return self.now

    def start(self, preset: Preset, **_: object) -> None:
        self.calls.append(f"start {preset.name}")
        self.ran = preset
        if self.start_error:
            raise self.start_error

    def follow_start(self, timeout_s: float | None = None) -> Iterator[ServerStatus]:  # noqa: ARG002
        self.calls.append("follow")
        if self.slow_start:
            self.now = STARTING
            while self.now.state is State.STARTING:
                yield self.now
                time.sleep(0.01)
        else:
            self.now = self.after_start
        yield self.now

    def leftovers(self) -> tuple[int, ...]:
        return ()

    def worked(self, besides: Preset | None = None) -> Preset | None:  # noqa: ARG002
        return self.worked_last

    def drain(self, limit_s: float, tell: Callable[[str], None]) -> None:  # noqa: ARG002
        self.calls.append("drain")
        while not self.hold.wait(0.02):
            tell("draining: 2 running, 1 waiting")

    def stop(self, *, on_event: Callable[[str], None], **_: object) -> StopReport:
        if self.now.state in (State.STOPPED, State.FAILED):
            raise NothingError("there is no server to stop")
        refuse_during_a_run(self.paths)
        self.calls.append("stop")
        on_event("asked the keeper; 3 processes are left")
        if self.slow:
            self.hold.wait(10)
        self.now = ServerStatus()
        return StopReport("its keeper", 0.1)

    def endpoint(self) -> Any:
        return self.endpoint_now

    def watched(self) -> Any:
        return self.endpoint_now

    def facts(self) -> StartupFacts:
        return StartupFacts(version="0.32.0", prefix_caching=True)

    def chain(self, counters: Counters | None, cards: GpuReport | None = None) -> tuple[Link, ...]:
        return chain(self.facts(), counters, cards)

    def preset(self) -> Preset | None:
        return self.ran

    def running_preset(self) -> Preset | None:
        return None

    def baseline(self) -> str | None:
        return None

    def secrets(self) -> frozenset[str]:
        return frozenset({"hunter22"})


@dataclass
class FakeGpus:
    """The cards that a house has now."""

    house: House

    def read(self) -> GpuReport:
        return self.house.cards

    def close(self) -> None:
        pass


LAB = {"mtp": {"speculative-config": {"method": "mtp", "num_speculative_tokens": 2}}, "chunk": [2048, 4096]}


def plan_of(kind: str, preset: Preset, rounds: int | None = None) -> Plan:
    """A small plan of a run of that kind."""
    ready = replace(preset, args={"max-model-len": 8192}, lab=LAB)
    return make_plan(kind, ready, rounds=rounds or 2, size="small", seed=1)


@dataclass
class House:
    """Services on fakes, and what was asked of them."""

    server: FakeServer = field(default_factory=FakeServer)
    cards: GpuReport = CARDS
    problems: tuple[Problem, ...] = ()
    presets: tuple[Preset, ...] = PRESETS
    demo: bool = False
    run_error: ConsoleError | None = None
    calls: list[str] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    """The plans of the runs that were started."""
    plan_run: Callable[[str, Preset, int | None], Plan] = plan_of
    config: Config = field(default_factory=Config)

    def inspect(self, preset: Preset) -> Inspection:
        """Some findings on a preset that differs in what runs."""
        finding = Finding("mtp-align", Weight.LOOK, "speculative-config", "the first repeat misses", "a block", "wait")
        args = {"max-num-seqs": 2, "max-model-len": 8192, "api-key": "hunter11"}
        runs = replace(PRESETS[0], args=args, env={"VLLM_API_KEY": "hunter22"})
        changed = replace(
            preset,
            args={**args, "max-num-seqs": 4, "api-key": "hunter44"},
            env={"VLLM_API_KEY": "hunter33"},
            secrets=frozenset({"VLLM_API_KEY"}),
        )
        return Inspection(
            changed, runs, (finding,), ("vLLM: /bin/vllm, version 0.32.0",), ("vllm serve m \\", "    -x")
        )

    def services(self) -> Services:
        def start_run(plan: Plan) -> str:
            self.calls.append(f"run {plan.kind} {plan.base.name}")
            self.plans.append(plan)
            if self.run_error:
                raise self.run_error
            return "r1"

        def draft(run_id: str, arm: str) -> Draft:
            there = Path("new.yaml") if f"adopt {run_id} {arm}" in self.calls else None
            return Draft(Path("new.yaml"), {"extends": PRESETS[0].name}, ("max-num-seqs 4",), there)

        def adopt(run_id: str, arm: str) -> Path:
            self.calls.append(f"adopt {run_id} {arm}")
            return Path("new.yaml")

        def probe_prefix(say: Callable[[str], None]) -> str:
            self.calls.append("probe")
            say("a prompt of 3 blocks")
            return "the prefix cache works: 4800 of 5200 tokens"

        return Services(
            # Not the folder in which tests make the runs that they show.
            paths=replace(Paths.from_env(), state=Paths.from_env().state / "console"),
            open_server=lambda: cast(Server, self.server),
            catalog=lambda: Catalog({preset.name: preset for preset in self.presets}, self.problems),
            open_gpus=lambda: FakeGpus(self),
            start_run=start_run,
            stop_run=lambda: self.calls.append("stop run"),
            draft=draft,
            adopt=adopt,
            inspect=self.inspect,
            probe_prefix=probe_prefix,
            demo=self.demo,
            plan_run=self.plan_run,
            config=self.config,
        )

    def app(self) -> ConsoleApp:
        return ConsoleApp(self.services())


def screen_text(app: App[Any]) -> str:
    """What stands on the screen, a line a row."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips)


async def until(pilot: Pilot[Any], condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition; the screen is in the failure."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"never came true; the screen:\n{screen_text(pilot.app)}")
        await pilot.pause(0.02)


async def shows(pilot: Pilot[Any], *texts: str) -> str:
    """Wait until all of these stand on the screen; the screen."""
    await until(pilot, lambda: all(text in screen_text(pilot.app) for text in texts))
    return screen_text(pilot.app)


async def settled(pilot: Pilot[Any]) -> ConsoleApp:
    """The presets are there and the server has been looked at."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    await until(pilot, lambda: app.situation.known and app.situation.selected is not None)
    return app


def texts(lines: object) -> list[str]:
    """Lines as they read."""
    assert isinstance(lines, list)
    return ["".join(text for text, _ in line) for line in lines]


def sources(server: FakeServer, **changes: Any) -> Sources:
    """What the pollers of a console look at, after a first look at its server."""
    services = replace(House(server).services(), paths=Paths.from_env(), **changes)
    found = Sources(services)
    found.status()
    return found
