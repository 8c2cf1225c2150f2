"""Make the README's picture from the stand-in engine: the console while an A/B run is going on.

python -m tests.bench.picture [OUT.svg]      about two minutes; default assets/console.svg
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from console.cli.house import House
from console.cli.screen import services
from console.lab.control import list_runs, stop_run
from console.paths import Paths
from console.server.run_lock import run_is_live
from console.tui.app import ConsoleApp

_SIZE = (120, 40)
_PATIENCE_S = 180.0


async def picture() -> str:
    """Start the default preset by its key, then the MTP run, and take the screen late in the third boot."""
    house = House(Paths.from_env(demo=True))
    app = ConsoleApp(services(house))
    async with app.run_test(size=_SIZE) as pilot:

        async def until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + _PATIENCE_S
            while not condition():
                if time.monotonic() > end:
                    raise TimeoutError("the console did not get there")
                await pilot.pause(0.5)

        def is_ready() -> bool:
            return house.server.status().state == "ready"

        await until(lambda: "qwen3.8" in app.export_screenshot())
        await pilot.press("enter")
        await until(is_ready)
        await pilot.press("m")
        await pilot.press("y")
        await until(lambda: any("2/2" in run.step and "decode 3" in run.step for run in list_runs(house.paths)))
        await pilot.pause(1)
        screen = app.export_screenshot(title="qwen-console --demo")
        await pilot.press("q")
    if run_is_live(house.paths):
        stop_run(house.paths)
    house.server.stop()
    return screen


def main() -> None:
    """The command line."""
    out = Path(sys.argv[1] if len(sys.argv) > 1 else "assets/console.svg").resolve()
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        out.write_text(asyncio.run(picture()), encoding="utf-8")
    print(out)


if __name__ == "__main__":
    main()
