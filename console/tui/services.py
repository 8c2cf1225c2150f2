"""What the screens need from the floors below, built once by the command line (and by tests)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuSource
    from console.lab.plan import Plan
    from console.paths import Paths
    from console.presets import Catalog, Preset
    from console.server.life import Server


@dataclass(frozen=True, slots=True)
class Services:
    """The ports of the TUI. Callables may block for as long as their work takes: call them in workers."""

    paths: Paths
    server: Server
    catalog: Callable[[], Catalog]
    """Presets as they would run here: stand-ins in a demo."""
    open_gpus: Callable[[], GpuSource]
    start_run: Callable[[str, Preset], str]
    """Plan and spawn an A/B run of a kind (`mtp`, `chunk`, …) on a preset; its id. Raises ConsoleError."""
    stop_run: Callable[[], None]
    adopt: Callable[[str, str], Path]
    """Write the arm of a run as a new preset; its path."""
    demo: bool = False
    watched: Endpoint | None = None
    """A server elsewhere (`--url`): watched, never signalled."""
    plan_run: Callable[[str, Preset], Plan] | None = None
    """The plan that `start_run` would carry out, to be shown before anything starts."""
    default_preset: str = "qwen3.8-27b-nvfp4-100k"
    low_bandwidth: bool = False
