"""Whether what the living server does is kept by the minute, and why not where it is not."""

from __future__ import annotations

from console.paths import Paths
from console.server.process import alive
from console.server.state import ServerRecord, read_json, recorder_path, spec_path
from console.server.status import Diagnosis

_WHAT = "what this server does is not recorded: `qwen-console history` has no minutes of it from now on"
_AGAIN = "the server itself is well; one that is started anew is recorded again: `qwen-console restart`, when it suits"


def unrecorded(paths: Paths, record: ServerRecord) -> Diagnosis | None:
    """Why minutes of this life get lost; `None` when they are kept, or were never to be (the boots of an A/B run)."""
    told, _ = read_json(recorder_path(paths.server_record))
    if told is not None and told.get("life") == record.life:
        why = str(told.get("note"))
        if told.get("ended"):
            return Diagnosis("recorder-ended", _WHAT, why, _AGAIN)
        file = paths.state / "history.db"
        fix = f"see that {file} is a file of yours and that its disk has room: then it goes on by itself"
        return Diagnosis("history-unwritable", _WHAT, why, fix)
    if alive(record.keeper) or not _meant(paths, record):
        return None
    return Diagnosis("recorder-ended", _WHAT, "its keeper was lost, and the recorder ends with the keeper", _AGAIN)


def _meant(paths: Paths, record: ServerRecord) -> bool:
    spec, _ = read_json(spec_path(paths.server_record))
    return spec is not None and spec.get("life") == record.life and bool(spec.get("recorder"))
