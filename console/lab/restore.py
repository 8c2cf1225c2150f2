"""After a run, however it ended: no arm is left, and the preset that ran before runs again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from console.errors import ConsoleError
from console.lab.folder import Folder
from console.lab.journal import Journal
from console.server.life import Server
from console.server.status import State


def runs_an_arm(server: Server, run_dir: Path) -> bool:
    """Whether what the console's state names is a boot of this run: its log lies in the run's folder."""
    record = server.record()
    return record is not None and Path(record.log).is_relative_to(run_dir)


def restore(server: Server, folder: Folder, journal: Journal) -> bool:
    """Stop an arm that still runs and start what ran before; both are journalled, a failure is said."""
    if runs_an_arm(server, folder.path):
        journal.add("step", n=None, text="stopping the arm")
        # It may have ended by itself.
        with suppress(ConsoleError):
            server.stop(for_run=folder.id)
    before = folder.before
    if before is None:
        journal.add("restored", preset=None, ok=True, text="nothing ran before, so nothing runs now")
        return True
    journal.add("step", n=None, text=f"starting {before.name} again")
    problem = _start(server, folder)
    text = f"{before.name} runs again" if problem is None else f"{before.name} does not run again: {problem}"
    journal.add("restored", preset=before.name, ok=problem is None, text=text)
    if problem is not None:
        journal.add("warning", text=text)
    return problem is None


def _start(server: Server, folder: Folder) -> str | None:
    """What went wrong, `None` if it is ready."""
    if folder.before is None or folder.missing:
        return f"its secrets did not come along ({', '.join(folder.missing)}); start it with `qwen-console up`"
    try:
        server.start(folder.before, for_run=folder.id)
        *_, status = server.follow_start(for_run=folder.id)
    except ConsoleError as error:
        return f"{error.what}: {error.why}" if error.why else error.what
    if status.state is State.READY:
        return None
    return status.diagnosis.what if status.diagnosis else "it did not become ready"
