"""Builds the scenario library, writes scenarios, and looks at the cards through the real `nvidia-ml-py` on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("nvml.c")
LOOK = Path(__file__).with_name("look.py")

CARD: dict[str, object] = {
    "name": "NVIDIA GeForce RTX 5060 Ti",
    "memory.total": 17_103_323_136,
    "memory.used": 15_000_000_000,
    "memory.reserved": 400_000_000,
    "util.gpu": 87,
    "util.memory": 41,
    "temperature": 61,
    "power": 151_500,
    "limit": 180_000,
    "limit.set": 175_000,
    "clock.sm": 2602,
    "clock.mem": 14_001,
    "persistence": 1,
    "display": 0,
    "desktop": 0,
    "numa": 1,
    "mig": 0,
    # No such domain on any machine: what the kernel says of it is nothing.
    "domain": 0x7ABC,
    "gen": 4,
    "gen.max": 5,
    "width": 8,
    "width.max": 8,
    "replays": 3,
    "reasons": 0x1 | 0x4,
    "throughput.tx": 1_200_000,
    "throughput.rx": 3_400_000,
    "compute": "4242:14000000000 77:300000000",
    "graphics": "900:200000000 77:500000000",
}


def two_cards() -> dict[str, object]:
    """Two healthy cards with known values; the second listed sits on the lower bus."""
    scenario: dict[str, object] = {"count": 2, "driver": "580.65.06", "cuda": 13_000}
    for way in ("0.1", "1.0"):
        scenario |= {f"p2p.{way}": 1, f"nvlink.{way}": 5, f"path.{way}": 30}
    for index, (bus, uuid) in enumerate(((33, "GPU-high"), (2, "GPU-low"))):
        scenario |= {f"{index}.{key}": value for key, value in CARD.items()}
        scenario |= {f"{index}.bus": bus, f"{index}.uuid": uuid}
    return scenario


def build(folder: Path) -> Path:
    """Compile the library into `folder`."""
    command = ["gcc", "-shared", "-fPIC", "-O1", "-pthread", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-o", str(folder / "libnvidia-ml.so.1"), str(SOURCE)], check=True, timeout=120)
    return folder


def write(path: Path, scenario: dict[str, object]) -> None:
    """Put a scenario in place, whole."""
    draft = path.with_suffix(".new")
    draft.write_text("".join(f"{key} {value}\n" for key, value in scenario.items()))
    draft.replace(path)


class Rig:
    """A process that looks at the cards of a scenario."""

    def __init__(self, library: Path, scenario: Path) -> None:
        self._scenario = scenario
        env = os.environ | {"NVML_SCENARIO": str(scenario), "LD_LIBRARY_PATH": str(library)}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(LOOK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def set(self, scenario: dict[str, object]) -> None:
        """Replace the scenario, whole."""
        write(self._scenario, scenario)

    def read(self, command: str = "read") -> dict[str, Any]:
        """One look, as the JSON contract names it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert isinstance(answer, dict)
        return answer

    def renew(self) -> None:
        """Look through a new source from now on."""
        self.read("new")

    def advance(self, seconds: float) -> None:
        """Let the source's clock jump, past a back-off."""
        self.read(f"advance {seconds}")

    def until(self, condition: Callable[[dict[str, Any]], bool], within_s: float = 30.0) -> dict[str, Any]:
        """Look until the report is as wanted."""
        end = time.monotonic() + within_s
        while not condition(report := self.read()):
            assert time.monotonic() < end, report
            time.sleep(0.03)
        return report

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=20)
        assert self._process.returncode == 0


Start = Callable[[dict[str, object]], Rig]
"""Starts a rig on a scenario."""
