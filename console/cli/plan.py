"""What is known of a preset before it starts: its vLLM, its model's files, its memory."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from console import units
from console.lint.check import memory_plan, no_model
from console.memory import MemoryPlan
from console.memory.files import ModelFiles, find, hub, is_path
from console.presets import Preset, child_env
from console.presets.catalog import ANY_MODEL
from console.presets.installed import Installed, installed


@dataclass(frozen=True, slots=True)
class Prospect:
    """A preset, seen from outside."""

    vllm: Installed | None
    files: ModelFiles | None
    model: str
    """As the preset names it."""
    free_bytes: int | None
    """On the disk to which the model would be downloaded."""
    memory: MemoryPlan | None
    hybrid: bool | None
    no_memory: str | None
    """Why there is no memory plan."""
    no_model: str | None = None
    """What the local path that is named as the model lacks."""
    needs_none: bool = False
    """Whether it starts although its model is not there: a shipped preset in a demo."""

    def to_json(self) -> dict[str, Any]:
        """Part of `show --json` and `lint --json`."""
        found, files = self.vllm, self.files
        return {
            "vllm": {
                "command": list(found.command) if found else None,
                "version": found.version if found else None,
            },
            "model_files": {
                "path": str(files.folder) if files else None,
                "weight_bytes": files.weight_bytes if files else None,
                "free_disk_bytes": self.free_bytes,
            },
            "plan": asdict(self.memory) if self.memory else None,
            "plan_problem": self.no_memory,
        }

    def lines(self) -> list[str]:
        """For people."""
        return [self._vllm(), self._model(), *self._memory()]

    def _vllm(self) -> str:
        if self.vllm is None:
            return "vLLM: there is no such command on PATH or beside this console"
        if self.vllm.stand_in:
            return "vLLM: none, this preset starts the stand-in engine"
        return f"vLLM: {self.vllm.command[0]}, version {self.vllm.version or units.NA}"

    def _model(self) -> str:
        free = f"{units.gib(self.free_bytes, 0)} free on that disk"
        if self.no_model is not None:
            stand_in = "; the stand-in engine needs none" if self.needs_none else ""
            return f"model: {self.no_model}{stand_in or f'; {free}'}"
        if self.files is None and is_path(self.model):
            return f"model: the file {self.model}; {free}"
        if self.files is None and self.vllm is not None and self.vllm.stand_in:
            return "model: not on this machine; the stand-in engine needs none, and nothing is downloaded"
        if self.files is None:
            return f"model: not on this machine yet, it will be downloaded; {free}"
        return f"model: {self.files.folder}, weights {units.gib(self.files.weight_bytes)}; {free}"

    def _memory(self) -> list[str]:
        memory = self.memory
        if memory is None and self.vllm is not None and self.vllm.stand_in:
            return [f"plan: none: {self.no_memory}, and the stand-in engine makes up its own numbers"]
        if memory is None:
            return [f"plan: don't know: {self.no_memory}"]
        parts = [
            f"block {units.count(memory.block_tokens)} tokens",
            f"{units.count(memory.kv_bytes_per_token)} B of KV a token and card",
        ]
        if memory.state_bytes_per_request:
            parts.append(f"{memory.state_bytes_per_request / 1024**2:.1f} MiB of state a request and card")
        if memory.concurrency is not None:
            parts.append(f"{units.number(memory.kv_tokens, 0)} tokens, {memory.concurrency:.2f}x the full context")
        if memory.effective_chunk is not None:
            beside = memory.effective_chunk_beside_one
            parts.append(f"chunks of {memory.effective_chunk}, {beside} beside one decoding stream")
        return [f"plan: {' · '.join(parts)}", *(f"plan, not known: {why}" for why in memory.unknown)]


def prospect(preset: Preset) -> Prospect:
    """Look at this preset's command and model; nothing is started or downloaded."""
    env = child_env(preset)
    files = find(preset.model, env)
    memory, hybrid, why = memory_plan(preset, files)
    free = _free(files.folder if files else hub(env))
    return Prospect(
        vllm=installed(preset),
        files=files,
        model=preset.model,
        free_bytes=free,
        memory=memory,
        hybrid=hybrid,
        no_memory=why,
        no_model=no_model(preset, files),
        needs_none=ANY_MODEL in preset.env,
    )


def _free(folder: Path) -> int | None:
    """Free bytes on the disk of a folder that may not be there yet."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), None)
    try:
        return shutil.disk_usage(there).free if there else None
    except OSError:
        return None
