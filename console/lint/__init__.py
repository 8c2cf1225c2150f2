"""Rules over presets: what is known to go wrong on this kind of machine, said before the start."""

from console.lint.check import lint
from console.lint.model import Finding, Ground, Weight

__all__ = ["Finding", "Ground", "Weight", "lint"]
