"""What to run: presets in YAML, resolved into one exact command."""

from console.presets.catalog import Catalog, Problem, load_catalog
from console.presets.command import argv, child_env, shell_line
from console.presets.model import Preset, ServerOptions
from console.presets.overrides import apply_overrides, parse_assignments

__all__ = [
    "Catalog",
    "Preset",
    "Problem",
    "ServerOptions",
    "apply_overrides",
    "argv",
    "child_env",
    "load_catalog",
    "parse_assignments",
    "shell_line",
]
