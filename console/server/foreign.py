"""A server that this console did not start: watched, never signalled, never sent a canary."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.server.models import listed_models
from console.server.status import ServerStatus, State

_DEADLINE_S = 0.5


def foreign_status(endpoint: Endpoint) -> ServerStatus:
    """What stands at this address, as far as it says; `stopped` with a note when nothing answers."""
    with ThreadPoolExecutor(max_workers=3) as pool:
        health, models, version = pool.map(lambda path: _ask(endpoint, path), ("/health", "/v1/models", "/version"))
    answered = [one for one in (health, models, version) if not isinstance(one, EndpointError)]
    if not answered:
        why = health.why if isinstance(health, EndpointError) else "no answer"
        return ServerStatus(State.STOPPED, url=endpoint.url, note=why)
    names = listed_models(models)
    said = version.get("version") if isinstance(version, dict) else None
    return ServerStatus(
        State.FOREIGN,
        url=endpoint.url,
        model=names[0] if names else None,
        version=said if isinstance(said, str) else None,
        note=None if names else "it lists no models: the key may be missing (VLLM_API_KEY), or it is not vLLM",
    )


def _ask(endpoint: Endpoint, path: str) -> Any:
    try:
        return endpoint.get_json(path, deadline=_DEADLINE_S)
    except EndpointError as error:
        return error
