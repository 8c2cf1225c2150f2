"""Preset files that hold anything: each costs itself, one sentence and the code 2, and hides nothing else."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from console.cli.main import main
from console.errors import UsageError
from console.presets import load_catalog, parse_assignments
from console.tui.config import load
from tests.console_process import write_preset

_BOMB = "\n".join(
    [
        "args:",
        "  a: &a [x,x,x,x,x,x,x,x,x]",
        *(f"  {b}: &{b} [{','.join([f'*{a}'] * 9)}]" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    ]
)
_TEXTS = {
    "merge key": ("model: m\nx: &a {b: 1}\nargs:\n  <<: *a\n", ":4: args.<<"),
    "deep list": (f"model: m\nargs:\n  x: {'[' * 5000}\n", "nested more than 32"),
    "deep map": (f"model: m\nargs:\n  x: {'{a: ' * 900}1{'}' * 900}\n", "nested more than 32"),
    "deep by aliases": (
        "model: m\nargs:\n"
        + "  a0: &a0 [[[[[[[[1]]]]]]]]\n"
        + "".join(f"  a{n}: &a{n} [[[[[[[[*a{n - 1}]]]]]]]]\n" for n in range(1, 9)),
        "nested more than 32",
    ),
    "holds itself": ("model: m\nargs: &a {hf-overrides: *a}\n", "*a stands within"),
    "bomb": (f"model: m\n{_BOMB}\n", "more than 10,000 values"),
    "large": (f"model: m\ndescription: {'x' * 10_000_000}\n", "larger than"),
    "large number": (f"model: m\nargs: {{max-model-len: 1{'0' * 400}}}\n", ":2: args.max-model-len"),
    "large hexadecimal": (f"model: m\nargs: {{max-num-seqs: 0x{'f' * 5000}}}\n", ":2: args.max-num-seqs"),
    "large decimal": (f"model: m\nargs: {{max-num-seqs: {'9' * 5000}}}\n", ":2: args.max-num-seqs"),
    "NUL": ('model: m\nargs:\n  tokenizer: "a\\0b"\n', ":3: args.tokenizer"),
    "raw NUL": ("model: m\nargs:\n  tokenizer: a\0b\n", ":3: this is not YAML"),
    "escape": ('model: m\ndescription: "\\e]0;PWNED\\a"\n', ":2: description"),
    "C1": ('model: m\ndescription: "\\x9b31m"\n', ":2: description"),
    "half a sign": ('model: "\\ud800"\n', ":1: model"),
    "no sign": ('model: "\\U99999999"\n', "this is not YAML"),
    "env value": ('model: m\nenv: {X: "a\\x01"}\n', ":2: env.X"),
    "env name": ('model: m\nenv: {"A=B": 1}\n', ":2: env.A=B"),
    "no env name": ('model: m\nenv: {"": 1}\n', ":2: env."),
    "env of an arm": ('model: m\nlab: {mtp: {"env.A=B": 1}}\n', ":2: lab.mtp.env.A=B"),
    "key": ('model: m\n"a\\e[31m": 1\n', "control character"),
    "key that is a map": ("model: m\n? {a: b}\n: 1\n", "a key is a word"),
    "quotes": ('model: m\ncommand: "vllm \'serve"\n', ":2: command"),
    "octal": ("model: m\nargs: {max-num-seqs: 010}\n", ":2: args.max-num-seqs"),
    "base 60": ("model: m\nargs: {max-num-seqs: 1:30}\n", ":2: args.max-num-seqs"),
    "underscores": ("model: m\nserver: {port: 1_000}\n", ":2: server.port"),
    "no finite number": ("model: m\nargs: {compilation-config: {c: .nan}}\n", ":2: args.compilation-config.c"),
    "nothing in a list": ('model: m\nargs: {allowed-origins: ["*", null]}\n', ":2: args.allowed-origins"),
    "env name for the shell": ('model: m\nenv: {"$(id)": 1}\n', ":2: env.$(id)"),
    "a verb's name": ("model: m\nlab: {show: {max-num-seqs: 4}}\n", ":2: lab.show"),
    "empty number": ('model: !!float ""\n', ":1: model"),
    "no moment": ("model: !!timestamp x\n", ":1: model"),
    "no truth": ("model: !!bool x\n", ":1: model"),
    "object": ("model: !!python/object:os.system x\n", ":1: model"),
    "bytes": ("model: !!binary aGVsbG8=\n", ":1: model"),
    "equals sign": ("model: m\nargs: {a: =}\n", ":2: args.a"),
    "version": (f"%YAML {'9' * 5000}.1\n---\nmodel: m\n", "this is not YAML"),
    "two documents": ("model: m\n---\nmodel: n\n", "this is not YAML"),
    "endless": ("model: m\nserver: {ready-timeout: .inf}\n", ":2: server.ready-timeout"),
    "no number": ("model: m\nserver: {stop-grace: .nan}\n", ":2: server.stop-grace"),
    "port": ('model: m\nserver: {port: "²"}\n', ":2: server.port"),
    "host": ('model: m\nserver: {host: "[::1"}\n', ":2: server.host"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "presets").mkdir()
    write_preset(tmp_path / "presets", "good", "model: m\n")
    return tmp_path / "presets"


@pytest.mark.parametrize(("text", "says"), _TEXTS.values(), ids=_TEXTS)
def test_a_text_that_is_wrong_is_told_with_its_place_and_hides_nothing(text: str, says: str, folder: Path) -> None:
    (folder / "odd.yaml").write_bytes(text.encode())
    begun = time.process_time()
    found = load_catalog([folder])
    assert time.process_time() - begun < 2, "it is read to its end"
    assert list(found.presets) == ["good"]
    (problem,) = found.problems
    told = str(problem.error)
    assert says in told
    assert problem.error.why
    assert problem.error.fix
    assert len(told) < 600
    assert len(told.splitlines()) == 3


def test_what_is_no_file_is_told_and_hides_nothing(folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    (folder / "zero.yaml").symlink_to("/dev/zero")
    (folder / "folder.yaml").mkdir()
    (folder / "loop.yaml").symlink_to("loop.yaml")
    (folder / "text.yaml").write_bytes(b"model: \xff")
    found = load_catalog([folder])
    assert list(found.presets) == ["good"]
    assert [problem.name for problem in found.problems] == ["folder", "loop", "pipe", "text", "zero"]


def test_a_date_is_the_text_it_is_written_as(folder: Path) -> None:
    write_preset(folder, "dated", "model: m\nargs: {revision: 2024-01-01}\nenv: {D: 2024-01-01 10:00:00}\n")
    found = load_catalog([folder]).get("dated")
    assert (found.args["revision"], found.env["D"]) == ("2024-01-01", "2024-01-01 10:00:00")


def test_a_text_of_several_lines_stays_one(folder: Path) -> None:
    write_preset(folder, "long", "model: m\nargs:\n  chat-template: |\n    a\n    \tb\n")
    assert load_catalog([folder]).get("long").args["chat-template"] == "a\n\tb\n"


@pytest.mark.parametrize(
    "word",
    [
        f"x={'[' * 3000}",
        "x=&a [*a]",
        f"x=1{'0' * 400}",
        f"x=0x{'f' * 5000}",
        'x="a\\0b"',
        "x={<<: {a: 1}}",
        "x=!!float ''",
    ],
)
def test_a_setting_that_is_wrong_is_a_usage_error(word: str) -> None:
    with pytest.raises(UsageError, match="the value of x cannot be read") as caught:
        parse_assignments([word])
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    "text", ["a: &a [*a]\n", "<<: {bell: true}\n", "[" * 3000, "bell: !!bool x\n", 'theme: "\\0"\n']
)
def test_a_configuration_that_is_wrong_is_a_usage_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(text)
    with pytest.raises(UsageError, match=r"config\.yaml"):
        load(tmp_path / "config.yaml")


def test_a_configuration_that_is_no_file_is_a_usage_error(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "config.yaml")


@pytest.mark.parametrize(
    "verb", [("presets",), ("lint",), ("show", "good"), ("show", "odd"), ("ab", "mtp", "--preset", "odd", "--dry-run")]
)
def test_no_verb_ends_in_a_traceback(verb: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (text, _) in enumerate(_TEXTS.values()):
        (folder / f"{'odd' if not number else f'odd-{number}'}.yaml").write_bytes(text.encode())
    code = main(["--presets", str(folder), *verb])
    said = capsys.readouterr()
    assert "Traceback" not in said.err
    assert code == (2 if "odd" in verb or verb == ("lint",) else 0), said.err


def test_the_folder_of_nobody_is_a_note(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("QWEN_CONSOLE_PRESETS", "~nobodyxx/presets")
    assert main(["presets"]) == 0
    assert "there is no folder ~nobodyxx/presets" in capsys.readouterr().err
    assert main(["show", "tiny-cpu"]) == 0


def test_what_stands_under_env_is_text_as_it_is_written(tmp_path: Path) -> None:
    write_preset(tmp_path, "p", "model: m\nenv: {A: 010, B: 1:30, C: 0x1F, D: 1.10, E: 1_000, F: true}\n")
    env = load_catalog([tmp_path]).get("p").env
    assert [env[name] for name in "ABCDEF"] == ["010", "1:30", "0x1F", "1.10", "1_000", "1"]
    assert parse_assignments(["env.A=010"]) == {"env.A": "010"}
    with pytest.raises(UsageError, match="YAML reads 010 as 8"):
        parse_assignments(["max-num-seqs=010"])


def test_a_line_of_ancestors_has_an_end(tmp_path: Path) -> None:
    write_preset(tmp_path, "c0", "model: m\n")
    for i in range(1, 40):
        write_preset(tmp_path, f"c{i}", f"extends: c{i - 1}\n")
    catalog = load_catalog([tmp_path])
    assert set(catalog.presets) == {f"c{i}" for i in range(32)}
    with pytest.raises(UsageError, match="extends 32 files and more"):
        catalog.get("c39")
