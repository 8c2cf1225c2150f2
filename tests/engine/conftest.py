"""A console of its own for every test, with presets of the real engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from console.endpoint import free_port
from tests.console_process import Console, write_preset
from tests.engine.install import Engine

PresetMaker = Callable[..., str]
DEAD_PROXY = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}

_PRESET = """\
description: the real engine on a CPU
model: {model}
served-name: tiny
command: [{vllm}, serve]
args:
  tensor-parallel-size: {ranks}
  max-model-len: 32768
  max-num-seqs: 4
  max-num-batched-tokens: 1024
  enable-prompt-tokens-details: true
  enable-prefix-caching: {prefix}
  # A tiny random model that draws its words accepts next to no draft; greedy ones it does.
  override-generation-config: {{temperature: 0}}
env:
  VLLM_CPU_KVCACHE_SPACE: "1"
  VLLM_CPU_OMP_THREADS_BIND: nobind
  OMP_NUM_THREADS: "1"
  VLLM_CPU_CI_ENV: "1"
  VLLM_NO_USAGE_STATS: "1"
  HF_HUB_OFFLINE: "1"
server: {{port: {port}, ready-timeout: 300, stop-grace: 15}}
lab:
  mtp: {{speculative-config: {{method: mtp, num_speculative_tokens: 2}}}}
  chunk: [512, 2048]
"""


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Iterator[Console]:
    """The command with folders of its own; nothing that it started outlives the test."""
    found = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_PRESETS": str(tmp_path / "presets")})
    yield found
    left = found.processes()
    found.end()
    assert left == [], f"left running: {left}"


@pytest.fixture
def make_preset(real_engine: Engine, tmp_path: Path) -> PresetMaker:
    """Writes a preset of the real engine; its name."""

    def make(name: str, *, prefix: bool, model: str | None = None, port: int | None = None, more: str = "") -> str:
        text = preset_text(real_engine, prefix=prefix, model=model, port=port)
        write_preset(tmp_path / "presets", name, text + more)
        return name

    return make


def preset_text(
    engine: Engine, *, prefix: bool, model: str | None = None, port: int | None = None, ranks: int = 2
) -> str:
    """A preset of the real engine, on a free port unless one is given."""
    return _PRESET.format(
        model=model or engine.model,
        vllm=engine.vllm,
        prefix=str(prefix).lower(),
        ranks=ranks,
        port=free_port() if port is None else port,
    )
