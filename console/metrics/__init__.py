"""The server, now: `/metrics` of any vLLM → figures over a window."""
