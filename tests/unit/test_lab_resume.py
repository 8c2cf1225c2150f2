"""What a resumed run still has to do, when a run may end early, and what its journal survives."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from console.errors import NothingError, UsageError
from console.lab.conditions import Conditions, changes, deciding, environment_of, fingerprint
from console.lab.journal import BALLAST_FILE, FILE, Journal, JournalError, read_events
from console.lab.plan import make_plan
from console.lab.progress import Progress, progress_of
from console.lab.report import to_json
from console.lab.resume import resume
from console.lab.settling import settled_by
from console.lab.view import read_run
from tests.unit.lab_runs import BASE, CRASH, Made, Speed, drafts, make_run, whole_run


def _cut(made: Made, boots: int) -> None:
    """Boots that ended, then one that was cut short."""
    for place in made.plan.boots()[:boots]:
        made.boot(place, Speed())
    n, round_number, arm = made.plan.boots()[boots]
    with made.journal() as journal:
        journal.add("boot-start", n=n, arm=arm, round=round_number, port=1)
        journal.add("request", n=n, workload="decode", phase="decode", key="decode/0", trace={"outcome": "ok"})


def test_the_first_missing_boot_is_the_one_that_was_cut_short() -> None:
    made = make_run()
    _cut(made, 2)
    progress = progress_of(made.folder)
    assert progress.begun
    assert progress.ended == {1, 2}


def test_a_boot_that_is_made_again_counts_once_and_with_its_new_requests() -> None:
    made = make_run(rounds=2)
    _cut(made, 1)
    with made.journal() as journal:
        journal.add("run-end", state="interrupted", note="stopped by SIGTERM")
        journal.add("resumed", id=made.folder.name, kind="mtp", preset="small")
    assert read_run(made.folder).state == "interrupted"
    for place in made.plan.boots()[1:]:
        made.boot(place, Speed())
    made.end()
    report = to_json(made.folder)
    assert report["state"] == "done"
    assert [boot["n"] for boot in report["boots"]] == [1, 2, 3, 4]
    per_boot = {boot["n"]: sum(boot["outcomes"].values()) for boot in report["boots"]}
    assert len(set(per_boot.values())) == 1
    assert report["verdict"]["overall"] in ("keep", "undecided")


def test_a_whole_run_has_nothing_to_resume_and_an_unknown_one_is_none() -> None:
    made = whole_run()
    with pytest.raises(UsageError, match="is whole"):
        resume(made.paths, made.folder.name)
    with pytest.raises(NothingError):
        resume(made.paths, "1999")


def test_crashes_before_the_cut_still_count() -> None:
    made = make_run()
    for place in made.plan.boots()[:4]:
        crashed = place[2] == "on"
        made.boot(place, Speed(), **({"valid": False, "crash": CRASH, "reason": "crashed"} if crashed else {}))
    progress = progress_of(made.folder)
    assert progress.given_up("on", made.plan) == "it crashed twice"
    assert progress.given_up("off", made.plan) == "no other arm is left to compare it with"
    assert list(progress.crash_notes()) == ["on crashed 2 times and was not booted again"]


def test_a_budget_that_vllm_refuses_is_tried_once_and_named_with_its_sentence() -> None:
    plan = make_plan("chunk", BASE, arms=["512", "1024", "2048"])
    progress = Progress()
    refused = {"cause": "chunk-below-block", "what": "the chunk budget 512 is below the cache block of 1600 tokens"}
    progress.note(1, "512", 9.0, refused)
    assert progress.given_up("512", plan) == refused["what"]
    assert progress.given_up("1024", plan) is None
    assert list(progress.crash_notes()) == [f"512 was skipped: {refused['what']}"]


def test_no_round_is_begun_that_would_not_end_in_time() -> None:
    plan = make_plan("mtp", BASE, size="small", rounds=3, time_budget_s=7200)
    progress = Progress(spans={1: [100.0, 100.0]})
    assert progress.beyond_budget(plan, 1000.0) is None
    assert "3m20s" in str(progress.beyond_budget(plan, 7100.0))
    assert Progress().beyond_budget(plan, 9999.0) is None


def _fast(made: Made, rounds: int, **speed: Any) -> None:
    for place in made.plan.boots():
        if place[1] <= rounds:
            fast = place[2] == "on"
            made.boot(
                place,
                Speed(tpot_s=0.015, step=2, **speed) if fast else Speed(),
                **({"drafts": drafts()} if fast else {}),
            )


def test_a_clear_verdict_ends_a_run_only_where_the_spread_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_run(rounds=5)
    _fast(made, 3)
    assert settled_by(made.folder, made.plan, 2) is None
    # Two degrees of freedom of its own: three boots that lie close together are no ground to end.
    assert settled_by(made.folder, made.plan, 3) is None
    monkeypatch.setattr("console.lab.sequential.LEAST_DF", 2)
    assert "adopt on" in str(settled_by(made.folder, made.plan, 3))


def test_a_run_that_may_not_end_early_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.lab.sequential.LEAST_DF", 2)
    for early, rounds in ((False, 5), (True, 3)):
        made = make_run(rounds=rounds, early=early)
        _fast(made, 3)
        assert settled_by(made.folder, made.plan, 3) is None
        for file in made.folder.iterdir():
            file.unlink()
        made.folder.rmdir()


def test_a_run_that_leans_the_wrong_way_somewhere_is_not_adopted_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.lab.sequential.LEAST_DF", 2)
    made = make_run(rounds=5)
    _fast(made, 3, ttft_s=2.05)
    assert settled_by(made.folder, made.plan, 3) is None


def test_a_settled_run_is_done_and_says_after_how_many_rounds() -> None:
    made = make_run(rounds=5)
    _fast(made, 3)
    with made.journal() as journal:
        journal.add("settled", round=3, text="adopt on: …")
        for n, round_number, arm in made.plan.boots()[6:]:
            journal.add("boot-skipped", n=n, arm=arm, round=round_number, why="settled after 3 of 5 rounds")
        journal.add("measured", state="done")
    made.end()
    view = read_run(made.folder)
    assert (view.state, view.progress) == ("done", 1.0)
    assert view.settled
    assert view.verdict is not None
    assert "settled after 3 of 5 rounds" in view.verdict.sentence


def test_a_run_that_was_cut_short_speaks_no_louder_than_a_look_may() -> None:
    made = make_run(rounds=5)
    _fast(made, 3)
    (pair,) = read_run(made.folder).metrics["agent.ttft_cold_s"].compare
    assert pair.verdict == "undecided"
    assert "p < 0.001" in pair.warnings[0]


def test_a_full_disk_is_a_sentence_and_leaves_room_for_the_end(tmp_path: Path) -> None:
    (tmp_path / FILE).symlink_to("/dev/full")
    journal = Journal(tmp_path, ballast=True)
    assert (tmp_path / BALLAST_FILE).stat().st_size > 100_000
    with pytest.raises(JournalError, match="the disk is full") as caught:
        journal.add("step", text="x")
    assert "resume" in caught.value.fix
    assert os.strerror(errno.ENOSPC) in caught.value.why
    # What comes after is written as far as there is room, so that the arm is stopped all the same.
    journal.add("run-end", state="failed")
    journal.close()
    assert not (tmp_path / BALLAST_FILE).exists()


def test_a_journal_that_cannot_be_opened_is_a_sentence_too(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        Journal(tmp_path / "nowhere")


def test_events_after_a_resume_belong_to_the_same_run() -> None:
    made = make_run()
    with made.journal() as journal:
        journal.add("environment", variables={"VLLM_X": "1"})
        journal.add("primed", n=1, arm="on")
    progress = progress_of(made.folder)
    assert progress.environment == {"VLLM_X": "1"}
    assert progress.primed == {"on"}
    assert read_events(made.folder)[0]["event"] == "run-start"


def test_the_environment_that_decides_is_held_against_the_first_boots() -> None:
    env = {"VLLM_USE_V2_MODEL_RUNNER": "1", "VLLM_API_KEY": "hush", "HOME": "/x", "NCCL_P2P_DISABLE": "1"}
    assert deciding(env, ()) == {"NCCL_P2P_DISABLE": "1", "VLLM_USE_V2_MODEL_RUNNER": "1"}
    assert deciding(env, ("env.NCCL_P2P_DISABLE",)) == {"VLLM_USE_V2_MODEL_RUNNER": "1"}
    conditions = Conditions(())
    assert conditions.problem(env) is None
    assert conditions.problem(env | {"HOME": "/y", "VLLM_API_KEY": "other"}) is None
    assert "NCCL_P2P_DISABLE 1 → 0" in str(conditions.problem(env | {"NCCL_P2P_DISABLE": "0"}))
    assert changes({"A": "1"}, {"B": "2"}) == ["A 1 → unset", "B unset → 2"]
    assert fingerprint({"A": "1"}) == fingerprint({"A": "1"}) != fingerprint({"A": "2"})


def test_our_own_environment_can_be_read_and_a_machine_that_stayed_awake_did_not_sleep() -> None:
    assert environment_of(os.getpid())
    assert environment_of(2**22 + 1) == {}
    from console.timely import asleep_s, slept_since

    assert slept_since(asleep_s()) is None
    assert slept_since(asleep_s() - 100.0) == pytest.approx(100.0, abs=0.5)
