"""A log that is cut while its writer goes on: nothing of the start is lost, readers go on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.paths import Paths
from console.server.log import KEPT, ends, follow, new_log, tail
from console.server.phase import LogWatch
from console.server.rotation import pieces, rotate
from console.server.status import Phase

LIMIT = 10_000
BANNER = "INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.32.0"
READY = "INFO:     Application startup complete."


class Writer:
    """A process that appends to a log as a server does: its own descriptor, opened once."""

    def __init__(self, path: Path) -> None:
        code = "import sys\nfor line in sys.stdin: sys.stdout.write(line); sys.stdout.flush()"
        with path.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=file, text=True
            )
        self._path = path

    def write(self, *lines: str) -> None:
        """Lines; returns when they are in the file."""
        assert self._process.stdin is not None
        before = self._path.stat().st_size
        text = "".join(f"{line}\n" for line in lines)
        self._process.stdin.write(text)
        self._process.stdin.flush()
        while self._path.stat().st_size < before + len(text):
            assert self._process.poll() is None

    def close(self) -> None:
        """End it."""
        self._process.communicate()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "vllm.log"


@pytest.fixture
def writer(log: Path) -> Iterator[Writer]:
    found = Writer(log)
    yield found
    found.close()


def noise(count: int, start: int = 0) -> list[str]:
    return [f"INFO line {number} {'x' * 80}" for number in range(start, start + count)]


def test_a_short_log_is_left_alone(log: Path, writer: Writer) -> None:
    writer.write(BANNER)
    assert not rotate(str(log), LIMIT)
    assert not rotate(str(log) + ".gone", LIMIT)
    assert pieces(str(log)) == []


def test_the_writer_goes_on_in_the_cut_file(log: Path, writer: Writer) -> None:
    writer.write(BANNER, *noise(200))
    assert rotate(str(log), LIMIT)
    assert log.stat().st_size == 0
    writer.write("the next line")
    assert log.read_text() == "the next line\n"
    (piece,) = pieces(str(log))
    assert Path(piece).read_text().startswith(BANNER)
    assert Path(piece).stat().st_mode & 0o077 == 0


def test_the_first_piece_stays_and_of_the_later_ones_the_newest(log: Path, writer: Writer) -> None:
    writer.write(BANNER, *noise(200))
    rotate(str(log), LIMIT)
    for start in (1000, 2000):
        writer.write(*noise(200, start))
        assert rotate(str(log), LIMIT)
    first, later = pieces(str(log))
    assert Path(first).read_text().startswith(BANNER)
    assert "line 2000 " in Path(later).read_text()


def test_readers_go_on_over_the_cut(log: Path, writer: Writer) -> None:
    writer.write(*noise(200))
    lines, offset = follow(log, 0)
    assert len(lines) == 200
    rotate(str(log), LIMIT)
    writer.write("after the cut")
    lines, offset = follow(log, offset)
    assert lines == ["after the cut"]
    assert tail(log, 2) == [noise(200)[-1], "after the cut"]


def test_how_the_server_came_up_is_known_after_the_cut(log: Path, writer: Writer) -> None:
    writer.write(BANNER, READY, *noise(200))
    rotate(str(log), LIMIT)
    writer.write(*noise(3, 500))
    start = LogWatch(log).start()
    assert (start.facts.version, start.phase) == ("0.32.0", Phase.READY)
    whole = ends(log)
    assert (whole[0], whole[-1], len(whole)) == (BANNER, noise(3, 500)[-1], 205)


def test_the_ends_of_a_long_log_do_not_overlap(log: Path, writer: Writer) -> None:
    writer.write(BANNER, *noise(30_000))
    rotate(str(log), LIMIT)
    writer.write(*noise(5, 40_000))
    found = ends(log)
    assert found[0] == BANNER
    assert found[-1] == noise(1, 40_004)[0]
    assert len(found) == len(set(found))
    assert len(found) < 20_000


def test_a_disk_that_does_not_take_the_copy_keeps_the_log(log: Path, writer: Writer) -> None:
    writer.write(*noise(200))
    (log.parent / f"{log.name}.1.new").mkdir()
    size = log.stat().st_size
    assert not rotate(str(log), LIMIT)
    assert log.stat().st_size == size


def test_old_logs_go_with_their_pieces(tmp_path: Path) -> None:
    paths = Paths(tmp_path, tmp_path, tmp_path)
    paths.make()
    for number in range(KEPT):
        (paths.logs / f"2026010{number:02}-p.log").write_text("")
        (paths.logs / f"2026010{number:02}-p.log.1").write_text("")
    new_log(paths, "p")
    assert len(list(paths.logs.glob("*.log"))) == len(list(paths.logs.glob("*.log.1"))) == KEPT - 1
