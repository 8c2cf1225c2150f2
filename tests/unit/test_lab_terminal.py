"""What a terminal shows of a run: the report's own numbers, every word explained, and what one round cannot say."""

from __future__ import annotations

from textwrap import wrap
from typing import Any

import pytest

from console import units
from console.lab.markdown import render as page_of
from console.lab.markdown import value
from console.lab.measures import MEASURES, said
from console.lab.plan import Known
from console.lab.probing import NO_MEMORY
from console.lab.report import to_json, write_reports
from console.lab.terminal import WIDTH, render
from console.lab.view import read_run
from console.lab.words import CHANGE, MEASURE, ONE_ROUND, PARTING, RUN
from tests.unit.lab_runs import CRASH, Made, Speed, drafts, make_run, whole_run


def _report(made: Made) -> dict[str, Any]:
    write_reports(made.folder)
    return to_json(made.folder)


def test_the_table_holds_the_numbers_of_the_report() -> None:
    report = _report(whole_run())
    text = render(report)
    lines = text.splitlines()
    for name, metric in report["metrics"].items():
        assert name not in text
        (pair,) = metric["compare"]
        # A long title goes on below its row.
        first, *more = wrap(said(name), 36, subsequent_indent="  ")
        row = next(
            line for i, line in enumerate(lines) if line.startswith(first) and lines[i + 1 :][: len(more)] == more
        )
        for arm in ("off", "on"):
            assert value(name, metric["arms"][arm]["median"]) in row
        assert units.change(pair["ratio"]) in row
        assert pair["verdict"] in row
    assert text.splitlines()[0] == "mtp on small: off (what small runs) against on"
    assert f"whole report with pictures: {report['journal'].removesuffix('journal.jsonl')}report.md" in text


def test_sentences_fit_the_width_and_several_arms_have_a_row_each() -> None:
    made = make_run("mtp", arms=["1", "2"])
    for place in made.plan.boots():
        made.boot(place, Speed(), drafts=None if place[2] == "off" else drafts())
    made.end()
    lines = render(_report(made)).splitlines()
    assert sum(line.startswith("time per output token  ") for line in lines) == 2
    assert sum(line.startswith("speculation, n") for line in lines) == 2
    tables = (*{said(name)[:20] for name in MEASURES}, "measure", "whole report", "run ")
    assert all(len(line) <= WIDTH for line in lines if not line.startswith(tables))


@pytest.mark.parametrize("rendered", [render, page_of])
def test_every_word_that_is_used_is_explained(rendered: Any) -> None:
    report = _report(whole_run())
    text = " ".join(rendered(report).split())
    assert RUN["adopt"] in text
    for word in {pair["verdict"] for metric in report["metrics"].values() for pair in metric["compare"]}:
        assert MEASURE[word] in text


@pytest.mark.parametrize("rendered", [render, page_of])
def test_an_interval_of_one_round_is_marked(rendered: Any) -> None:
    earlier = whole_run()
    write_reports(earlier.folder)
    made = make_run(rounds=1, kind="aa")
    for place in made.plan.boots():
        made.boot(place, Speed())
    made.end()
    rows = [line for line in rendered(_report(made)).splitlines() if "time per output token" in line and "%" in line]
    assert any(ONE_ROUND in row for row in rows)
    assert not any(ONE_ROUND in line for line in rendered(to_json(earlier.folder)).splitlines())


def test_equal_arms_end_in_a_noise_floor_and_a_cut_run_in_its_state() -> None:
    equal = make_run("aa")
    for place in equal.plan.boots():
        equal.boot(place, Speed())
    equal.end()
    assert read_run(equal.folder).word == "noise floor"
    assert "noise floor: with 3 rounds equal arms come apart by up to" in render(_report(equal)).replace("\n  ", " ")
    cut = make_run()
    cut.boot(cut.plan.boots()[0], Speed())
    cut.end("interrupted", "stopped by SIGTERM")
    assert read_run(cut.folder).word == "interrupted"
    text = render(_report(cut)).replace("\n  ", " ")
    assert "interrupted: the run was cut short after 1 of 6 boots" in text
    assert "`qwen-console ab resume ID`" in text


def test_a_cache_block_that_a_server_told_is_no_longer_unknown() -> None:
    made = make_run(rounds=1, known=Known())
    assert any("is not known before" in note for note in made.plan.notes)
    made.boot(made.plan.boots()[0], Speed(), env={"block_tokens": 1600})
    assert not any("no server has told" in text for text in to_json(made.folder)["warnings"])
    made.boot(made.plan.boots()[1], Speed(), env={"block_tokens": 256})
    said = " / ".join(to_json(made.folder)["warnings"])
    assert "no server has told" not in said


def test_a_crash_is_in_the_first_sentence() -> None:
    made = make_run(rounds=2)
    for place in made.plan.boots():
        crash = {} if place[2] == "off" else {"valid": False, "crash": CRASH, "reason": f"crashed: {CRASH['what']}"}
        made.boot(place, Speed(), **crash)
    made.end()
    text = render(_report(made))
    assert text.splitlines()[3].startswith("keep: off holds: on crashed (2 of its boots)")


@pytest.mark.parametrize("rendered", [render, page_of])
def test_one_round_of_equal_arms_has_nothing_to_choose_and_answers_that_part_are_explained(rendered: Any) -> None:
    made = make_run("aa", rounds=1)
    for place in made.plan.boots():
        made.boot(place, Speed(words=100 + place[0]))
    made.end()
    text = " ".join(rendered(_report(made)).split())
    assert "too few rounds for a noise floor" in text
    assert "change nothing" not in text
    assert PARTING in text


@pytest.mark.parametrize("rendered", [render, page_of])
def test_where_a_change_stands_it_says_what_it_is(rendered: Any) -> None:
    assert CHANGE in " ".join(rendered(_report(whole_run())).split())


def test_a_probe_that_was_not_asked_is_no_silent_zero() -> None:
    made = make_run()
    for place in made.plan.boots():
        made.boot(place, Speed(), probes={"long_context": {"passed": 0, "of": 0, "note": NO_MEMORY}})
    made.end()
    report = _report(made)
    assert f"n/a ({NO_MEMORY})" in render(report)
    assert f"| recall at length | n/a | {NO_MEMORY} |" in page_of(report)
    assert "0 of 0" not in render(report) + page_of(report)


def test_a_verdict_names_measures_as_people_do_and_repeats_no_row_of_the_table() -> None:
    report = _report(whole_run())
    told = " ".join((report["verdict"]["sentence"], *report["verdict"]["why"]))
    assert "time per output token -50.0 %" in told
    assert "time to first token (cold)" in told
    assert not any(name in told for name in report["metrics"])
    head = render(report).split("measure (judged)")[0]
    assert not any(line.startswith("- time") for line in head.splitlines())
