"""The words of the command line: hints that can be pasted, slips that are named, nothing that is ignored in silence."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from console.cli.parser import build
from tests.console_process import Console, Result, write_preset


@pytest.fixture
def demo(own_folders: Path) -> Iterator[Console]:
    console = Console({"XDG_STATE_HOME": str(own_folders / "state"), "QWEN_CONSOLE_SIM_START_S": "0.3"}, demo=True)
    yield console
    console.end()


def installed(console: Console, folder: Path, *words: str) -> Result:
    """The same as a script that is not on PATH, called by its path."""
    script = folder / "qwen-console"
    script.write_text(f"#!{sys.executable} -P\nimport sys\nfrom console.cli import main\nsys.exit(main())\n")
    script.chmod(0o755)
    path = os.pathsep.join(sys.path)
    env = console.environment() | {"PATH": "/usr/bin:/bin", "PYTHONPATH": path}
    done = subprocess.run(
        ["./qwen-console", *words], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def test_hints_of_a_demo_are_of_a_demo(demo: Console) -> None:
    assert "`qwen-console --demo up PRESET`" in demo("restart", code=3).err
    assert "`qwen-console --demo down`" in demo("up", "--no-wait").err
    assert "`qwen-console --demo restart PRESET`" in demo("up", "qwen3.8-27b-nvfp4-throughput", code=4).err
    demo("up")
    assert "(`qwen-console --demo status --chain`)" in demo("status").out
    fixes = [one["fix"] for one in demo.status()["chain"] if "`qwen-console" in (one["fix"] or "")]
    assert fixes
    assert all("`qwen-console --demo " in fix for fix in fixes)
    demo("down")


def test_hints_name_the_command_as_it_was_called(demo: Console, tmp_path: Path) -> None:
    assert "`./qwen-console up PRESET`" in installed(demo, tmp_path, "restart").err
    hint = "`./qwen-console --demo --presets . up PRESET`"
    assert hint in installed(demo, tmp_path, "--presets", ".", "restart", "--demo").err
    wrong = installed(demo, tmp_path, "up", "--sett", "a=b")
    assert (wrong.code, "`./qwen-console up --help`" in wrong.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("statsu",), "did you mean `status`?"),
        (("zzz",), "lists what it takes"),
        (("up", "--sett", "a=b"), "did you mean `--set`? `qwen-console --demo up --help`"),
        (("probe",), "probe: the following arguments are required: what\n"),
        (("up", "--set", "bogus=1"), "fix: in a preset file"),
        (("probe", "prefx"), "did you mean `prefix`?"),
        (("ab",), "`ab` needs to know what to compare"),
        (("--url", "http://h:1", "up"), "`up` takes no --url"),
        (("--url", "http://h:1", "down"), "the console itself and `status`"),
        (("--low-bandwidth", "presets"), "`presets` takes no --low-bandwidth"),
        (("up", "--set", "foo=1"), "no flag --foo"),
        (("up", "--set", "max-num-seqs=four"), "whole number"),
    ],
)
def test_a_slip_is_named_and_nothing_is_started(demo: Console, words: tuple[str, ...], says: str) -> None:
    error = demo(*words, code=2).err
    assert says in error
    assert "fix:" in error
    assert demo.processes() == []


def test_a_url_is_taken_where_it_means_something(demo: Console) -> None:
    url = demo("up").out.strip()
    assert demo.status("--url", url)["server"]["state"] == "foreign"
    assert demo("--url", url, "status", "--json").json["server"]["url"] == url
    demo("down")


def test_a_named_server_that_does_not_answer_is_unreachable_not_stopped(demo: Console) -> None:
    said = demo("status", "--url", "http://127.0.0.1:1", code=1).out
    assert "server: unreachable · http://127.0.0.1:1" in said
    assert "refused" in said
    assert "stopped" not in said
    assert "start a preset" not in said
    whole = demo("status", "--json", "--url", "http://127.0.0.1:1", code=1).json
    assert whole["server"]["state"] == "stopped"
    assert "start a preset" not in whole["gpus_problem"]


def test_without_a_server_a_demo_speaks_of_its_own_cards(demo: Console) -> None:
    assert "simulated" in demo.status()["gpus_problem"]
    assert "NVIDIA" not in demo("status").out


def test_one_format_of_measured_spans(demo: Console) -> None:
    said = demo("up").err
    ready = next(line for line in said.splitlines() if line.startswith("ready in"))
    assert ready.split(":")[0].endswith(" s")
    assert "stopped in 0." in demo("down").err.replace("stopped in 1.", "stopped in 0.")


def test_folders_and_files_that_nobody_reads_are_said(demo: Console, tmp_path: Path) -> None:
    demo.env["QWEN_CONSOLE_PRESETS"] = str(tmp_path / "nope")
    assert "QWEN_CONSOLE_PRESETS: there is no folder" in demo("presets").err
    assert "there is no folder" in demo("up", "mine", code=2).err
    (tmp_path / "nope").mkdir()
    write_preset(tmp_path / "nope", "mine", "model: m\n")
    (tmp_path / "nope" / "mine.yml").write_text("model: n\n")
    write_preset(tmp_path / "nope", "half", "args: {max-num-seqs: 4}\n")
    said = demo("presets")
    assert "mine.yml is not read" in said.err
    assert "half.yaml has no model" in said.err
    assert "bases for others, without a model of their own: base-2x5060ti, half" in said.out
    assert len(demo("presets", "--json").json["notes"]) == 2


def test_every_word_of_every_verb_is_explained() -> None:
    parser, verbs = build()
    silent = [
        (name, action.dest)
        for name, verb in {"": parser, **verbs}.items()
        for action in verb._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert silent == []


def test_up_without_a_name_says_what_the_default_is_where_another_one_runs(demo: Console) -> None:
    demo("up", "tiny-cpu")
    said = demo("up").err
    assert "tiny-cpu is ready already; the default is qwen3.8-27b-nvfp4-100k" in said
    assert "restart qwen3.8-27b-nvfp4-100k" in said
    assert "the default is" not in demo("up", "tiny-cpu").err
    demo("down")


def test_a_demo_hides_no_wrong_flag_and_no_missing_model_of_ones_own(demo: Console, tmp_path: Path) -> None:
    demo.env["QWEN_CONSOLE_PRESETS"] = str(tmp_path)
    write_preset(tmp_path, "odd", "model: m\nargs: {zzyzx: 3}\n")
    write_preset(tmp_path, "gone", "model: /models/none\n")
    write_preset(tmp_path, "near", "model: ./none\n")
    for name, cause in (("odd", "bad-flag"), ("gone", "model-missing"), ("near", "model-missing")):
        assert f"(cause: {cause})" in demo("up", name, code=1).err
    demo("up", "tiny-cpu")
    demo("down")


def test_the_chain_of_a_stopped_server_is_of_its_last_start(demo: Console) -> None:
    demo("up")
    assert "chain: " in demo("status").out
    demo("down")
    said = demo("status").out
    assert "chain: " not in said
    assert "chain of the last start, at 20" in said
    assert "what really ran of the last start, at 20" in demo("status", "--chain").out
