"""The machine below vLLM: driver and cards, the compiler that kernels are built with, shared memory, limits, disks."""

from __future__ import annotations

import os
import platform
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from console import __version__, units
from console.gpu.sample import GpuReport
from console.memory.files import hub
from console.paths import expanded
from console.server.doctor.check import Check
from console.server.weights import free_bytes

GIB = 1024**3
_NVCC_LEAST = (12, 9)
"""FlashInfer builds kernels for SM120 with this CUDA or a newer one."""
_SHM_LEAST, _SHM_GOOD = 64 * 1024**2, GIB
_DISK_BAD, _DISK_LOOK = 2 * GIB, 20 * GIB
_STATE_LEAST = 256 * 1024**2
_ASK_S = 10.0


def own() -> Check:
    """This console and its Python."""
    where = f"qwen-console {__version__}, Python {platform.python_version()} ({sys.executable})"
    return Check("console", "ok", f"{where}, {platform.system()} {platform.release()}")


def driver(report: GpuReport | None) -> Check:
    """The NVIDIA driver and its cards."""
    if report is None:
        why = "a look at the cards did not come back: the driver hangs"
        return Check("driver", "bad", units.NA, why, "`sudo dmesg | grep -i -e nvrm -e xid`; reboot")
    if report.problem:
        return Check("driver", "bad", units.NA, report.problem, "without it the server can run on the CPU build only")
    value = f"driver {report.driver or units.NA}, CUDA {report.cuda or units.NA}"
    cards = ", ".join(f"{card.index}: {card.name or units.NA}" for card in report.cards)
    lost = [f"card {card.index}: {card.problem}" for card in report.cards if card.problem]
    if lost:
        return Check("driver", "bad", f"{value}; {cards}", "; ".join(lost), "see the kernel log; reboot to get it back")
    if report.note:
        return Check("driver", "look", f"{value}; {cards}", report.note)
    return Check("driver", "ok", f"{value}; {cards}")


def persistence(report: GpuReport | None) -> Check:
    """Whether the driver stays loaded between two servers."""
    known = [card for card in report.cards if card.persistence is not None] if report else []
    if not known:
        return Check("persistence mode", "unknown", units.NA, "no card tells")
    off = [str(card.index) for card in known if not card.persistence]
    if not off:
        return Check("persistence mode", "ok", "on")
    return Check(
        "persistence mode",
        "look",
        f"off on card {', '.join(off)}",
        "the driver may unload between two servers, and the next start takes seconds longer",
        "`sudo nvidia-smi -pm 1`, or enable nvidia-persistenced",
    )


def nvcc(env: Mapping[str, str], needed: bool) -> Check:
    """The CUDA compiler, with which FlashInfer builds its kernels when they are first used."""
    path = _nvcc(env)
    if path is None:
        if not needed:
            return Check("nvcc", "unknown", "not found", "no NVIDIA card here needs it")
        return Check(
            "nvcc",
            "look",
            "not found",
            "FlashInfer builds kernels at the first start and then ends with `Could not find nvcc`",
            "install the CUDA toolkit 12.9 or newer, and set CUDA_HOME or put its bin on PATH",
        )
    said = _said([path, "--version"])
    found = re.search(r"release (\d+)\.(\d+)", said or "")
    if not found:
        return Check("nvcc", "unknown", path, "it does not tell its version", f"run `{path} --version`")
    version = (int(found[1]), int(found[2]))
    value = f"{found[1]}.{found[2]} ({path})"
    if version < _NVCC_LEAST:
        why = "kernels for this generation of cards (SM120) need CUDA 12.9 or newer"
        return Check("nvcc", "look", value, why, "install a newer CUDA toolkit beside it and set CUDA_HOME")
    return Check("nvcc", "ok", value)


def _nvcc(env: Mapping[str, str]) -> str | None:
    home = env.get("CUDA_HOME") or env.get("CUDA_PATH") or "/usr/local/cuda"
    beside = Path(home) / "bin" / "nvcc"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("nvcc", path=env.get("PATH"))


