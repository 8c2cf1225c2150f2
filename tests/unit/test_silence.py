"""What it means that a starting server prints nothing: another thing in each phase, and never a reason to end it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from console.server.diagnose import diagnose
from console.server.diagnosis.silence import CONNECTING, WATCHES, meaning
from console.server.diagnosis.story import read_story
from console.server.phase import LogWatch
from console.server.status import Phase
from tests.unit.log_cases import read_log

BANNER = "INFO 01-02 03:04:05 [api_server.py:1] vLLM API server version 0.32.0"
NCCL = "(Worker pid=7) INFO 01-02 03:04:09 [pynccl.py:111] vLLM is using nccl==2.28.9"
LOADING = "(Worker_TP0 pid=7) INFO 01-02 03:04:10 [gpu_model_runner.py:1] Starting to load model acme/m..."
COMPILING = (
    "(Worker_TP0 pid=7) INFO 01-02 03:04:40 [backends.py:1] Using cache directory: /c/torch_compile_cache/0a/rank"
)
STUCK = "No available shared memory broadcast block found in 60 seconds. This typically happens when"


def said(*lines: str, silent_s: float = 45.0) -> str | None:
    return meaning(read_story(lines), silent_s)


def test_every_phase_of_a_start_has_its_own_meaning() -> None:
    assert set(WATCHES) == set(Phase) - {Phase.READY, Phase.STOPPING}
    texts = {watch.means for watch in (*WATCHES.values(), CONNECTING)}
    assert len(texts) == len(WATCHES) + 1


def test_nccl_silence_is_not_compile_silence() -> None:
    nccl, compiling = said(BANNER, NCCL), said(BANNER, NCCL, LOADING, COMPILING)
    assert nccl is not None
    assert compiling is not None
    assert "NCCL" in nccl
    assert "called stuck after 60 s" in nccl
    assert "slow, not stuck" in compiling
    assert "called stuck after 480 s" in compiling
    lines = [BANNER, NCCL]
    stuck = diagnose(lines, alive=True, silent_s=61)
    assert stuck is not None
    assert stuck.cause == "nccl-stuck"
    assert diagnose([*lines, LOADING, COMPILING], alive=True, silent_s=300) is None


def test_the_first_minute_is_imports() -> None:
    assert "Python imports vLLM" in (said(BANNER) or "")


def test_a_start_that_a_signal_half_reached_is_called_stuck_after_three_minutes() -> None:
    """vLLM may swallow a SIGTERM while it makes its engine's process: both then wait for each other for ever."""
    assert diagnose([BANNER], alive=True, silent_s=170) is None
    stuck = diagnose([BANNER], alive=True, silent_s=181)
    assert stuck is not None
    assert (stuck.cause, stuck.phase) == ("engine-stalled", Phase.START)
    assert "SIGTERM" in stuck.fix


def test_nothing_is_said_where_nothing_starts() -> None:
    assert said(*read_log("real/tp2-mtp-ok.log")) is None


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "vllm.log"
    path.write_text(f"{BANNER}\n{NCCL}\n")
    return path


def _silent_for(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_log_is_silent_by_its_last_line(log: Path) -> None:
    watch = LogWatch(log)
    assert watch.silence() is None
    _silent_for(log, 45)
    assert "silent for 45 s" in (watch.silence() or "")
    assert watch.cause_of_trouble() is None
    _silent_for(log, 75)
    trouble = watch.cause_of_trouble()
    assert trouble is not None
    assert trouble.cause == "nccl-stuck"


def test_workers_that_do_not_take_their_work_block_a_ready_server(log: Path) -> None:
    watch = LogWatch(log)
    with log.open("a") as file:
        file.write(f"{STUCK}\n{STUCK}\n{STUCK}\nINFO:     Application startup complete.\n")
    assert not watch.is_blocked(), "compiling is slow"
    with log.open("a") as file:
        file.write(f"{STUCK}\n")
    assert not watch.is_blocked()
    with log.open("a") as file:
        file.write(f"{STUCK}\n")
    assert watch.is_blocked()
    with log.open("a") as file:
        file.write('INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK\n')
    assert not watch.is_blocked()


def test_a_huge_log_is_read_at_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "vllm.log"
    with path.open("w") as file:
        file.write(f"{BANNER}\n{LOADING}\n")
        for number in range(30_000):
            file.write(f"INFO noise {number} {'x' * 60}\n")
        file.write(f"{COMPILING}\n")
    start = LogWatch(path).start()
    assert (start.facts.version, start.phase) == ("0.32.0", Phase.COMPILE)


def test_a_diagnosis_shows_no_secret(log: Path) -> None:
    with log.open("a") as file:
        file.write("ValueError: the key hunter2hunter2 is wrong\n")
    found = LogWatch(log, lambda: ["hunter2hunter2"]).cause_of_death(1)
    assert found is not None
    assert "hunter2" not in found.what + found.why + " ".join(found.evidence)
