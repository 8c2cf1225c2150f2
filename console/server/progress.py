"""How far a start is and what is left of it, from what this preset's starts usually take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from console.server.starts import Usual
from console.server.status import Phase

_ORDER = tuple(Phase)
_LEAST_SHARE = 0.1
"""Below this a share of the work says little about the rest of it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Where a start stands. Seconds."""

    phase: Phase
    uptime_s: float
    begun: Mapping[Phase, float]
    """Uptime at which each phase began, as far as it is known."""
    share: float | None = None
    """Part of the phase's work that is done, where the log tells."""
    download_s: float | None = None
    """What is left of a download that is under way."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a start is."""

    progress: float
    """0..1."""
    eta_s: float
    """Seconds to ready."""


def estimate(moment: Moment, usual: Usual | None) -> Progress | None:
    """`None` where no start of this kind is known: an invented figure would be worse than none."""
    if usual is None:
        return None
    phase = Phase.LOAD if moment.phase is Phase.DOWNLOAD else moment.phase
    place = _ORDER.index(phase)
    later = sum(seconds for name, seconds in usual.phases.items() if _ORDER.index(name) > place)
    if moment.phase is Phase.DOWNLOAD:
        if moment.download_s is None:
            return None
        left = moment.download_s + usual.phases.get(Phase.LOAD, 0.0)
    else:
        left = _left(moment, usual.phases.get(phase, 0.0))
    eta_s = left + later
    whole = moment.uptime_s + eta_s
    return Progress(min(0.99, moment.uptime_s / whole) if whole > 0 else 0.0, eta_s)


def _left(moment: Moment, usual_s: float) -> float:
    """What is left of the phase itself: by its own share where that says something, else by the clock."""
    begun = moment.begun.get(moment.phase, 0.0 if moment.phase is Phase.START else None)
    if begun is None:
        return usual_s
    spent = max(0.0, moment.uptime_s - begun)
    if moment.share is not None and moment.share >= _LEAST_SHARE and spent > 1.0:
        return spent * (1 - moment.share) / moment.share
    return max(0.0, usual_s - spent)
