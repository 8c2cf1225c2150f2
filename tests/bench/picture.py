"""Make the README's pictures from the stand-in engine.

python -m tests.bench.picture [FOLDER]      about three minutes; default assets/

`console.svg`: the dashboard while an A/B run is going on. `small.svg`: the same at 80x24. `verdict.svg`: its end.
No screen that names the folders of the machine is taken: pictures are published.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from console.cli.house import House
from console.cli.screen import services
from console.errors import NothingError
from console.lab.control import list_runs, stop_run
from console.paths import Paths
from console.server.run_lock import run_is_live
from console.tui.app import ConsoleApp

_SIZE, _SMALL = (120, 40), (80, 24)
_PATIENCE_S = 240.0
_TITLE = "qwen-console --demo"


async def pictures(house: House) -> dict[str, str]:
    """Start the default preset by its key, then the MTP run, and take the screens on the way."""
    app = ConsoleApp(services(house))
    taken: dict[str, str] = {}
    async with app.run_test(size=_SIZE) as pilot:

        async def until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + _PATIENCE_S
            while not condition():
                if time.monotonic() > end:
                    raise TimeoutError("the console did not get there")
                await pilot.pause(0.5)

        async def take(name: str) -> None:
            await pilot.pause(1.5)
            taken[name] = app.export_screenshot(title=_TITLE)

        await until(lambda: "qwen3.8" in app.export_screenshot())
        await pilot.press("enter")
        await until(lambda: app.situation.status.state == "ready" and app.situation.acting is None)
        await pilot.press("m")
        await until(lambda: "start&#160;the&#160;run" in app.export_screenshot())
        await pilot.press("y")
        # From the first whole round on there are measures to show.
        await until(lambda: any(run.metrics and run.progress > 0.6 for run in list_runs(house.paths)))
        await take("console")
        await pilot.resize_terminal(*_SMALL)
        await take("small")
        await pilot.resize_terminal(*_SIZE)
        await until(lambda: run_is_live(house.paths) is None)
        await pilot.press("v")
        await take("verdict")
        await pilot.press("escape", "q")
    return taken


def main() -> None:
    """The command line."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "assets").resolve()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        house = House(Paths.from_env(demo=True))
        try:
            taken = asyncio.run(pictures(house))
        finally:
            if run_is_live(house.paths):
                stop_run(house.paths)
            with suppress(NothingError):
                house.server.stop()
    for name, text in taken.items():
        (folder / f"{name}.svg").write_text(text, encoding="utf-8")
        print(folder / f"{name}.svg")


if __name__ == "__main__":
    main()
