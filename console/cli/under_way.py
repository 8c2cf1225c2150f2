"""The A/B run that owns the server now, for whoever asks what the server does."""

from __future__ import annotations

from dataclasses import dataclass

from console import units
from console.errors import ConsoleError
from console.paths import Paths
from console.server.run_lock import run_is_live


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A run that goes on; what its journal does not tell is `None`."""

    id: str
    kind: str | None = None
    preset: str | None = None
    arm: str | None = None
    """Whose boot is up; `None` between two."""
    step: str | None = None
    done: int | None = None
    """Steps, of `planned`."""
    planned: int | None = None
    eta_s: float | None = None

    @property
    def sentences(self) -> list[str]:
        """What goes on, and what that means for clients."""
        words = [f"an A/B run goes on: {self.id}", self.step or ""]
        words.append(f"about {units.duration(self.eta_s)} left" if self.eta_s is not None else "")
        return [
            " · ".join(word for word in words if word),
            "its servers are arms, on ports and with keys of their own, and not for clients; what ran before comes "
            "back when it ends",
            f"`qwen-console ab show {self.id}` tells more, `qwen-console ab stop {self.id}` ends it",
        ]


def run_under_way(paths: Paths) -> UnderWay | None:
    """The run that lives now."""
    run_id = run_is_live(paths)
    if run_id is None:
        return None
    from console.lab.view import read_run

    try:
        run = read_run(paths.run(run_id))
    except (ConsoleError, OSError):
        return UnderWay(run_id)
    if not run.order:
        # Nothing of it can be read, and zero of one would be a figure.
        return UnderWay(run_id)
    told = run.kind or None, run.preset or None, run.arm, run.step or None
    return UnderWay(run_id, *told, run.done, run.planned, run.eta_s)
