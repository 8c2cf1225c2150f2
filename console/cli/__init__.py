"""The command line: verbs, composition root, exit codes."""

from console.cli.main import main

__all__ = ["main"]
