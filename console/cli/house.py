"""The composition root: which folders, presets, server and cards this call works with."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.voice import say
from console.errors import ConsoleError, UsageError
from console.paths import PRESETS_VARIABLE, Paths, data, expanded

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
    _named: list[Endpoint] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, args: argparse.Namespace) -> House:
        """The house that the command line asks for."""
        if args.presets and not args.presets.is_dir():
            raise UsageError(f"--presets {args.presets}: there is no such folder", "", "name a folder of preset files")
        house = cls(Paths.from_env(demo=args.demo), args.presets)
        args.opened.callback(house.close)
        return house

    def close(self) -> None:
        """Drop the kept connections; the next use opens new ones."""
        if "server" in self.__dict__:
            self.server.close()
        for endpoint in self._named:
            endpoint.close()

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
        if named and not expanded(named).is_dir():
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
        """The named preset; without a name the one that runs, else the default.

        Raises:
            UsageError: there is none of that name.
            ConsoleError: one runs, and which is not known.
        """
        catalog = self.catalog()
        if name is not None:
            return self._of_file(catalog, name)
        running = self.server.status(probe=False)
        if running.pid is None:
            return catalog.get(DEFAULT_PRESET)
        if running.preset in catalog.presets:
            return catalog.get(str(running.preset))
        recorded = self.server.running_preset()
        if recorded is None:
            raise ConsoleError(
                "which preset runs is not known",
                "the record of the running server does not tell, or not whole",
                "name a preset; `qwen-console presets` lists them",
            )
        broken = any(problem.name == recorded.name for problem in catalog.problems)
        how = "cannot be used as it is now" if broken else "is not there any more"
        say(f"note: the file of {recorded.name} {how}: it is taken as the running server was started")
        return recorded

    def _of_file(self, catalog: Catalog, name: str) -> Preset:
        try:
            return catalog.get(name)
        except UsageError as error:
            running = (
                None if any(problem.name == name for problem in catalog.problems) else self.server.running_preset()
            )
            if running is None or running.name != name:
                raise
            raise UsageError(
                error.what,
                "its file is gone; the server that runs was started from it",
                "`qwen-console restart` starts it again as it was; put the file back for anything else",
            ) from None

    def gpus(self, endpoint: Endpoint | None) -> GpuSource:
        """The cards: the machine's own, or those that the stand-in at `endpoint` simulates; a demo has no others."""
        if endpoint is None and self.demo:
            from console.gpu.sim import SimSource

            return SimSource(None, self.server.ours)
        from console.gpu.source import open_source

        return open_source(endpoint, self.server.ours, self.server.card_env)

    def elsewhere(self, url: str) -> Endpoint:
        """A server that somebody names, with the key of this shell, if it has one."""
        from console.endpoint import Endpoint, normal_url
        from console.presets.model import KEY_VARIABLE

        self._named.append(Endpoint(normal_url(url), os.environ.get(KEY_VARIABLE) or None))
        return self._named[-1]
