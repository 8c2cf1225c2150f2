"""Lines of log, run and farewell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.measures import MEASURES
from console.lab.view import RunView, read_run
from console.paths import Paths
from console.server.status import Phase, ServerStatus, State
from console.tui import preset_lines, run_lines, stories
from console.tui.farewell import crash_report, farewell
from console.tui.log_lines import fold, pretty
from console.tui.situation import Situation
from console.tui.widgets.lines import Line
from tests.tui.fakes import DIAGNOSIS, FAILED, PRESETS, READY, FakeServer, House, shows
from tests.unit.lab_runs import CRASH, Speed, make_run, whole_run


def text_of(line: Line) -> str:
    return "".join(text for text, _ in line)


@pytest.mark.parametrize(
    ("raw", "text", "tone"),
    [
        ("(APIServer pid=7) INFO 11-29 12:00:00 [api_server.py:1] Starting", "12:00:00 Starting", ""),
        ("(EngineCore pid=8) WARNING 11-29 12:00:01 [core.py:2] careful", "12:00:01 W careful", "warn"),
        ("(EngineCore pid=8) ERROR 11-29 12:00:01 [core.py:2] bad", "12:00:01 E bad", "bad"),
        ("INFO:     Application startup complete.", "Application startup complete.", ""),
        ('(Worker_TP0 pid=9)   File "x.py", line 1', '  File "x.py", line 1', ""),
        ("(Worker_TP0 pid=9) RuntimeError: no memory", "RuntimeError: no memory", "bad"),
        ("a [bracket] that is no markup", "a [bracket] that is no markup", ""),
    ],
)
def test_a_log_line_is_cut_to_what_it_says(raw: str, text: str, tone: str) -> None:
    line = pretty(raw)
    assert text_of(line) == text
    assert line[-1][1] == tone


def test_without_room_the_time_is_left_out() -> None:
    assert text_of(pretty("INFO 11-29 12:00:00 [a.py:1] Starting", timed=False)) == "Starting"


def test_bars_are_folded_and_our_own_scrapes_left_out() -> None:
    lines = [
        "load:  10%|#   \rload:  50%|##  \rload: 100%|####",
        'INFO:     127.0.0.1:1 - "GET /metrics HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "POST /tokenize HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
        'INFO:     127.0.0.1:1 - "GET /metrics HTTP/1.1" 401 Unauthorized',
        "\x1b[31mred\x1b[0m",
    ]
    assert list(fold(lines)) == ["load: 100%|####", *lines[3:6], "red"]
    assert list(fold(lines, of_run=True)) == ["load: 100%|####", lines[5], "red"]


def texts(run: RunView, width: int = 78) -> list[str]:
    return [text_of(line) for line in run_lines.run_lines(run, width)]


def test_no_line_of_a_run_is_wider_than_a_small_terminal() -> None:
    for made in (whole_run("mtp"), whole_run("chunk", arms=["512", "1024", "2048"]), whole_run("aa")):
        for line in run_lines.full(read_run(made.folder), 76):
            assert len(text_of(line)) <= 76, text_of(line)


def test_a_crashed_arm_says_its_cause() -> None:
    made = make_run("mtp", rounds=1)
    for place in made.plan.boots():
        crashed = place[2] == "on"
        made.boot(place, Speed(), **({"valid": False, "reason": "crashed", "crash": CRASH} if crashed else {}))
    made.end()
    lines = texts(read_run(made.folder))
    assert any("crashed" in line for line in lines)
    assert any("✖ on" in line for line in lines)
    assert run_lines.winner(read_run(made.folder)) is None


def test_an_interrupted_run_says_so_and_offers_nothing() -> None:
    made = make_run("mtp")
    made.end("interrupted", "`ab stop` ended it")
    run = read_run(made.folder)
    assert texts(run)[0].startswith("◌ interrupted: `ab stop` ended it")
    assert run_lines.winner(run) is None


def test_a_verdict_stands_as_soon_as_it_is_there() -> None:
    run = replace(read_run(whole_run("mtp").folder), state="running", step="starting small again")
    lines = texts(run)
    assert lines[0].startswith("✓ adopt on ")
    assert any("starting small again" in line for line in lines)
    assert run_lines.winner(run) is None


def test_a_simulated_run_says_so_in_its_title() -> None:
    run = replace(read_run(whole_run("mtp").folder), simulated=True)
    assert "SIMULATED" in run_lines.title(run)


def test_a_folder_that_cannot_be_read_is_a_failed_run() -> None:
    run = RunView("20260101-000000-mtp", "failed", problem="its plan.json is missing or cannot be read")
    assert texts(run) == ["✖ failed: its plan.json is missing or cannot be read"]


def test_a_plan_is_told_in_sentences() -> None:
    plan = make_run("chunk", arms=["512", "2048"], rounds=1).plan
    first, change, amount, *_ = run_lines.plan_text(plan)
    assert "512 · 2048 (the preset's own)" in first
    assert change == "512 → 2048: max-num-batched-tokens: 512 → 2048."
    assert amount.startswith("1 round, 2 starts of the server")
    assert "differ" not in first
    assert "they differ in nothing, on purpose" in run_lines.plan_text(make_run("aa", rounds=1).plan)[0]


def test_a_plan_without_the_presets_own_setting_says_so() -> None:
    plan = make_run("chunk", arms=["512", "1024"], rounds=1).plan
    assert run_lines.plan_text(plan)[1] == "None of them is what it runs itself: max-num-batched-tokens 2048."


def test_a_run_says_which_arm_is_the_presets_own_and_what_the_other_changes() -> None:
    run = read_run(whole_run("mtp").folder)
    head = next(line for line in texts(run) if "95 % interval" in line)
    assert head.startswith("off: the preset's own")
    told = "\n".join(text_of(line) for line in run_lines.full(run, 100))
    assert "· off is what small itself runs" in told
    assert "· off → on: speculative-config: not set → {" in told
    assert "v all of the run" not in told
    assert "3 rounds · differs" in told
    three = read_run(make_run("chunk", arms=["512", "1024", "2048"], rounds=1).folder)
    assert three.own_arm == "2048"


def test_an_open_measure_says_what_it_is_just_short_of() -> None:
    """The words rest on a wider interval than the one shown: a reader would take the table for wrong."""
    run = read_run(whole_run("mtp").folder)
    metric = run.metrics["agent.ttft_cold_s"]
    (pair,) = metric.compare
    near = replace(pair, verdict="undecided", short_of="worse", lo=1.002, hi=1.08, ratio=1.04)
    run = replace(run, metrics={"agent.ttft_cold_s": replace(metric, compare=(near,))})
    for width, mark in ((57, "?▼ short"), (78, "?▼ short"), (118, "? just short of worse")):
        name = "time to first token, cold" if width == 118 else "TTFT, cold"
        (row,) = (line for line in texts(run, width) if line.startswith(name))
        assert row.endswith(mark)
        assert len(row) <= width
    open_one = replace(near, short_of=None, more_rounds=3)
    run = replace(run, metrics={"agent.ttft_cold_s": replace(metric, compare=(open_one,))})
    assert any(line.endswith("? about 3 more rounds") for line in texts(run, 118))
    assert any(line.endswith("? open") for line in texts(run, 78))
    assert any(line.endswith("… later") for line in texts(replace(run, state="running", verdict=None), 118))


def test_a_ladder_marks_what_is_passed_under_way_and_to_come() -> None:
    lines = [
        text_of(line) for line in stories.start_story(ServerStatus(State.STARTING, Phase.LOAD, detail="weights 62 %"))
    ]
    assert "✓ start" in lines[1]
    assert lines[2].startswith("▸ load")
    assert "weights 62 %" in lines[2]
    assert lines[3].startswith("· compile")


@pytest.mark.parametrize("height", [6, 10, 12, 30])
def test_a_diagnosis_keeps_to_its_height_and_never_loses_the_fix(height: int) -> None:
    long = replace(DIAGNOSIS, why="because " * 60)
    lines = [text_of(line) for line in stories.diagnosis_story(long, 77, height)]
    assert len(lines) <= height
    assert any(DIAGNOSIS.fix in line for line in lines)
    assert "cause kv-too-small" in lines[-1]


def test_a_flag_is_not_broken_at_its_hyphens() -> None:
    (first, second) = (text_of(line) for line in stories.wrapped("lower the value of --gpu-memory-utilization", 30))
    assert first == "lower the value of"
    assert second == "--gpu-memory-utilization"


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (
            Situation(status=READY, known=True),
            ["keeps running on http://127.0.0.1:8000", "`qwen-console down`"],
        ),
        (Situation(status=ServerStatus(State.STARTING, preset="p"), known=True), ["p goes on starting"]),
        (Situation(status=READY, known=True, run="r1"), ["the A/B run r1 goes on", "`qwen-console ab stop`"]),
        (Situation(known=True), ["no server runs"]),
    ],
)
def test_the_farewell_says_what_goes_on(now: Situation, said: list[str]) -> None:
    (line,) = farewell(now)
    for text in said:
        assert text in line


def test_nothing_is_said_of_a_server_that_is_only_watched() -> None:
    assert list(farewell(Situation(status=READY, known=True, watching=True))) == []


def test_a_fault_of_the_console_is_three_lines_and_a_file() -> None:
    paths = Paths.from_env()
    try:
        raise ValueError("boom")
    except ValueError as error:
        lines = crash_report(paths, error)
    assert lines[0] == "qwen-console: the console itself failed"
    assert "ValueError: boom" in lines[1]
    report = paths.state / "crash.log"
    assert "Traceback" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0


def test_presets_without_a_number_are_said_to_be_reached_otherwise() -> None:
    assert preset_lines.beyond(9, 0, 9) == ""
    assert preset_lines.beyond(9, 0, 5) == "↓4"
    assert preset_lines.beyond(12, 0, 20) == "1-9 or ↑↓"
    assert preset_lines.beyond(12, 6, 5) == "1-9 or ↑↓ · ↑4 ↓3"
    found = [preset_lines.Entry(f"preset-{i}") for i in range(1, 13)]
    rows = [text_of(row) for row in preset_lines.preset_lines(found, 0, READY, width=30, height=12)]
    assert rows[8].startswith(" 9 preset-9")
    assert rows[9].startswith("   preset-10")


async def test_the_list_says_how_a_tenth_preset_is_reached() -> None:
    many = tuple(replace(PRESETS[0], name=f"preset-{i}") for i in range(1, 13))
    for size in ((80, 24), (60, 15), (120, 40)):
        async with House(FakeServer(READY), presets=many).app().run_test(size=size) as pilot:
            await shows(pilot, "─ presets ─", "1-9 or ↑↓")


def test_a_table_without_rows_has_no_head() -> None:
    lines = run_lines.run_lines(read_run(whole_run("mtp").folder), 76)
    head = next(i for i, one in enumerate(lines) if "95 % interval" in text_of(one))
    assert len(run_lines.fitting(lines, head + 1)) == head
    assert len(run_lines.fitting(lines, head + 2)) == head + 2
    assert run_lines.fitting(lines, 99) == lines


@pytest.mark.parametrize(("seconds", "said"), [(0.0, "5 s"), (52.0, "50 s"), (58.0, "1 min"), (95.0, "2 min")])
def test_an_estimate_is_no_finer_than_it_is(seconds: float, said: str) -> None:
    assert stories.about(seconds) == said


async def test_a_note_longer_than_the_line_is_read_whole() -> None:
    async with House(FakeServer(replace(FAILED, preset="one"))).app().run_test(size=(80, 24)) as pilot:
        await shows(pilot, "✖ failed")
        await pilot.press("b")
        text = await shows(pilot, "nothing to go back to")
        said = " ".join(row.strip(" ▸") for row in text.split("\n"))
        assert "no other preset was ready before; r tries it again" in said


def test_the_short_names_of_measures_fit_their_column_and_tell_them_apart() -> None:
    names = [measure.short for measure in MEASURES.values()]
    assert len(set(names)) == len(names)
    assert max(map(len, names)) < 22
