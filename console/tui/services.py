"""What the screens need from the floors below, built once by the command line (and by tests)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from console.tui.config import Config

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuSource
    from console.lab.adopt import Draft
    from console.lab.plan import Plan
    from console.paths import Paths
    from console.presets import Catalog, Preset
    from console.server.life import Server
    from console.tui.preset_page import Inspection


Say = Callable[[str], None]
"""Hears what is being done, in a line."""


@dataclass(frozen=True, slots=True)
class Services:
    """The ports of the TUI. Callables may block for as long as their work takes: call them in workers."""

    paths: Paths
    open_server: Callable[[], Server]
    """The one server, always the same; the first call imports what it takes."""
    catalog: Callable[[], Catalog]
    """Presets as they would run here: stand-ins in a demo."""
    open_gpus: Callable[[], GpuSource]
    plan_run: Callable[[str, Preset, int | None], Plan]
    """The plan of an A/B run of a kind (`mtp`, `chunk`, …) on a preset, of so many rounds (`None`: the usual), shown
    before anything starts."""
    start_run: Callable[[Plan], str]
    """Spawn the run that was shown, although requests may be in flight; its id. Raises ConsoleError."""
    stop_run: Callable[[], None]
    draft: Callable[[str, str], Draft]
    """What adopting the arm of a run would write. Raises ConsoleError."""
    adopt: Callable[[str, str], Path]
    """Write the arm of a run as a new preset; its path."""
    inspect: Callable[[Preset], Inspection]
    """Look at a preset from all sides: lint, plan, command. May ask its vLLM for its flags, which takes seconds."""
    probe_prefix: Callable[[Say], str]
    """Test the prefix cache of the running server; the verdict in words. Raises ConsoleError."""
    demo: bool = False
    watched: Endpoint | None = None
    """A server elsewhere (`--url`): watched, never signalled."""
    default_preset: str = "qwen3.8-27b-nvfp4-100k"
    low_bandwidth: bool = False
    config: Config = field(default_factory=Config)
    """What the user has set in `config.yaml`."""

    @property
    def server(self) -> Server:
        """The one server. Not before the first frame: see `open_server`."""
        return self.open_server()
