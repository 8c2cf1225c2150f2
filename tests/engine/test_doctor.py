"""The doctor asks the real vLLM what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.console_process import Console, write_preset
from tests.engine.conftest import PresetMaker
from tests.engine.install import VERSION, Engine

pytestmark = [pytest.mark.engine, pytest.mark.core]


def test_flags_of_the_presets_are_held_against_the_installed_vllm(
    console: Console, make_preset: PresetMaker, real_engine: Engine, tmp_path: Path
) -> None:
    make_preset("plain", prefix=False)
    checks = {check["check"]: check for check in console("doctor", "--json", code=None).json["checks"]}
    version = checks[f"vllm: {real_engine.vllm}"]
    assert (version["verdict"], version["value"].startswith(VERSION)) == ("ok", True)
    flags = checks[f"flags: {real_engine.vllm}"]
    assert (flags["verdict"], "plain" in flags["value"]) == ("ok", True)
    # Asked once a version: the second answer comes from the cache.
    write_preset(tmp_path / "presets", "wrong", "extends: plain\nargs: {zzz-nonsense: 3}\n")
    again = console("doctor", "--json", code=None, timeout=60).json["checks"]
    told = next(check for check in again if check["check"] == f"flags: {real_engine.vllm}")
    assert (told["verdict"], "wrong: --zzz-nonsense" in told["value"]) == ("bad", True)
