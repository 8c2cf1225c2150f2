"""Which arm is what the preset runs anyway, and what a verdict therefore asks its owner to change. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from console.lab.plan import Plan
from console.lab.verdict import Verdict
from console.presets.overrides import differing_keys


def own_arm(plan: Plan) -> str | None:
    """The arm that is the preset as it is; `None` where no arm is, or where all are (equal arms)."""
    if plan.kind == "aa" or plan.changes:
        return None
    return next((arm.name for arm in plan.arms if not differing_keys(plan.base, plan.preset_of(arm.name))), None)


def to_change(plan: Plan, best: Verdict, verdicts: Mapping[str, Verdict]) -> str | None:
    """What the verdict means for the preset, in a sentence; `None` where there is nothing to say.

    Args:
        plan: the run's plan.
        best: the run's verdict.
        verdicts: the verdict on each arm but the first.
    """
    if plan.kind == "aa" or best.overall == "invalid":
        return None
    own, base = own_arm(plan), plan.arms[0].name
    if own is None:
        return f"No arm is what {plan.base.name} runs ({settings(plan)}): whether to leave that is not measured"
    return f"{plan.base.name} itself runs {own}: {_advice(own, base, best, verdicts)}"


def _advice(own: str, base: str, best: Verdict, verdicts: Mapping[str, Verdict]) -> str:
    """What there is to do for who runs the arm `own`."""
    if own == best.arm:
        return "nothing to change"
    bad = own != base and verdicts[own].against
    if best.arm is not None and own != base and not bad:
        return f"{best.arm} was held against {base}, not against that"
    if best.arm is not None or bad:
        return f"{best.arm or base} is the change"
    if best.overall == "undecided":
        return "nothing is settled, so nothing asks for a change"
    if best.trade if own == base else verdicts[own].trade:
        return "no change is asked for, which of the two counts more is yours to say"
    if own == base:
        return "nothing to change"
    return f"it is no worse than {base}, so nothing asks for a change"


def settings(plan: Plan) -> str:
    """How the preset stands in the keys that the arms differ in."""
    if plan.changes:
        return "every arm has what --set changed"
    args = plan.base.args
    shown = [f"{key} {json.dumps(args[key]) if key in args else 'not set'}" for key in plan.differs if "." not in key]
    return ", ".join(shown) or "see the plan"
