"""Variables in presets: from the environment, missing, and the secrets among them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from console.errors import UsageError
from console.lint import Ground, Weight, lint
from console.presets import Preset, apply_overrides, child_env, parse_assignments, shell_line
from console.presets.catalog import stand_in
from tests.unit.test_presets import error, only, write


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


def test_variables_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "/models")
    write(tmp_path, "p", 'model: ${WHERE}/m\nenv: {A: "${NOT_SET:-fallback}", B: 1, C: true}\n')
    preset = only(tmp_path, "p")
    assert preset.model == "/models/m"
    assert preset.env == {"A": "fallback", "B": "1", "C": "1"}


def test_an_unset_variable_is_listed_and_refuses_the_start(tmp_path: Path) -> None:
    path = write(tmp_path, "p", "model: m\nargs: {quantization: '${HOW}'}\nenv:\n  A: ${SURELY_NOT_SET}\n")
    preset = only(tmp_path, "p")
    assert [missing.variable for missing in preset.unset] == ["HOW", "SURELY_NOT_SET"]
    with pytest.raises(UsageError) as caught:
        preset.see_whole()
    assert caught.value.what == f"{path}:2: args.quantization"
    assert "HOW" in caught.value.why
    assert "export HOW=" in caught.value.fix
    assert "${HOW:-}" in caught.value.fix
    said = apply_overrides(preset, parse_assignments(["quantization=fp8", "env.A=1"]))
    said.see_whole()


def test_a_key_that_is_not_set_refuses_the_start_unless_the_file_allows_it(tmp_path: Path) -> None:
    """A server that was meant to be closed must not come up open, whatever shell it is started from."""
    write(tmp_path, "closed", "model: m\nenv: {VLLM_API_KEY: '${VLLM_API_KEY}'}\n")
    write(tmp_path, "either", "model: m\nenv: {VLLM_API_KEY: '${VLLM_API_KEY:-}'}\n")
    closed, either = (only(tmp_path, name) for name in ("closed", "either"))
    with pytest.raises(UsageError) as caught:
        closed.see_whole()
    assert "VLLM_API_KEY" in caught.value.why
    assert closed.api_key is None
    closed.see_whole(keyless=True)
    either.see_whole()
    assert (either.api_key, either.env, either.secrets) == (None, {}, frozenset())
    with pytest.raises(UsageError, match=r"env\.VLLM_API_KEY"):
        stand_in(closed, ["sim"]).see_whole()
    stand_in(either, ["sim"]).see_whole()


def test_what_a_default_leaves_empty_is_left_out(tmp_path: Path) -> None:
    env = "env: {A: '${NONE_SUCH:-}', B: ''}"
    write(tmp_path, "p", f"model: m\nargs: {{max-num-seqs: '${{NONE_SUCH:-}}', block-size: 16}}\n{env}\n")
    preset = only(tmp_path, "p")
    assert (preset.args, preset.env, preset.unset) == ({"block-size": 16}, {"B": ""}, ())


def test_a_variable_of_the_address_is_needed_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, "p", "model: m\nserver:\n  port: ${NO_SUCH_PORT}\n")
    assert error(tmp_path, "p").what == f"{path}:3: server.port"
    assert "NO_SUCH_PORT" in error(tmp_path, "p").why


def test_secrets_reach_the_server_but_neither_disk_nor_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "p", "model: m\nenv: {VLLM_API_KEY: '${VLLM_API_KEY}', HF_TOKEN: '${HF_TOKEN}'}\n")
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setenv("VLLM_API_KEY", "sesame")
    preset = only(tmp_path, "p")
    assert preset.api_key == "sesame"
    assert child_env(preset)["VLLM_API_KEY"] == "sesame"
    assert "HF_TOKEN" not in preset.env
    kept = json.dumps(preset.to_json())
    assert "sesame" not in kept
    assert "sesame" not in shell_line(preset)
    assert '"$VLLM_API_KEY"' in shell_line(preset)
    assert Preset.from_json(json.loads(kept), {"VLLM_API_KEY": "sesame"}) == preset


def test_a_key_of_the_shell_counts_as_the_presets_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "p", "model: m\n")
    monkeypatch.setenv("VLLM_API_KEY", "sesame")
    preset = only(tmp_path, "p")
    assert preset.api_key == "sesame"
    assert preset.secrets == {"VLLM_API_KEY"}


def test_a_variable_on_the_command_line_is_what_it_is_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "/models")
    assert parse_assignments(["env.A=${WHERE}/m", "env.B=${NONE_SUCH:-}", "max-num-seqs=${NONE_SUCH:-4}"]) == {
        "env.A": "/models/m",
        "env.B": None,
        "max-num-seqs": "4",
    }
    with pytest.raises(UsageError) as caught:
        parse_assignments(["env.FOO=${NOTHERE}"])
    assert (caught.value.what, "NOTHERE" in caught.value.why) == ("--set: env.FOO", True)
    assert "export NOTHERE=" in caught.value.fix


def test_a_secret_on_the_command_line_stays_one_or_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", "sesame")
    preset = apply_overrides(Preset("p", "m"), parse_assignments(["env.HF_TOKEN=${MY_TOKEN}"]))
    assert dict(preset.env) == {"HF_TOKEN": "sesame"}
    assert preset.secrets == {"HF_TOKEN"}
    with pytest.raises(UsageError, match=r"env\.FOO") as caught:
        parse_assignments(["env.FOO=${MY_TOKEN}"])
    assert "sesame" not in str(caught.value)


def test_lint_names_what_is_not_set(tmp_path: Path) -> None:
    write(tmp_path, "p", "model: m\nargs: {quantization: '${HOW}'}\nenv: {A: '${SURELY_NOT_SET}'}\n")
    for preset in (only(tmp_path, "p"), stand_in(only(tmp_path, "p"), ["sim"])):
        found = [one for one in lint(preset, Ground()) if one.rule == "variable-unset"]
        assert [(one.key, one.weight) for one in found] == [("quantization", Weight.BAD), ("env.A", Weight.BAD)]
        assert "SURELY_NOT_SET" in found[1].what
