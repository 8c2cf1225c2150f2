"""qwen-console: a terminal console for one vLLM workstation."""

__version__ = "0.1.0"
