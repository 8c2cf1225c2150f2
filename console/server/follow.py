"""Sees one start to its end when no console may be open. `python -P -m console.server.follow STATE_DIR LIFE`"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from console.paths import Paths
from console.server.life import Server
from console.server.locks import is_held

_PATIENCE_S = 30.0


def main(state: str, life: str) -> int:
    """Follow that life until it is ready or has failed; another one is none of our business."""
    paths = replace(Paths.from_env(), state=Path(state))
    server = Server(paths)
    if not _begins(server, life):
        return 1
    for _ in server.follow_start():
        record = server.record()
        if record is None or record.life != life:
            return 0
    return 0


def _begins(server: Server, life: str) -> bool:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        record = server.record()
        if record and record.life == life and record.child:
            return True
        if not is_held(server.paths.server_lock):
            return False
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
