"""`python -P -m console.lab RUN_DIR`: carry out the run planned there. `--recover RUN_DIR`: after its death."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

from console.errors import ConsoleError
from console.lab import carried
from console.lab.control import recover
from console.lab.folder import Folder, read_folder
from console.lab.runner import Runner
from console.server.life import Server
from console.server.run_lock import hold_run_lock


def main(words: list[str]) -> int:
    """0 when the run ended in order, whatever came out of it: its result stands in the journal."""
    recovering = words[:1] == ["--recover"]
    folder = read_folder(Path(words[-1]))
    try:
        if recovering:
            recover(folder.paths, folder.id)
        else:
            _carry_out(folder)
    except ConsoleError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    return 0


def _carry_out(folder: Folder) -> None:
    carried.forget()
    # What was imported stays: a collection that walks over it would make the client late.
    gc.collect()
    gc.freeze()
    with hold_run_lock(folder.paths, folder.id):
        Runner(folder, Server(folder.paths)).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
