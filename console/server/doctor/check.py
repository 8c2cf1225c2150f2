"""What one check of the machine says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "look", "bad", "unknown"]
"""`look`: it works, with a reservation; `bad`: a server will not start, or not live long; `unknown`: not to be seen."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a server depends on."""

    check: str
    """Its name; stable."""
    verdict: Verdict
    value: str
    why: str = ""
    fix: str = ""
