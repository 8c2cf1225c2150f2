"""The doctor's verdicts, on machines that the test describes."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from console.gpu.sample import GpuReport, GpuSample
from console.presets import Preset
from console.server.doctor import machine
from console.server.doctor.examine import lacking
from console.server.doctor.session import session

GIB = 1024**3


@pytest.fixture
def systemd(tmp_path: Path) -> Path:
    (tmp_path / "run" / "sessions").mkdir(parents=True)
    (tmp_path / "linger").mkdir()
    return tmp_path


def logout(systemd: Path, *texts: str, user: str = "me") -> tuple[str, str]:
    files = []
    for number, text in enumerate(texts):
        path = systemd / f"{number}.conf"
        path.write_text(text)
        files.append(path)
    found = session(user, systemd / "run", files, systemd / "linger")
    return found.verdict, found.fix


def test_a_server_dies_at_logout_only_where_logind_is_told_so(systemd: Path) -> None:
    assert logout(systemd, "[Login]\n#KillUserProcesses=yes\n")[0] == "ok"
    verdict, fix = logout(systemd, "[Login]\nKillUserProcesses=yes\n")
    assert verdict == "bad"
    assert "loginctl enable-linger me" in fix
    assert logout(systemd, "KillUserProcesses=yes", "KillUserProcesses=no")[0] == "ok"
    assert logout(systemd, "KillUserProcesses=no", "KillUserProcesses = 1")[0] == "bad"


def test_lingering_and_spared_users(systemd: Path) -> None:
    assert logout(systemd, "KillUserProcesses=yes", user="root")[0] == "ok"
    assert logout(systemd, "KillUserProcesses=yes\nKillExcludeUsers=", user="root")[0] == "bad"
    assert logout(systemd, "KillUserProcesses=yes\nKillOnlyUsers=her")[0] == "ok"
    (systemd / "linger" / "me").touch()
    assert logout(systemd, "KillUserProcesses=yes")[0] == "ok"


def test_without_systemd_nothing_ends_at_logout(tmp_path: Path) -> None:
    assert session("me", tmp_path / "none", [], tmp_path).verdict == "ok"
    (tmp_path / "run").mkdir()
    without = session("me", tmp_path / "run", [], tmp_path)
    assert (without.verdict, without.value) == ("ok", "no systemd-logind runs here: nothing ends processes at logout")


def test_a_configuration_that_cannot_be_read_is_unknown(systemd: Path) -> None:
    assert session("me", systemd / "run", [systemd / "gone.conf"], systemd).verdict == "unknown"


def test_shared_memory(tmp_path: Path) -> None:
    assert machine.shared_memory(tmp_path).verdict in ("ok", "look", "bad")
    missing = machine.shared_memory(tmp_path / "none")
    assert (missing.verdict, "ipc=host" in missing.fix) == ("bad", True)


def test_memlock() -> None:
    assert machine.memlock((resource.RLIM_INFINITY, resource.RLIM_INFINITY)).verdict == "ok"
    assert machine.memlock((64 * 1024, 64 * 1024)).verdict == "look"
    assert machine.memlock((16 * GIB, resource.RLIM_INFINITY)).verdict == "ok"


def compiler(folder: Path, release: str) -> dict[str, str]:
    nvcc = folder / "bin" / "nvcc"
    nvcc.parent.mkdir(exist_ok=True)
    nvcc.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.99'\n")
    nvcc.chmod(0o755)
    return {"CUDA_HOME": str(folder), "PATH": ""}


def test_nvcc_has_to_know_the_card(tmp_path: Path) -> None:
    assert machine.nvcc(compiler(tmp_path, "12.9"), needed=True).verdict == "ok"
    assert machine.nvcc(compiler(tmp_path, "13.1"), needed=True).verdict == "ok"
    old = machine.nvcc(compiler(tmp_path, "12.4"), needed=True)
    assert (old.verdict, "12.9" in old.why) == ("look", True)
    compiler(tmp_path, "12.9")
    (tmp_path / "bin" / "nvcc").write_text("#!/bin/sh\necho nothing\n")
    assert machine.nvcc({"CUDA_HOME": str(tmp_path)}, needed=True).verdict == "unknown"
    gone = {"CUDA_HOME": str(tmp_path / "none"), "PATH": str(tmp_path)}
    assert machine.nvcc(gone, needed=True).verdict == "look"
    assert machine.nvcc(gone, needed=False).verdict == "unknown"


def test_the_driver() -> None:
    assert machine.driver(None).verdict == "bad"
    assert machine.driver(GpuReport(0.0, problem="No NVIDIA driver")).verdict == "bad"
    well = GpuSample(0, name="RTX", persistence=True)
    assert machine.driver(GpuReport(0.0, (well,), driver="580.1", cuda="13.0")).verdict == "ok"
    lost = machine.driver(GpuReport(0.0, (well, GpuSample(1, problem="it fell off the bus"))))
    assert (lost.verdict, "card 1" in lost.why) == ("bad", True)
    assert machine.persistence(GpuReport(0.0, (well,))).verdict == "ok"
    assert machine.persistence(GpuReport(0.0, (GpuSample(0, persistence=False),))).verdict == "look"
    assert machine.persistence(None).verdict == "unknown"


def test_disks(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "HF_HOME": str(tmp_path / "hf")}
    checks = machine.disks(env, tmp_path / "state")
    assert [check.check for check in checks] == ["disk: models", "disk: compiled kernels", "disk: logs and runs"]
    assert str(tmp_path / "hf" / "hub") in checks[0].value
    assert {check.verdict for check in checks} <= {"ok", "look", "bad"}


def test_flags_that_a_vllm_lacks() -> None:
    preset = Preset(name="p", model="m", args={"max-model-len": 1, "kv-cache-memory": 2, "zzz": 3, "max": 4})
    known = frozenset({"max-model-len", "max-num-seqs", "kv-cache-memory-bytes"})
    assert lacking(preset, known) == ("zzz", "max")
