"""Finding a life whose record is lost: by what its keeper was told, and by the marker its processes carry."""

from __future__ import annotations

from pathlib import Path

from console.server import shapes
from console.server.process import Identity, Stat, Table, alive, boot_id, command_line, is_recorder, marked, snapshot
from console.server.state import ServerRecord, read_exit, read_json, read_server, spec_path


def known_life(record: Path) -> tuple[ServerRecord | None, str | None]:
    """The life recorded at `record`, and a note when the record is no use.

    A record that is torn or missing is rebuilt from what lives; so is one of an earlier life (from a backup) while the
    life that was started last goes on.
    """
    read, note = read_server(record)
    if read is not None and not alive(read.keeper) and not alive(read.child):
        spec, _ = read_json(spec_path(record))
        later = find_life(record) if spec is not None and spec.get("life") != read.life else None
        if later is not None:
            return later, f"{record.name} is of an earlier life; the server was found by its marker"
    if read is None:
        read = find_life(record)
        note = f"{note}; the server was found by its marker" if note and read else note
    return read, note


def leftovers(record: ServerRecord, exit_path: Path) -> tuple[Identity, ...]:
    """What lives of a life whose keeper is gone.

    A keeper that wrote how the child ended has swept, or was killed over it: then descent and group tell enough. Where
    it wrote nothing every environment is searched for the marker.
    """
    end, _ = read_exit(exit_path)
    found = record.kin.find(search=end is None or end.life != record.life)
    # The recorder ends by itself when its keeper has, within seconds.
    return tuple(who for who in found if not is_recorder(who.pid))


def find_life(record: Path) -> ServerRecord | None:
    """The record as it would stand at `record`, rebuilt from living processes; `None` when none lives."""
    spec, _ = read_json(spec_path(record))
    if spec is None:
        return None
    table = snapshot()
    try:
        ours = [table[pid] for pid in marked(str(spec["life"]), table) if not is_recorder(pid)]
        keeper, child = keeper_among(ours, table), child_among(ours)
        if keeper is None:
            return None
        return ServerRecord.from_json({**spec, "keeper": keeper, "child": child, "whole": spec["subreaper"]})
    except shapes.WRONG:
        return None


def keeper_among(ours: list[Stat], table: Table) -> Identity | None:
    """The leader of the session in which the child's group sits; a lost one keeps its pid and nothing else."""
    for stat in ours:
        if stat.session == stat.pid and _is_keeper(stat.pid):
            return Identity(stat.pid, stat.start, boot_id())
    child = next((stat for stat in ours if stat.group == stat.pid != stat.session), None)
    if child is None or child.session in table:
        return None
    return Identity(child.session, 0, boot_id())


def child_among(ours: list[Stat]) -> Identity | None:
    """The first leader of a group within the keeper's session."""
    leaders = [stat for stat in ours if stat.group == stat.pid and stat.session != stat.pid]
    first = min(leaders, key=lambda stat: (stat.start, stat.pid), default=None)
    return Identity(first.pid, first.start, boot_id()) if first else None


def _is_keeper(pid: int) -> bool:
    return b"console.server.keeper" in command_line(pid)
