"""Presets: inheritance, variables, overrides, and errors that point at the line."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from console.errors import UsageError
from console.paths import data
from console.presets import Preset, apply_overrides, argv, load_catalog, parse_assignments, shell_line
from console.presets.catalog import merge, stand_in
from console.presets.overrides import differing_keys
from console.presets.source import PresetError

SHIPPED = (
    "qwen3.8-27b-nvfp4-100k",
    "qwen3.8-27b-nvfp4-100k-mtp",
    "qwen3.8-27b-nvfp4-122k-single",
    "qwen3.8-27b-nvfp4-throughput",
    "tiny-cpu",
)


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.yaml"
    path.write_text(text)
    return path


def only(folder: Path, name: str) -> Preset:
    return load_catalog([folder]).get(name)


def error(folder: Path, name: str) -> PresetError:
    (problem,) = [p for p in load_catalog([folder]).problems if p.name == name]
    return problem.error


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_presets_resolve(name: str) -> None:
    preset = load_catalog([data("presets")]).get(name)
    assert preset.args["tensor-parallel-size"] == 2
    assert shlex.split(shell_line(preset))[-1] != ""


def test_the_default_follows_the_order_of_optimisation() -> None:
    preset = load_catalog([data("presets")]).get("qwen3.8-27b-nvfp4-100k")
    assert preset.args["enable-prefix-caching"] is True
    assert preset.speculative is None
    assert preset.max_model_len == 102400
    words = argv(preset)
    assert "--enable-prefix-caching" in words
    assert "--no-enable-flashinfer-autotune" in words
    assert words[words.index("--kv-cache-memory-bytes") + 1] == "2500000000"


def test_a_base_without_a_model_is_no_preset_and_says_so() -> None:
    catalog = load_catalog([data("presets")])
    assert catalog.bases == {"base-2x5060ti"}
    with pytest.raises(UsageError, match="is a base"):
        catalog.get("base-2x5060ti")


def test_maps_merge_lists_replace_null_removes() -> None:
    base = {"a": {"x": 1, "y": 2}, "l": [1, 2], "gone": 1}
    assert merge(base, {"a": {"y": 3}, "l": [9], "gone": None}) == {"a": {"x": 1, "y": 3}, "l": [9]}


def test_extends_over_folders_and_the_first_file_of_a_name_wins(tmp_path: Path) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    mine.mkdir()
    theirs.mkdir()
    write(theirs, "base", "model: m\nargs: {max-model-len: 100, max-num-seqs: 1}\n")
    write(theirs, "p", "model: theirs\n")
    write(mine, "p", "extends: base\nargs: {max-num-seqs: null, block-size: 16}\n")
    preset = load_catalog([mine, theirs]).get("p")
    assert preset.model == "m"
    assert preset.args == {"max-model-len": 100, "block-size": 16}


def test_flags_of_every_shape(tmp_path: Path) -> None:
    write(
        tmp_path,
        "p",
        "model: m\nserved-name: s\nserver: {port: 1234}\nargs:\n  enforce-eager: true\n  async-scheduling: false\n"
        "  speculative-config: {method: mtp, num_speculative_tokens: 2}\n  cudagraph-capture-sizes: [1, 2]\n",
    )
    words = argv(only(tmp_path, "p"))
    assert words[:9] == ["vllm", "serve", "m", "--host", "127.0.0.1", "--port", "1234", "--served-model-name", "s"]
    assert words[9:11] == ["--enforce-eager", "--no-async-scheduling"]
    assert json.loads(words[words.index("--speculative-config") + 1]) == {"method": "mtp", "num_speculative_tokens": 2}
    assert words[-3:] == ["--cudagraph-capture-sizes", "1", "2"]


@pytest.mark.parametrize(
    ("text", "place", "near"),
    [
        ("model: m\nargz: {}\n", ":2: argz", "args"),
        ("model: m\nargs:\n  max-model-length: 5\n", ":3: args.max-model-length", "max-model-len"),
        (
            "model: m\nargs:\n  enable-prefix-cacheing: true\n",
            ":3: args.enable-prefix-cacheing",
            "enable-prefix-caching",
        ),
        ("model: m\nserver:\n  prot: 1\n", ":3: server.prot", "port"),
        ("model: m\nmax-num-seqs: 4\n", ":2: max-num-seqs", "args:"),
        ("model: m\nargs: {no-async-scheduling: true}\n", ":2: args.no-async-scheduling", "async-scheduling: false"),
        ("model: m\nargs: {port: 8000}\n", ":2: args.port", "server:"),
        ("model: m\nextends: bsae\n", ":2: extends", "base"),
        ("model: m\nserver: {port: 99999}\n", ":2: server.port", "port"),
        ("model: m\nserver: {ready-timeout: soon}\n", ":2: server.ready-timeout", "seconds"),
        ("model: m\nargs: 3\n", ":2: args", "map"),
        ("model: m\nmodel: n\n", ":2: model", "twice"),
        ("model: m\nargs:\n  max-num-seqs: four\n", ":3: args.max-num-seqs", "whole number"),
        ("model: m\nargs:\n  gpu-memory-utilization: 92\n", ":3: args.gpu-memory-utilization", "0.92"),
        ("model: m\nargs: {enforce-eager: 'yes'}\n", ":2: args.enforce-eager", "true or false"),
        ("model: m\nargs: {max-model-len: long}\n", ":2: args.max-model-len", "32k"),
        ("model: m\nargs: {speculative-config: mtp}\n", ":2: args.speculative-config", "a map"),
        ("extends: base\nargs: {block-size: '${NONE_SUCH:-big}'}\n", ":2: args.block-size", "whole number"),
        ("model: m\nlab:\n  chunk: 512\n", ":3: lab.chunk", "list"),
        ("model: m\nlab: {chunk: [2x, many]}\n", ":2: lab.chunk", "2x"),
        ("model: m\nlab: {seqs: 4}\n", ":2: lab.seqs", "map"),
        ("model: m\nlab: {seqs: {max-num-seq: 4}}\n", ":2: lab.seqs.max-num-seq", "max-num-seqs"),
        ("model: m\nlab: {seqs: {max-num-seqs: four}}\n", ":2: lab.seqs.max-num-seqs", "whole number"),
        ("model: m\nlab: {far: {server.prot: 4}}\n", ":2: lab.far.server.prot", "server.port"),
    ],
)
def test_errors_name_file_line_key_and_the_nearest(tmp_path: Path, text: str, place: str, near: str) -> None:
    write(tmp_path, "base", "model: b\n")
    path = write(tmp_path, "p", text)
    found = error(tmp_path, "p")
    assert found.what == f"{path}{place}"
    assert near in found.why + found.fix


@pytest.mark.parametrize(
    "text", ["model: [", "\tmodel: m", "- a\n- b\n", "model: m\nargs: {x: 2020-99-99}\n", "a: !!python/x y"]
)
def test_what_is_no_preset_is_a_problem_and_hides_nothing(tmp_path: Path, text: str) -> None:
    write(tmp_path, "bad", text)
    write(tmp_path, "good", "model: m\n")
    catalog = load_catalog([tmp_path])
    assert list(catalog.presets) == ["good"]
    assert [p.name for p in catalog.problems] == ["bad"]
    assert str(tmp_path / "bad.yaml") in catalog.problems[0].error.what


def test_a_circle_of_extends_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "a", "extends: b\nmodel: m\n")
    write(tmp_path, "b", "extends: a\n")
    assert "itself" in error(tmp_path, "a").fix


def test_a_missing_preset_names_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, "qwen-100k", "model: m\n")
    with pytest.raises(UsageError) as caught:
        only(tmp_path, "qwen-10k")
    assert "`qwen-100k`" in caught.value.fix


def test_what_is_like_nothing_suggests_nothing_odd(tmp_path: Path) -> None:
    for name in ("base-2x", "qwen-100k", "tiny-cpu"):
        write(tmp_path, name, "model: m\n")
    for word, near in (("nope", None), ("tiny", "tiny-cpu"), ("qwen100k", "qwen-100k")):
        with pytest.raises(UsageError) as caught:
            only(tmp_path, word)
        assert caught.value.fix.startswith(f"did you mean `{near}`" if near else "`qwen-console presets`"), word


def test_what_nobody_reads_is_said(tmp_path: Path) -> None:
    write(tmp_path, "p", "model: m\ndescription: one\n")
    (tmp_path / "p.yml").write_text("model: n\n")
    (tmp_path / "only.yml").write_text("extends: p\n")
    write(tmp_path, "base", "args: {max-num-seqs: 1}\n")
    write(tmp_path, "child", "extends: base\nmodel: m\n")
    write(tmp_path, "forgotten", "args: {max-num-seqs: 1}\n")
    catalog = load_catalog([tmp_path])
    assert catalog.bases == {"base", "forgotten"}
    assert len(catalog.notes) == 2
    assert "p.yml is not read" in catalog.notes[0]
    assert "forgotten.yaml has no model" in catalog.notes[1]
    assert (catalog.get("only").description, catalog.get("p").description) == ("extends p", "one")


def test_overrides_change_args_env_and_server(tmp_path: Path) -> None:
    write(tmp_path, "p", "model: m\nargs: {max-num-seqs: 2, block-size: 16}\n")
    preset = only(tmp_path, "p")
    words = ["max_num_seqs=4", "block-size=", "env.A=true", "server.port=0", "speculative-config={method: mtp}"]
    changed = apply_overrides(preset, parse_assignments(words))
    assert changed.args == {"max-num-seqs": 4, "speculative-config": {"method": "mtp"}}
    assert changed.env == {"A": "1"}
    assert changed.server.port == 0
    assert differing_keys(preset, changed) == (
        "max-num-seqs",
        "block-size",
        "speculative-config",
        "env.A",
        "server.port",
    )


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("max-num-seq=4", "max-num-seqs"),
        ("server.prot=1", "server.port"),
        ("x", "key=value"),
        ("a={", "cannot be read"),
        ("foo=1", "no flag --foo"),
        ("max-num-seqs=four", "whole number"),
    ],
)
def test_bad_overrides_name_the_nearest_key(tmp_path: Path, word: str, says: str) -> None:
    write(tmp_path, "p", "model: m\n")
    with pytest.raises(UsageError) as caught:
        apply_overrides(only(tmp_path, "p"), parse_assignments([word]))
    assert says in str(caught.value)


def test_a_stand_in_keeps_the_flags_and_takes_a_port_of_its_own() -> None:
    preset = load_catalog([data("presets")]).get(SHIPPED[0])
    double = stand_in(preset, ["python", "-m", "console.sim"])
    assert double.simulated
    assert double.server.port == 0
    assert double.args == preset.args
    assert argv(double)[:4] == ["python", "-m", "console.sim", preset.model]


def test_all_that_is_wrong_with_a_file_is_said_at_once(tmp_path: Path) -> None:
    write(tmp_path, "bad", "model: m\nargz: {}\nargs:\n  max-model-length: 3\nserver: {prot: 1}\nlab: {chunk: 3}\n")
    found = error(tmp_path, "bad")
    assert found.what.endswith("bad.yaml:2: argz")
    for also in ("bad.yaml:4: args.max-model-length", "bad.yaml:5: server.prot", "bad.yaml:6: lab.chunk"):
        assert f"also: {also}" in found.fix
    write(tmp_path, "values", "model: m\nargs: {max-num-seqs: four, enforce-eager: 3}\n")
    assert "values.yaml:2: args.enforce-eager" in error(tmp_path, "values").fix


def test_a_file_that_ends_too_early_is_wrong_on_a_line_that_it_has(tmp_path: Path) -> None:
    write(tmp_path, "bad", "model: m\nargs: {a: 1\n")
    assert "bad.yaml:2: this is not YAML" in error(tmp_path, "bad").what
