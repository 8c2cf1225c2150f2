"""What stands behind an adopted arm: who does not advise it says so, in the question and in the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from console.cli.house import House
from console.cli.main import main
from console.cli.screen import services
from console.errors import ConsoleError, UsageError
from console.lab.adopt import adopt, caution
from console.lab.own_arm import own_arm
from console.lab.view import read_run
from console.paths import Paths
from console.presets import Preset
from console.tui.run_lines import winner
from tests.unit.lab_runs import BASE, MTP, Made, Speed, drafts, make_run, whole_run


def _description(path: Path) -> str:
    return str(yaml.safe_load(path.read_text())["description"])


def _no_better() -> Made:
    made = make_run()
    for place in made.plan.boots():
        made.boot(place, Speed())
    made.end()
    return made


def test_an_advised_arm_needs_no_caution_and_its_file_says_adopt() -> None:
    made = whole_run()
    assert caution(made.paths, made.folder.name, "on") is None
    assert _description(adopt(made.paths, made.folder.name, "on")).endswith("(verdict: adopt)")


def test_an_arm_that_the_verdict_does_not_advise_is_named_as_such() -> None:
    made = _no_better()
    assert "does not advise the arm on, its verdict is keep" in str(caution(made.paths, made.folder.name, "on"))
    assert _description(adopt(made.paths, made.folder.name, "on")).endswith("(verdict: keep)")


def test_a_run_that_did_not_end_and_equal_arms_advise_nothing() -> None:
    cut = make_run()
    cut.boot(cut.plan.boots()[0], Speed())
    cut.end("interrupted", "stopped by SIGTERM")
    assert caution(cut.paths, cut.folder.name, "on") == "the run is interrupted: it advises nothing"


def test_what_a_stand_in_measured_says_so_in_the_preset() -> None:
    made = whole_run(base=Preset("demo", "m", lab={"mtp": MTP}, simulated=True))
    assert _description(adopt(made.paths, made.folder.name, "on")).startswith("SIMULATED")


@pytest.mark.parametrize(("words", "typed", "written"), [([], "n\n", 0), ([], "y\n", 1), (["--yes"], "", 1)])
def test_at_a_terminal_it_asks_first(
    words: list[str],
    typed: str,
    written: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    made = _no_better()
    # What is adopted extends the preset that was measured: its file has to be there.
    (tmp_path / "small.yaml").write_text("model: m\n")
    monkeypatch.setenv("QWEN_CONSOLE_PRESETS", str(tmp_path))

    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return typed

    monkeypatch.setattr("sys.stdin", Terminal())
    code = main(["ab", "adopt", made.folder.name, "on", *words])
    assert code == (0 if written else 1)
    assert len(list(made.paths.own_presets.glob("small-on*.yaml"))) == written
    error = capsys.readouterr().err
    assert "does not advise the arm on" in error
    assert ("all the same?" in error) == (not words)


def _adopted(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def test_adopt_writes_only_what_differs_and_never_over_a_file() -> None:
    made = whole_run(changes={"env.X": "1"})
    first = adopt(made.paths, made.folder.name, "on")
    assert first == made.paths.own_presets / "small-on.yaml"
    body = _adopted(first)
    assert body["extends"] == "small"
    assert body["args"] == MTP
    assert body["env"] == {"X": "1"}
    assert "20260101-000000-mtp" in body["description"]


def test_what_was_adopted_is_not_written_twice_and_what_the_user_changed_is_left_alone() -> None:
    made = whole_run()
    first = adopt(made.paths, made.folder.name, "on")
    with pytest.raises(UsageError, match="small-on is there already"):
        adopt(made.paths, made.folder.name, "on")
    first.write_text(first.read_text() + "env: {X: changed}\n")
    assert adopt(made.paths, made.folder.name, "on").name == "small-on-2.yaml"
    assert [path.name for path in sorted(made.paths.own_presets.glob("*.yaml"))] == ["small-on-2.yaml", "small-on.yaml"]


def test_adopting_what_removes_a_key_writes_null() -> None:
    base = Preset("fast", "m", args=MTP)
    made = whole_run(base=base)
    assert _adopted(adopt(made.paths, made.folder.name, "off"))["args"] == {"speculative-config": None}
    with pytest.raises(UsageError, match="as it is"):
        adopt(made.paths, made.folder.name, "on")
    with pytest.raises(UsageError, match="no arm"):
        adopt(made.paths, made.folder.name, "n7")


FAST = Preset("fast", "m", args={"max-model-len": 8192, **MTP})


def _mtp_run(*, slow: str = "", rounds: int = 3, state: str = "done") -> Made:
    """A run of a preset that speculates; `slow` names the arm that writes slower."""
    made = make_run(base=FAST, rounds=rounds)
    for place in made.plan.boots():
        on = {"drafts": drafts()} if place[2] == "on" else {}
        made.boot(place, Speed(0.040 if place[2] == slow else 0.030), **on)
    made.end(state)
    return made


@pytest.mark.parametrize(
    ("made", "word", "says"),
    [
        ({"slow": "on"}, "keep", None),
        ({}, "keep", "does not advise the arm off, its verdict is keep: off holds: "),
        ({"slow": "off"}, "adopt on", "does not advise the arm off, its verdict is adopt: adopt on"),
        ({"slow": "on", "rounds": 2}, "undecided", "does not advise the arm off, its verdict is undecided: 2 rounds"),
        ({"rounds": 1}, "undecided", "does not advise the arm off, its verdict is undecided: one round"),
        ({"state": "interrupted"}, "none, the run did not end", "the run is interrupted: it advises nothing"),
    ],
)
def test_the_first_arm_is_adopted_with_the_verdict_of_its_run(
    made: dict[str, Any],
    word: str,
    says: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = _mtp_run(**made)
    (tmp_path / "fast.yaml").write_text("model: m\n")
    monkeypatch.setenv("QWEN_CONSOLE_PRESETS", str(tmp_path))
    assert main(["ab", "adopt", run.folder.name, "off"]) == 0
    told = capsys.readouterr()
    assert _description(Path(told.out.strip())).endswith(f"(verdict: {word})")
    assert ("advise" in told.err) == (says is not None)
    assert (says or "written; start it") in told.err


def test_of_an_arm_with_nothing_to_write_only_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = _no_better()
    (tmp_path / "small.yaml").write_text("model: m\n")
    monkeypatch.setenv("QWEN_CONSOLE_PRESETS", str(tmp_path))
    assert main(["ab", "adopt", made.folder.name, "off"]) == 2
    error = capsys.readouterr().err
    assert "the arm off is the preset small as it is" in error
    assert "advise" not in error


def test_an_arm_whose_preset_is_gone_is_not_offered_on_the_screen_either() -> None:
    made = whole_run()
    with pytest.raises(ConsoleError, match=f"there is no preset {made.plan.base.name} any more"):
        services(House(Paths.from_env())).draft(made.folder.name, "on")


def test_an_arm_that_the_preset_runs_already_is_not_written_nor_offered() -> None:
    base = replace(BASE, args={**BASE.args, "max-num-seqs": 2})
    made = whole_run("custom", base, a={"max-num-seqs": 1}, b={"max-num-seqs": 2})
    assert own_arm(made.plan) == "b"
    with pytest.raises(UsageError, match=r"the arm b is the preset .* as it is"):
        adopt(made.paths, made.folder.name, "b")
    run = read_run(made.folder)
    assert run.verdict is not None
    advised = replace(run, verdict=replace(run.verdict, overall="adopt", arm="b"))
    assert winner(advised) is None
    assert winner(replace(advised, own_arm=None)) == "b"
