"""Nothing said to a verb is passed over in silence: odd words, options that mean nothing, impossible numbers."""

from __future__ import annotations

import pytest

from console.cli.completion import _AB_RUNS
from console.cli.lab_words import _TAKES
from console.cli.main import main
from console.presets.schema import _TAKEN


def refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of words that nobody can mean; the code is that of a slip."""
    try:
        code = main(list(words))
    except SystemExit as end:
        code = int(end.code or 0)
    told = capsys.readouterr()
    assert (code, told.out) == (2, ""), told
    assert "fix:" in told.err
    return told.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("ab", "list", "x"), "'x' is too much"),
        (("ab", "show", "a", "b"), "'b' is too much"),
        (("ab", "stop", "a", "b"), "'b' is too much"),
        (("ab", "resume", "a", "b"), "'b' is too much"),
        (("ab", "recover", "a", "b"), "'b' is too much"),
        (("ab", "adopt", "a", "b", "c"), "'c' is too much"),
        (("ab", "mtp", "x"), "takes no 'x'"),
        (("ab", "list", "--rounds", "3"), "takes no --rounds"),
        (("ab", "list", "--rounds", "0"), "takes no --rounds"),
        (("ab", "show", "--set", "a=1"), "takes no --set"),
        (("ab", "stop", "--json"), "takes no --json"),
        (("ab", "adopt", "a", "b", "--preset", "p"), "takes no --preset"),
        (("ab", "aa", "--yes"), "takes no --yes"),
        (("ab", "replay", "a.jsonl", "--replay", "b.jsonl"), "takes no --replay"),
        (("ab", "show", ""), "an empty word"),
        (("ab", ""), "an empty word"),
    ],
)
def test_ab_takes_no_word_without_a_meaning(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(words, capsys)


@pytest.mark.parametrize(
    "words",
    [
        ("logs", "-n", "-5"),
        ("logs", "-n", "1e3"),
        ("status", "--window", "0"),
        ("status", "--window", "-1"),
        ("status", "--window", "nan"),
        ("status", "--window", "inf"),
        ("history", "--since", "nand"),
        ("history", "--since", "infd"),
        ("history", "--since", "0d"),
        ("history", "--since=-1d"),
        ("history", "--since", "7"),
        ("down", "--drain", "-1"),
        ("down", "--drain", "nan"),
        ("restart", "--drain", "inf"),
        ("ab", "aa", "--rounds", "0", "--dry-run"),
        ("ab", "aa", "--rounds", "-3", "--dry-run"),
        ("ab", "aa", "--time-budget", "nan", "--dry-run"),
        ("ab", "aa", "--time-budget", "0", "--dry-run"),
        ("ab", "aa", "--time-budget", "2h30", "--dry-run"),
        ("ab", "aa", "--time-budget", "m", "--dry-run"),
        ("probe", "prefix", "--blocks", "0"),
        ("probe", "prefix", "--block-tokens", "0"),
        ("probe", "prefix", "--block-tokens=-5"),
        ("probe", "layout", "a", "b", "--blocks", "3"),
        ("diagnose", "/dev/null", "--silent", "-1", "--alive"),
    ],
)
def test_impossible_numbers_are_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    refused(words, capsys)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--url", "", "status"), "an address is needed"),
        (("status", "--url", ""), "an address is needed"),
        (("--presets", "", "presets"), "a folder is needed"),
        (("lint", ""), "an empty word means nothing"),
        (("up", ""), "an empty word means nothing"),
        (("ab", "mtp", "--arms", ""), "names nothing"),
        (("ab", "mtp", "--arms="), "names nothing"),
        (("ab", "mtp", "--arms", ","), "names nothing"),
        (("ab", "mtp", "--workloads", " , "), "names nothing"),
        (("ab", "aa", "--preset", ""), "an empty word for --preset"),
        (("ab", "replay", ""), "an empty word means nothing"),
        (("ab", "aa", "--replay", ""), "an empty word for --replay"),
        (("probe", "layout", "", ""), "an empty word means nothing"),
        (("diagnose", " "), "an empty word means nothing"),
        (("ab", "aa", "--seed", "9" * 30), "at most 64 bits"),
        (("ab", "aa", "--seed", "9" * 5000), "is no whole number of at most 64 bits"),
        (("restart", "p", "--back"), "`restart --back` takes no preset"),
        (("up", "--no-wait", "--prove"), "--no-wait or --prove"),
        (("diagnose", "/dev/null", "--silent", "5"), "--silent needs --alive"),
    ],
)
def test_what_would_be_passed_over_is_a_slip(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert says in refused(words, capsys)


def test_what_acts_on_runs_is_no_name_for_an_experiment() -> None:
    assert set(_TAKES) <= _TAKEN
    assert set(_AB_RUNS) <= set(_TAKES)
