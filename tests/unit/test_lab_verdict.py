"""The overall verdict: what it takes to say adopt, and what each thing that is wrong makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from console.lab.verdict import ArmState, Finding, overall

OFF = ArmState("off", 3, probes={"tool_call": (8, 8)})
ON = ArmState("on", 3, speculates=True, acceptance=(0.8, 0.78), probes={"tool_call": (8, 8)})


def _found(name: str, verdict: str, ratio: float | None = 0.5) -> Finding:
    bounds = (None, None) if ratio is None else (ratio * 0.98, ratio * 1.02)
    return Finding(name, name, verdict, ratio, *bounds)


FAST = [_found("decode.tpot_s", "better"), _found("agent.ttft_cold_s", "equivalent", 1.0)]


def test_faster_and_nothing_else_worse_is_adopted() -> None:
    verdict = overall("mtp", 3, OFF, ON, FAST)
    assert verdict.overall == "adopt"
    assert "decode.tpot_s -50.0 % [-51.0 %, -49.0 %]: better" in verdict.sentence
    assert len(verdict.why) == 2


@pytest.mark.parametrize(
    ("words", "result"),
    [
        (("better", "undecided"), "undecided"),
        (("better", "worse"), "keep"),
        (("worse", "equivalent"), "keep"),
        (("equivalent", "equivalent"), "keep"),
        (("equivalent", "better"), "keep"),
        (("undecided", "better"), "undecided"),
        (("undecided", "equivalent"), "undecided"),
    ],
)
def test_speed_decides_by_text_first(words: tuple[str, str], result: str) -> None:
    findings = [_found("decode.tpot_s", words[0]), _found("agent.ttft_cold_s", words[1], 1.2)]
    assert overall("mtp", 3, OFF, ON, findings, primary="decode.tpot_s").overall == result


def test_what_the_run_is_about_must_have_been_measured() -> None:
    found = [_found("agent.ttft_cold_s", "better")]
    verdict = overall("mtp", 3, OFF, ON, found, primary="decode.tpot_s")
    assert verdict.overall == "undecided"
    assert "the run is about time per output token, and that was not measured" in verdict.sentence


def test_an_arm_of_which_no_draft_was_counted_is_not_adopted() -> None:
    verdict = overall("mtp", 3, OFF, replace(ON, acceptance=(None, None)), FAST, primary="decode.tpot_s")
    assert verdict.overall == "undecided"
    assert "no draft of on was counted" in verdict.sentence


def test_for_chunk_budgets_any_measure_may_decide() -> None:
    findings = [_found("decode.tpot_s", "equivalent", 1.0), _found("agent.ttft_cold_s", "better", 0.9)]
    small, large = ArmState("512", 3), ArmState("2048", 3)
    assert overall("chunk", 3, small, large, findings).overall == "adopt"


def test_a_trade_says_from_where_on_it_pays() -> None:
    findings = [_found("decode.tpot_s", "better"), _found("agent.ttft_warm_s", "worse", 3.0)]
    verdict = overall("mtp", 3, OFF, ON, findings, break_even=98.4)
    assert verdict.overall == "keep"
    assert verdict.sentence.endswith("it pays for answers of more than about 98 tokens")


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        (replace(ON, acceptance=(0.8, 0.1)), "acceptance fell from 80% to 10%"),
        (replace(ON, acceptance=(0.0, 0.0)), "not one draft was accepted"),
        (replace(ON, probes={"tool_call": (6, 8)}), "tool call holds in 6 of 8 on on, in 8 of 8 on off"),
    ],
)
def test_speed_alone_is_not_enough(arm: ArmState, words: str) -> None:
    verdict = overall("mtp", 3, OFF, arm, FAST)
    assert verdict.overall == "keep"
    assert words in verdict.sentence


def test_what_no_arm_can_do_is_not_held_against_one() -> None:
    off, on = replace(OFF, probes={"tool_call": (0, 8)}), replace(ON, probes={"tool_call": (0, 8)})
    assert overall("mtp", 3, off, on, FAST).overall == "adopt"


def test_a_crash_is_a_result() -> None:
    verdict = overall("mtp", 0, OFF, replace(ON, crashes=("the engine died", "the engine died")), [])
    assert verdict.overall == "keep"
    assert "on crashed (2 of its boots): the engine died" in verdict.sentence


def test_a_base_that_crashes_makes_the_run_invalid() -> None:
    assert overall("mtp", 0, replace(OFF, crashes=("no",)), ON, []).overall == "invalid"


def test_no_valid_round_is_invalid_with_its_reason() -> None:
    verdict = overall("mtp", 0, OFF, replace(ON, invalid=("foreign traffic: 3 requests",)), [])
    assert verdict.overall == "invalid"
    assert "foreign traffic" in verdict.sentence


def test_one_round_suggests() -> None:
    verdict = overall("mtp", 1, OFF, ON, [_found("decode.tpot_s", "undecided")])
    assert verdict.overall == "undecided"
    assert "only suggests" in verdict.sentence


def test_equal_arms_give_the_noise_floor() -> None:
    findings = [_found("decode.tpot_s", "undecided", 1.01), _found("agent.ttft_cold_s", "worse", 1.05)]
    verdict = overall("aa", 3, ArmState("a1", 3), ArmState("a2", 3), findings)
    assert verdict.overall == "keep"
    assert "±2.0 %" in verdict.sentence
    assert "chance" in verdict.sentence
    assert overall("aa", 1, ArmState("a1", 1), ArmState("a2", 1), findings).overall == "undecided"


def _spanned(name: str, verdict: str, ratio: float, lo: float, hi: float, *, lower: bool = True) -> Finding:
    return Finding(name, name, verdict, ratio, lo, hi, lower_is_better=lower)


@pytest.mark.parametrize(
    ("ratio", "lo", "hi", "result"),
    [(0.90, 0.86, 0.94, "adopt"), (0.90, 0.83, 0.98, "undecided"), (0.96, 0.955, 0.965, "adopt")],
)
def test_an_interval_that_reaches_into_what_does_not_count_advises_nothing(
    ratio: float, lo: float, hi: float, result: str
) -> None:
    found = [_spanned("decode.tpot_s", "better", ratio, lo, hi), _found("agent.ttft_cold_s", "equivalent", 1.0)]
    verdict = overall("mtp", 3, OFF, ON, found, primary="decode.tpot_s")
    assert verdict.overall == result
    assert ("±3 % that do not count" in verdict.sentence) == (result == "undecided")
    assert (verdict.arm == "on") == (result == "adopt")


def test_an_interval_on_the_bad_side_stands_against_an_adopt_though_its_word_is_open() -> None:
    harmed = _spanned("agent.ttft_cold_s", "undecided", 1.04, 1.002, 1.081)
    verdict = overall("custom", 3, OFF, ON, [FAST[0], harmed])
    assert (verdict.overall, verdict.arm) == ("undecided", None)
    assert "but agent.ttft_cold_s +4.0 % [+0.2 %, +8.1 %]: undecided" in verdict.sentence
    open_ = _spanned("agent.ttft_cold_s", "undecided", 1.04, 0.998, 1.081)
    assert overall("custom", 3, OFF, ON, [FAST[0], open_]).overall == "adopt"


def test_what_is_worse_by_less_than_counts_is_named_beside_an_adopt() -> None:
    small = _spanned("agent.ttft_cold_s", "worse", 1.02, 1.01, 1.03)
    verdict = overall("mtp", 3, OFF, ON, [FAST[0], small], primary="decode.tpot_s")
    assert verdict.overall == "adopt"
    assert verdict.sentence.endswith("worse, by less than counts: agent.ttft_cold_s")


def test_a_rate_is_beyond_the_zone_above_it() -> None:
    found = [_spanned("replay.rate", "better", 1.2, 1.1, 1.3, lower=False)]
    assert overall("custom", 3, OFF, ON, found).arm == "on"
    near = [_spanned("replay.rate", "better", 1.2, 1.01, 1.4, lower=False)]
    assert overall("custom", 3, OFF, ON, near).overall == "undecided"


def test_two_rounds_suggest_and_advise_nothing() -> None:
    verdict = overall("mtp", 2, OFF, ON, FAST, primary="decode.tpot_s")
    assert (verdict.overall, verdict.arm) == ("undecided", None)
    assert verdict.sentence.startswith("2 rounds only suggest on: decode.tpot_s -50.0 %")
    assert verdict.sentence.endswith("; that advises neither a change nor to keep, 3 are the least for either")


@pytest.mark.parametrize("ratio", [1.0, 1.5])
def test_two_rounds_do_not_advise_to_keep_either_unless_something_is_broken(ratio: float) -> None:
    found = [_found("decode.tpot_s", "equivalent" if ratio == 1 else "worse", ratio)]
    verdict = overall("mtp", 2, OFF, ON, found, primary="decode.tpot_s")
    assert verdict.overall == "undecided"
    assert verdict.sentence.startswith("2 rounds only suggest: ")
    assert "keep off" not in verdict.sentence
    assert "holds" not in verdict.sentence
    assert overall("mtp", 3, OFF, ON, found, primary="decode.tpot_s").overall == "keep"
    assert overall("mtp", 2, OFF, replace(ON, crashes=("it died",)), found).overall == "keep"


def test_what_is_open_is_named_as_open_and_not_as_unharmed() -> None:
    findings = [FAST[0], _found("agent.ttft_warm_s", "undecided", 1.0), _found("concurrent.x", "equivalent", 1.0)]
    sentence = overall("mtp", 3, OFF, ON, findings, primary="decode.tpot_s").sentence
    assert sentence.endswith("open, so not shown to be unharmed: agent.ttft_warm_s")
    assert "nothing else is worse" not in sentence
    assert overall("mtp", 3, OFF, ON, FAST, primary="decode.tpot_s").sentence.endswith("; nothing else is worse")


def test_one_round_names_what_got_worse_beside_what_got_better() -> None:
    def found(name: str, ratio: float) -> Finding:
        return Finding(name, name, "undecided", ratio, None, None, "one round only suggests", True)

    findings = [found("tpot", 0.52), found("warm", 2.54), found("cold", 1.01)]
    off, on = ArmState("off", 1), ArmState("on", 1)
    verdict = overall("mtp", 1, off, on, findings, primary="tpot")
    assert verdict.sentence.endswith("better tpot -48.0 %; worse warm +154.0 %")
    assert verdict.sentence.count("one round only suggests") == 1
    assert overall("custom", 1, off, on, [found("cold", 1.01)]).sentence.endswith("no measure moved by 3 %")