def ninja(env: Mapping[str, str], beside: Path | None, needed: bool) -> Check:
    """What FlashInfer's builds run under."""
    found = shutil.which("ninja", path=env.get("PATH"))
    if found is None and beside is not None:
        found = shutil.which("ninja", path=str(beside))
    if found:
        return Check("ninja", "ok", found)
    if not needed:
        return Check("ninja", "unknown", "not found", "no NVIDIA card here needs it")
    return Check("ninja", "look", "not found", "FlashInfer's kernel builds need it", "`pip install ninja` beside vLLM")


def shared_memory(path: Path = Path("/dev/shm")) -> Check:
    """Through which the ranks of a server talk."""
    try:
        disk = shutil.disk_usage(path)
    except OSError as error:
        fix = "mount a tmpfs there (in a container: --ipc=host or --shm-size=8g)"
        return Check("/dev/shm", "bad", units.NA, f"it cannot be read: {error.strerror}", fix)
    value = f"{units.gib(disk.free, 1)} free of {units.gib(disk.total, 1)}"
    fix = (
        "in a container: --ipc=host or --shm-size=8g; else raise its size in /etc/fstab; `ls /dev/shm` shows leftovers"
    )
    if disk.free < _SHM_LEAST:
        return Check("/dev/shm", "bad", value, "ranks talk through it: a start ends with `Bus error`", fix)
    if disk.free < _SHM_GOOD:
        return Check("/dev/shm", "look", value, "NCCL and vLLM's message queue want room there", fix)
    return Check("/dev/shm", "ok", value)


def memlock(limits: tuple[int, int] | None = None) -> Check:
    """How much memory a process may pin."""
    soft, hard = limits or resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft == resource.RLIM_INFINITY:
        return Check("memlock", "ok", "unlimited")
    value = f"{units.gib(soft)} (hard limit {'none' if hard == resource.RLIM_INFINITY else units.gib(hard)})"
    if soft >= 8 * GIB:
        return Check("memlock", "ok", value)
    return Check(
        "memlock",
        "look",
        value,
        "pinned memory speeds up copies to the cards; NCCL may warn or fall back",
        "`ulimit -l unlimited`, or a line `* - memlock unlimited` in /etc/security/limits.d",
    )


def memory() -> Check:
    """Main memory, through which weights go on their way to the cards."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return Check("main memory", "unknown", units.NA)
    kib = {key: int(value) for key, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    free, total, swap = (kib.get(key, 0) * 1024 for key in ("MemAvailable", "MemTotal", "SwapFree"))
    value = f"{units.gib(free, 1)} available of {units.gib(total, 1)}, swap {units.gib(swap, 1)} free"
    if free + swap < 4 * GIB:
        why = "the kernel ends what takes most when it runs out, and that is the server"
        return Check("main memory", "look", value, why, "close what is not needed, or add swap")
    return Check("main memory", "ok", value)


def disks(env: Mapping[str, str], state: Path) -> tuple[Check, ...]:
    """Where models, compiled kernels and our own state go."""
    home = expanded(env.get("HOME") or "~")
    cache = Path(env.get("XDG_CACHE_HOME") or home / ".cache")
    compiled = Path(env.get("VLLM_CACHE_ROOT") or cache / "vllm")
    return (
        _disk("disk: models", hub(env), "a model of this size is about 20 GB"),
        _disk("disk: compiled kernels", compiled, "torch.compile and FlashInfer keep gigabytes there"),
        _disk("disk: logs and runs", state, "logs, journals and state files", _STATE_LEAST, GIB),
    )


def _disk(name: str, path: Path, why: str, bad: int = _DISK_BAD, good: int = _DISK_LOOK) -> Check:
    free = free_bytes(path)
    if free is None:
        return Check(name, "unknown", str(path), "its disk cannot be read")
    there = next((place for place in (path, *path.parents) if place.exists()), path)
    value = f"{units.gib(free, 1)} free at {path}"
    if not os.access(there, os.W_OK):
        return Check(name, "bad", value, f"{there} cannot be written", "check its owner, or point the cache elsewhere")
    if free < bad:
        return Check(name, "bad", value, why, "make room, or point the cache to another disk (HF_HOME, XDG_CACHE_HOME)")
    if free < good:
        return Check(name, "look", value, why, "make room before the next download")
    return Check(name, "ok", value)


def _said(words: list[str]) -> str | None:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_ASK_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout
