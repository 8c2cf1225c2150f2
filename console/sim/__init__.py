"""A stand-in for `vllm serve`: same command line, same routes, same metrics, no GPU.

It knows nothing of the console that watches it: what the console reads from it is evidence, not an echo.
"""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """Run the stand-in as `vllm serve` would run with `argv` (model first, then flags); its exit code."""
    from console.sim.serve import serve

    return serve(argv)
