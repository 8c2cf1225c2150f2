"""`lint` and what `show` tells before a start, through real processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.presets.buckets import FLAG
from tests.console_process import Console, write_preset
from tests.unit.test_installed import make_vllm
from tests.unit.test_memory import TINY


@pytest.fixture
def console(own_folders: Path, tmp_path: Path) -> Console:
    return Console(
        {
            "XDG_STATE_HOME": str(own_folders / "state"),
            "XDG_CACHE_HOME": str(own_folders / "cache"),
            "QWEN_CONSOLE_PRESETS": str(tmp_path / "presets"),
        }
    )


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A command whose help names a few flags, the one for buckets among them."""
    named = ["max-model-len", "max-num-batched-tokens", "enable-prefix-caching", "kv-cache-memory-bytes", FLAG]
    named += ["tensor-parallel-size", "max-num-seqs", *(f"other-{i}" for i in range(60))]
    return make_vllm(tmp_path / "vllm", help_text="\n".join(f"  --{name} VALUE" for name in named))


def make_preset(tmp_path: Path, vllm: Path, args: str) -> None:
    (tmp_path / "model").mkdir(exist_ok=True)
    (tmp_path / "model" / "config.json").write_text(json.dumps(TINY))
    (tmp_path / "model" / "model.safetensors").write_bytes(b"x" * 1000)
    text = f"model: {tmp_path / 'model'}\ncommand: [{vllm}, serve]\nargs: {{{args}}}\n"
    write_preset(tmp_path / "presets", "p", text)


def test_findings_are_listed_and_the_exit_code_is_fine(console: Console, tmp_path: Path, vllm: Path) -> None:
    make_preset(tmp_path, vllm, "max-model-len: 4096, grumble: 1, max-num-seqs: 100000")
    result = console("lint", "p")
    assert "checked against vLLM 9.9.9" in result.out
    assert "no flag --grumble" in result.out
    assert "fix:" in result.out
    (one,) = console("lint", "p", "--json").json["presets"]
    assert {"flag-unknown", "kv-not-pinned"} <= {finding["rule"] for finding in one["findings"]}
    assert one["vllm"]["version"] == "9.9.9"
    asked = (tmp_path / "vllm" / "asked").read_text().splitlines()
    assert asked == ["--help=all"], "asked once, then remembered"


def test_all_presets_and_a_broken_one(console: Console, tmp_path: Path) -> None:
    assert "qwen3.8-27b-nvfp4-100k:" in console("lint").out
    write_preset(tmp_path / "presets", "bad", "model: m\nargz: {}\n")
    result = console("lint", code=2)
    assert "qwen3.8-27b-nvfp4-100k:" in result.out
    assert "bad.yaml:2: argz" in result.err
    assert console("lint", "--json", code=2).json["problems"][0]["name"] == "bad"
    assert "bad.yaml:2: argz" in console("lint", "bad", code=2).err
    assert "fix:" in console("lint", "nosuch", code=2).err


def test_show_tells_the_plan_and_the_buckets_that_the_server_gets(console: Console, tmp_path: Path, vllm: Path) -> None:
    args = "tensor-parallel-size: 2, max-model-len: 32768, enable-prefix-caching: true, max-num-batched-tokens: 1024"
    make_preset(tmp_path, vllm, f"{args}, kv-cache-memory-bytes: 1073741824")
    out = console("show", "p").out
    assert f"--{FLAG} '{{" in out
    assert "version 9.9.9" in out
    assert "# plan: block" in out
    whole = console("show", "p", "--json").json
    assert whole["model_files"]["weight_bytes"] == 1000
    assert whole["plan"]["concurrency"] > 1
    assert FLAG not in whole["args"]
    assert f"--{FLAG}" in whole["argv"]
    assert FLAG not in console("show", "p", "--set", f"{FLAG}={{}}").out
    assert "don't know" in console("show", "qwen3.8-27b-nvfp4-100k").out


def test_a_demo_starts_no_vllm_and_says_so(console: Console) -> None:
    shown = console("--demo", "show", "tiny-cpu")
    assert "vLLM: none, this preset starts the stand-in engine" in shown.out + shown.err


def test_the_shipped_presets_take_their_port_from_the_environment(console: Console) -> None:
    other = Console(console.env | {"QWEN_CONSOLE_PORT": "9001"})
    assert "--port 9001" in other("show", "qwen3.8-27b-nvfp4-100k").out


def test_a_demo_refuses_what_is_not_set_and_never_comes_up_open(console: Console, tmp_path: Path) -> None:
    write_preset(tmp_path / "presets", "closed", "model: org/m\nenv: {VLLM_API_KEY: '${MY_UNSET_KEY}'}\n")
    refused = console("--demo", "up", "closed", code=2).err
    assert "MY_UNSET_KEY" in refused
    assert "export MY_UNSET_KEY=" in refused
    assert "not startable yet" in console("--demo", "show", "closed").out
    assert "MY_UNSET_KEY is not set" in console("--demo", "lint", "closed").out
    assert "NOTHERE" in console("--demo", "up", "--set", "env.FOO=${NOTHERE}", code=2).err
    assert console("--demo", "status", "--json").json["server"]["state"] == "stopped"


def test_a_model_that_is_not_there_is_found_by_lint(console: Console, tmp_path: Path, vllm: Path) -> None:
    make_preset(tmp_path, vllm, "kv-cache-memory-bytes: 1073741824")
    assert "model:" not in console("lint", "p").out
    (tmp_path / "model" / "model.safetensors").unlink()
    assert "has no weights" in console("lint", "p").out
    make_preset(tmp_path, vllm, "load-format: dummy")
    (tmp_path / "model" / "model.safetensors").unlink()
    assert "has no weights" not in console("lint", "p").out
    (tmp_path / "model" / "config.json").unlink()
    assert "has no config.json" in console("lint", "p").out
    assert "has no config.json" in console("show", "p").out
    write_preset(tmp_path / "presets", "gone", f"model: {tmp_path}/not/here\n")
    for words in ((), ("--demo",)):
        assert f"model: there is no folder {tmp_path}/not/here" in console(*words, "lint", "gone").out
    env = {"QWEN_CONSOLE_TINY_MODEL": f"{tmp_path}/not/here"}
    shipped = Console(console.env | env, demo=True)("lint", "tiny-cpu").out
    assert "· model: there is no folder" in shipped
    assert "the stand-in needs no model" in shipped


def test_a_demo_downloads_nothing_and_says_what_its_last_flag_is_for(console: Console) -> None:
    shown = console("--demo", "show", "qwen3.8-27b-nvfp4-100k").out
    assert "downloaded" not in shown.replace("nothing is downloaded", "")
    assert "the stand-in engine needs none, and nothing is downloaded" in shown
    assert "don't know" not in shown
    notes = [line for line in shown.splitlines() if line.startswith("#")]
    assert any("its last flag" in line and "p50" in line for line in notes)
    assert shown.splitlines()[-1].strip().startswith(f"--{FLAG} ")
