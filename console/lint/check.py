"""All rules over one preset."""

from __future__ import annotations

from collections.abc import Iterator

from console.lint.model import Case, Finding, Ground, Weight
from console.lint.rules import RULES
from console.memory import MemoryPlan, UnknownShape, plan, read_shape
from console.memory.files import ModelFiles, is_path
from console.paths import expanded
from console.presets import Preset
from console.presets.source import nearest
from console.presets.values import plain

_ORDER = tuple(Weight)
_SHORTEST = 6
_CONFIGS = ("config.json", "params.json")
_FROM_FILES = ("auto", "hf", "safetensors", "pt", "mistral")
"""Values of load-format that need weight files in the model's own folder."""


def lint(preset: Preset, ground: Ground) -> tuple[Finding, ...]:
    """What is known to go wrong with this preset, the worst first."""
    case = Case(preset, ground, plain(preset.args))
    found = [finding for rule in RULES for finding in rule(case)]
    found += _unknown_flags(case)
    return tuple(sorted(found, key=lambda finding: _ORDER.index(finding.weight)))


def _unknown_flags(case: Case) -> Iterator[Finding]:
    """Flags that the installed vLLM does not take, or takes for another one."""
    known = case.ground.flags
    if known is None:
        return
    which = f"vLLM {case.ground.version}" if case.ground.version else "the installed vLLM"
    for flag in case.args:
        if flag in known or f"no-{flag}" in known:
            continue
        meant = [name for name in known if name.startswith(flag)] if len(flag) >= _SHORTEST else []
        if len(meant) == 1:
            yield Finding(
                "flag-abbreviated",
                Weight.LOOK,
                flag,
                f"--{flag} is no flag of {which}; it is taken for --{meant[0]}",
                "its parser accepts any beginning that only one flag has, and a later version may have two",
                f"write {meant[0]}",
            )
            continue
        near = nearest(flag, known)
        yield Finding(
            "flag-unknown",
            Weight.BAD,
            flag,
            f"{which} has no flag --{flag}",
            "it ends at once with `unrecognized arguments`",
            f"did you mean {near}?" if near else "leave it out, or install a version that has it",
        )


def no_model(preset: Preset, files: ModelFiles | None) -> str | None:
    """What is wrong with a model that is named by its path, in a sentence; `None` where nothing is."""
    if not is_path(preset.model) or expanded(preset.model).is_file():
        return None
    if files is None:
        return f"there is no folder {preset.model} on this machine"
    if not any((files.folder / name).is_file() for name in _CONFIGS):
        return f"{preset.model} has no config.json: it is no model's folder, or only part of one"
    if preset.args.get("load-format", "auto") in _FROM_FILES and not files.weight_bytes:
        return f"{preset.model} has no weights: no *.safetensors, *.bin or *.pt in it"
    return None


def memory_plan(preset: Preset, files: ModelFiles | None) -> tuple[MemoryPlan | None, bool | None, str | None]:
    """The plan of a preset's caches, whether its model is hybrid, and why there is no plan."""
    if files is None or files.config is None:
        return None, None, "the model's config.json is not on this machine yet"
    try:
        shape = read_shape(files.config)
    except UnknownShape as error:
        return None, None, f"this kind of model is not known here: {error}"
    cpu = preset.env.get("VLLM_CPU_KVCACHE_SPACE")
    try:
        given = int(float(cpu) * 1024**3) if cpu else None
    except ValueError:
        given = None
    return plan(shape, plain(preset.args), cpu=cpu is not None, kv_bytes=given), shape.hybrid, None
