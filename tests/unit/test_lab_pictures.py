"""The pictures of a report: valid SVG, every boot in them, and the moment the long prompt arrives."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from console.lab.pictures import picture_names
from console.lab.report import to_json, write_reports
from console.lab.results import Results, read_results
from console.lab.svg import Chart, ticks
from tests.unit.lab_runs import Speed, make_run, whole_run

_SVG = "{http://www.w3.org/2000/svg}"


def _results(folder: Path) -> Results:
    results = read_results(folder)
    assert results is not None
    return results


def _shapes(path: Path) -> dict[str, int]:
    root = ElementTree.fromstring(path.read_text())
    assert root.tag == f"{_SVG}svg"
    found: dict[str, int] = {}
    for element in root.iter():
        found[element.tag.removeprefix(_SVG)] = found.get(element.tag.removeprefix(_SVG), 0) + 1
        for name in ("cx", "cy", "x", "y", "width", "height"):
            if (value := element.get(name)) is not None:
                assert -50 <= float(value) <= 800
    return found


def test_a_report_has_its_pictures_beside_it() -> None:
    folder = whole_run().folder
    write_reports(folder)
    named = to_json(folder)["pictures"]
    assert {row["file"] for row in named} >= {"rounds-decode-tpot_s.svg", "gaps.svg", "acceptance.svg"}
    page = (folder / "report.md").read_text()
    for row in named:
        assert f"![{row['shows']}]({row['file']})" in page
        assert _shapes(folder / row["file"])


def test_every_boot_is_a_dot_and_every_arm_has_its_interval() -> None:
    folder = whole_run().folder
    write_reports(folder)
    # Three boots of either arm, and their medians.
    assert _shapes(folder / "rounds-decode-tpot_s.svg")["circle"] == 2 * 3 + 2


def test_the_gap_picture_shows_when_the_long_prompt_came() -> None:
    folder = whole_run().folder
    write_reports(folder)
    assert "long prompt arrives" in (folder / "gaps.svg").read_text()


def test_acceptance_has_a_bar_a_position() -> None:
    folder = whole_run().folder
    write_reports(folder)
    # The ground, a mark in the legend, two positions.
    assert _shapes(folder / "acceptance.svg")["rect"] == 1 + 2


def test_a_run_without_boots_has_no_pictures() -> None:
    assert picture_names(_results(make_run().folder)) == []


def test_one_boot_is_enough_for_a_picture() -> None:
    made = make_run(rounds=1)
    made.boot(made.plan.boots()[0], Speed())
    write_reports(made.folder)
    assert _shapes(made.folder / "rounds-decode-tpot_s.svg")["circle"] == 2


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.0, 10.0, [0, 2, 4, 6, 8, 10]), (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]), (-3.0, 7.0, [-2, 0, 2, 4, 6])],
)
def test_ticks_are_round_numbers_within_the_range(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == pytest.approx(expected)


def test_ticks_of_nothing_are_one() -> None:
    assert ticks(3.0, 3.0) == [3.0]
    assert ticks(0.0, float("inf")) == [0.0]


def test_text_cannot_break_the_picture() -> None:
    chart = Chart("a < b & c", "x", "y", (0, 1), (0, 1))
    chart.name("<arm>", "#000000")
    chart.upright(0.5, "</svg>")
    chart.level(0.5, "half")
    assert ElementTree.fromstring(chart.render()) is not None
