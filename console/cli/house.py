"""The composition root: which folders, presets, server and cards this call works with."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from console.errors import UsageError
from console.paths import PRESETS_VARIABLE, Paths, data

if TYPE_CHECKING:
    from console.endpoint import Endpoint
    from console.gpu.sample import GpuSource
    from console.presets import Catalog, Preset
    from console.server.life import Server

DEFAULT_PRESET = "qwen3.8-27b-nvfp4-100k"
# `-P`: a folder `console` where the user stands must not be imported instead of ours.
STAND_IN = (sys.executable, "-P", "-m", "console.sim")


@dataclass(frozen=True)
class House:
    """One call's view of the machine."""

    paths: Paths
    presets_dir: Path | None = None

    @classmethod
    def of(cls, args: argparse.Namespace) -> House:
        """The house that the command line asks for."""
        if args.presets and not args.presets.is_dir():
            raise UsageError(f"--presets {args.presets}: there is no such folder", "", "name a folder of preset files")
        return cls(Paths.from_env(demo=args.demo), args.presets)

    @property
    def demo(self) -> bool:
        """Whether every preset runs on the stand-in engine."""
        return self.paths.demo

    @cached_property
    def server(self) -> Server:
        """The one server of this state folder."""
        # Imported here, as below: the first frame of the console must not wait for it.
        from console.server.life import Server

        return Server(self.paths, presets=lambda: self.catalog().presets.values())

    def catalog(self) -> Catalog:
        """All presets, in a demo as stand-ins."""
        from console.presets import load_catalog
        from console.presets.catalog import stand_in

        found = load_catalog(self.paths.preset_dirs(self.presets_dir))
        named = os.environ.get(PRESETS_VARIABLE)
        if named and not Path(named).expanduser().is_dir():
            found = replace(found, notes=(f"{PRESETS_VARIABLE}: there is no folder {named}", *found.notes))
        if not self.demo:
            return found
        # A shipped preset can be tried without its model; a path of the user's own that is wrong fails as with vLLM.
        ours = {one.model for one in found.presets.values() if one.path and one.path.is_relative_to(data("presets"))}
        folders = {model for model in ours if model.startswith(("/", "."))}
        return replace(
            found,
            presets={
                name: stand_in(preset, STAND_IN, any_model=preset.model in folders)
                for name, preset in found.presets.items()
            },
        )

    def preset(self, name: str | None) -> Preset:
        """The named preset; without a name the one that runs, else the default."""
        catalog = self.catalog()
        if name is None:
            running = self.server.status(probe=False)
            lives = running.pid is not None and running.preset in catalog.presets
            name = str(running.preset) if lives else DEFAULT_PRESET
        return catalog.get(name)

    def gpus(self, endpoint: Endpoint | None) -> GpuSource:
        """The cards: the machine's own, or those that the stand-in at `endpoint` simulates; a demo has no others."""
        if endpoint is None and self.demo:
            from console.gpu.sim import SimSource

            return SimSource(None, self.server.ours)
        from console.gpu.source import open_source

        return open_source(endpoint, self.server.ours, self.server.card_env)

    @staticmethod
    def elsewhere(url: str) -> Endpoint:
        """A server that somebody names, with the key of this shell, if it has one."""
        from console.endpoint import Endpoint, normal_url
        from console.presets.model import KEY_VARIABLE

        return Endpoint(normal_url(url), os.environ.get(KEY_VARIABLE) or None)
