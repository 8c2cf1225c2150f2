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
    head = f"{plan.base.name} itself runs {own}"
    if best.arm is not None and own not in (best.arm, base):
        return f"{head}: {best.arm} was held against {base}, not against that"
    if best.arm is not None:
        return f"{head}: " + ("nothing to change" if own == best.arm else f"{best.arm} is the change")
    if best.overall == "keep" and own != base and verdicts[own].against:
        return f"{head}: {base} is the change"
    return f"{head}: nothing here asks for a change"


def settings(plan: Plan) -> str:
    """How the preset stands in the keys that the arms differ in."""
    if plan.changes:
        return "every arm has what --set changed"
    args = plan.base.args
    shown = [f"{key} {json.dumps(args[key]) if key in args else 'not set'}" for key in plan.differs if "." not in key]
    return ", ".join(shown) or "see the plan"
