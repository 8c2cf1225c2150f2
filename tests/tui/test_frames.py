"""Each state on the screens that it concerns, sign by sign and style by style, at 80x24 and at 120x40."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from textual.message import Message

from console.errors import ConsoleError
from console.gpu.sample import GpuProcess, GpuReport, GpuSample
from console.lab.view import RunView, read_run
from console.notices import Look, Notice, Severity
from console.server.status import ServerStatus
from console.tui.app import ConsoleApp
from console.tui.messages import CardsSeen, LogSeen, NoticesSeen, ReadingLost, ReadingSeen, RunSeen, StatusSeen
from console.tui.widgets import graphs
from tests.tui.fakes import BUSY, CARDS, FAILED, IDLE, READY, SIZES, STARTING, FakeServer, House, settled, until
from tests.tui.frame import compare
from tests.unit.lab_runs import Speed, make_run, whole_run

_NOW_S = 300.0
LOG = (
    "(APIServer pid=7) INFO 11-29 12:00:00 [api_server.py:1] Starting vLLM server on http://127.0.0.1:8000",
    "(EngineCore pid=8) WARNING 11-29 12:00:01 [core.py:2] a warning that says something about this very engine",
    "(EngineCore pid=8) ERROR 11-29 12:00:02 [core.py:3] ValueError: and an error " + "of many words " * 20,
)
LOST = GpuReport(
    0.0,
    (
        replace(CARDS.cards[0], processes=(GpuProcess(4711, 14 * 1024**3, ours=True),)),
        GpuSample(index=1, problem="The card does not answer any more (it has fallen off the bus): `dmesg` has an Xid"),
    ),
)
NOTICE = Notice(
    id="card-lost",
    severity=Severity.BAD,
    what="Card 1 is lost.",
    why="The driver no longer answers for it.",
    fix="see `dmesg | grep Xid`, then reboot",
    since=0.0,
    episode=1,
)


def run(**changes: Any) -> RunView:
    """A run whose name and times are fixed."""
    fixed: dict[str, Any] = {"id": "20261129-120000-mtp", "elapsed_s": 84.0, "eta_s": 130.0} | changes
    return replace(read_run(whole_run("mtp").folder), **fixed)


def half_run() -> RunView:
    """A run in its second round."""
    made = make_run("mtp", rounds=2)
    for place in made.plan.boots()[:2]:
        made.boot(place, Speed(tpot_s=0.030 if place[2] == "off" else 0.015))
    step = "round 2/2 · on · decode 3/6"
    found = replace(read_run(made.folder), id="20261129-120000-mtp", state="running", verdict=None, step=step)
    return replace(found, elapsed_s=84.0, eta_s=130.0, done=14, planned=24)


@dataclass(frozen=True)
class Scene:
    """A state: the server, and what is told beside it."""

    server: ServerStatus = READY
    told: Callable[[], tuple[Message, ...]] = tuple
    cards: GpuReport = CARDS
    notices: tuple[Notice, ...] = ()
    screens: tuple[str, ...] = field(default=("dashboard",))


SCENES = {
    "stopped": Scene(ServerStatus(), screens=("dashboard", "?", "d")),
    "starting": Scene(STARTING),
    "ready-idle": Scene(READY, lambda: (ReadingSeen(IDLE),), screens=("dashboard", "e")),
    "busy": Scene(READY, lambda: (ReadingSeen(BUSY), LogSeen("/x.log", LOG)), screens=("dashboard", "l", "i")),
    "prefill": Scene(replace(READY, prefill_s=84.0), lambda: (ReadingSeen(replace(BUSY, waiting=0, running=1)),)),
    "failed": Scene(FAILED, lambda: (LogSeen("/x.log", LOG),)),
    "card-lost": Scene(READY, lambda: (ReadingSeen(IDLE),), LOST, (NOTICE,), screens=("dashboard", "g", "n")),
    "stale": Scene(
        READY, lambda: (ReadingSeen(BUSY), ReadingLost(ConsoleError("http://x did not answer", "no answer"), 42.0))
    ),
    "lab-running": Scene(
        READY, lambda: (ReadingSeen(BUSY), RunSeen(half_run(), live=True)), screens=("dashboard", "v")
    ),
    "verdict": Scene(READY, lambda: (ReadingSeen(IDLE), RunSeen(run(), live=False)), screens=("dashboard", "v")),
}


def looks(scene: Scene, told: tuple[Message, ...]) -> Iterator[Look]:
    """Five minutes of figures, for the graphs."""
    reading = next((m.reading for m in told if isinstance(m, ReadingSeen) and m.reading), None)
    for at in range(0, int(_NOW_S), 5):
        wave = (at // 5) % 12
        now = reading and replace(
            reading,
            generation_tokens_per_s=20.0 + wave if reading.running else 0.0,
            ttft_s=replace(reading.ttft_s, mean=0.1 * wave if reading.running else None),
        )
        cards = (replace(c, pcie_tx_bytes_per_s=1e8 * wave, pcie_rx_bytes_per_s=5e7 * wave) for c in scene.cards.cards)
        yield Look(float(at), cards=replace(scene.cards, cards=tuple(cards)), reading=now)


async def brought(app: ConsoleApp, pilot: Any, scene: Scene) -> None:
    """The state on the dashboard; from here on nothing changes by itself."""
    await settled(pilot)
    await until(pilot, lambda: app.dashboard.report is not None and app.situation.acting is None)
    app.workers.cancel_all()
    # What the pollers had posted already is handled first.
    await pilot.pause()
    app.dashboard.post_message(StatusSeen(scene.server))
    app.dashboard.post_message(CardsSeen(scene.cards))
    app.dashboard.post_message(RunSeen(None, live=False))
    app._rings = None
    told = scene.told()
    for look in looks(scene, told):
        app.rings.see(look)
    app.dashboard.post_message(NoticesSeen(Look(_NOW_S), scene.notices, ()))
    for message in told:
        if isinstance(message, RunSeen) and message.run:
            runs = (message.run, replace(message.run, id="20261128-090000-aa", kind="aa", state="interrupted"))
            app.sources.runs.listed = partial(tuple, runs)  # type: ignore[method-assign]
        app.dashboard.post_message(message)
        await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=["80x24", "120x40"])
@pytest.mark.parametrize(
    ("name", "screen"), [(name, screen) for name, scene in SCENES.items() for screen in scene.screens]
)
async def test_a_frame(name: str, screen: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "time", SimpleNamespace(monotonic=lambda: _NOW_S))
    # Moments stand on the screen as this machine's clock has them.
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    scene = SCENES[name]
    house = House(FakeServer(scene.server, after_start=scene.server), cards=scene.cards)
    app = house.app()
    async with app.run_test(size=size) as pilot:
        await brought(app, pilot, scene)
        if name in ("lab-running", "verdict") and size[0] == 80 and "run" in app.dashboard.lower.hidden:
            await pilot.press("tab")
        if screen != "dashboard":
            await pilot.press(screen)
        where = {
            "?": "help",
            "d": "presets",
            "l": "log",
            "i": "explain",
            "g": "cards",
            "n": "notices",
            "v": "runs",
            "e": "chain",
        }.get(screen)
        file = "-".join(word for word in (name, where, f"{size[0]}x{size[1]}") if word)
        await compare(pilot, file, app.dashboard.paint)


def test_every_frame_belongs_to_a_state() -> None:
    names = {path.name for path in (Path(__file__).parent / "frames").iterdir()}
    assert {name for name in names if not any(name.startswith(scene) for scene in SCENES)} == set()
    assert len(names) == 2 * sum(len(scene.screens) for scene in SCENES.values())
