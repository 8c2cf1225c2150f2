"""The recorded logs with their right answers, and the ways in which another version would have printed them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from console.server.diagnose import diagnose
from console.server.lines import parse, split
from console.server.status import Diagnosis

FOLDER = Path(__file__).parent.parent / "data" / "logs"


@dataclass(frozen=True)
class Case:
    """A log and what has to be said about it."""

    name: str
    lines: tuple[str, ...]
    expected: dict[str, Any]

    def diagnose(self, lines: Sequence[str] | None = None) -> Diagnosis | None:
        """Our answer, for the log itself or for a variant of it."""
        alive, silent = self.expected.get("alive", False), self.expected.get("silent_s", 0.0)
        return diagnose(self.lines if lines is None else lines, alive=alive, silent_s=silent)


def read_log(path: str) -> list[str]:
    """A file under tests/data/logs as lines, carriage returns kept."""
    return (FOLDER / path).read_bytes().decode().split("\n")


def load_cases() -> list[Case]:
    """All recorded cases."""
    cases = []
    for folder in ("diagnose", "real"):
        expected = yaml.safe_load((FOLDER / folder / "expected.yaml").read_text())
        cases += [Case(name, tuple(read_log(f"{folder}/{name}.log")), answer) for name, answer in expected.items()]
    return cases


def text_of(found: Diagnosis) -> str:
    """All that a user gets to read."""
    return "\n".join((found.what, found.why, found.fix, *found.evidence))


def _no_prefix(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"^(?:\([^)]*pid=\d+\) ?)+", "", line) for line in lines]


def _bare(lines: Sequence[str]) -> list[str]:
    """Neither process nor level nor place."""
    return [parse(line).text for line in split(lines)]


def _older_names(lines: Sequence[str]) -> list[str]:
    named = [re.sub(r"\(Worker_TP(\d) pid=", r"(VllmWorker rank=\1 pid=", line) for line in lines]
    return [line.replace("(EngineCore pid=", "(EngineCore_DP0 pid=") for line in named]


def _doubled(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"^\(Worker_TP(\d) pid=(\d+)\)", r"(Worker pid=\2) (Worker_TP\1 pid=\2)", line) for line in lines]


def _coloured(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"^(\([^)]*pid=\d+\))", "\x1b[0;36m\\1\x1b[0;0m", line) for line in lines]


def _container(lines: Sequence[str]) -> list[str]:
    return [f"vllm-1  | {line}" for line in split(lines)]


def _journal(lines: Sequence[str]) -> list[str]:
    return [f"Sep 14 08:12:01 box vllm[4101]: {line}" for line in split(lines)]


def _four_ranks(lines: Sequence[str]) -> list[str]:
    """Each line of rank 1 again for ranks 2 and 3, interleaved."""
    grown: list[str] = []
    for line in lines:
        grown.append(line)
        if "(Worker_TP1 " in line:
            grown += [re.sub(r"Worker_TP1 pid=\d+", f"Worker_TP{rank} pid=41{rank}9", line) for rank in (2, 3)]
    return grown


def _one_rank(lines: Sequence[str]) -> list[str]:
    kept = [line for line in lines if "(Worker_TP1 " not in line]
    return [re.sub(r"\(Worker_TP0 pid=\d+\)", "(EngineCore pid=4140)", line) for line in kept]


def _returns(lines: Sequence[str]) -> list[str]:
    """Every third line end is a carriage return, as a progress bar leaves it."""
    text = "".join(line + ("\r" if at % 3 == 0 else "\n") for at, line in enumerate(lines))
    return text.split("\n")


def _windows(lines: Sequence[str]) -> list[str]:
    return [line + "\r" for line in lines]


def _long_path(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"\[(\w+\.py:\d+)\]", r"[v1/engine/\1]", line) for line in lines]


def _full_dates(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"\b(\d\d-\d\d \d\d:\d\d:\d\d)\b", r"2026-\1,123", line) for line in lines]


def _second_life(lines: Sequence[str]) -> list[str]:
    """An earlier start that failed for another reason stands above in the same file."""
    earlier = read_log("diagnose/nvcc-missing.log")
    return [*earlier, *lines]


VARIANTS: dict[str, Callable[[Sequence[str]], list[str]]] = {
    "as-recorded": list,
    "no-prefix": _no_prefix,
    "bare": _bare,
    "older-names": _older_names,
    "doubled": _doubled,
    "coloured": _coloured,
    "container": _container,
    "journal": _journal,
    "four-ranks": _four_ranks,
    "one-rank": _one_rank,
    "returns": _returns,
    "windows": _windows,
    "long-path": _long_path,
    "full-dates": _full_dates,
    "second-life": _second_life,
}
