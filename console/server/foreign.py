"""A server that this console did not start: watched, never signalled, never sent a canary."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from console.endpoint import Endpoint, EndpointError
from console.presets import Preset
from console.server.models import by_stand_in, listed_models
from console.server.sockets import answering, owner_of, url_of
from console.server.status import ServerStatus, State

_DEADLINE_S = 0.4
_AGAIN_S = 30.0
"""A listener that did not speak vLLM is asked again after so long."""
_PRESETS_S = 60.0
_LOOK_S = 2.0
"""Where nobody listened, it is looked again after so long: a console looks every second, for days."""
_FAMILY = "vllm"
_Address = tuple[str, int, str | None]
"""Host, port, key."""


def foreign_status(endpoint: Endpoint) -> ServerStatus:
    """What stands at this address, as far as it says; `stopped` with a note when nothing answers."""
    health, models, version = _ask_all(endpoint, ("/health", "/v1/models", "/version"))
    answered = [one for one in (health, models, version) if not isinstance(one, EndpointError)]
    if not answered:
        errors = [one for one in (health, models, version) if isinstance(one, EndpointError)]
        if any(error.kind == "timeout" for error in errors):
            # Somebody took the connection: a busy server, or a hung one, is there all the same.
            return ServerStatus(State.FOREIGN, url=endpoint.url, note="it does not answer in time: busy, or hung")
        return ServerStatus(State.STOPPED, url=endpoint.url, note=errors[0].why)
    names = listed_models(models)
    told = version.get("version") if isinstance(version, dict) else None
    said = told if isinstance(told, str) else None
    return ServerStatus(
        State.FOREIGN,
        url=endpoint.url,
        model=names[0] if names else None,
        version=said,
        simulated=by_stand_in(said),
        note=None if names else "it lists no models: the key may be missing (VLLM_API_KEY), or it is not vLLM",
    )


def speaks_vllm(endpoint: Endpoint) -> bool:
    """Whether it is vLLM that answers: by its list of models, or by its metrics, which no key guards."""
    models, metrics = _ask_all(endpoint, ("/v1/models", "/metrics"), text=("/metrics",))
    items = models.get("data") if isinstance(models, dict) else None
    owned = isinstance(items, list) and any(
        isinstance(item, dict) and item.get("owned_by") == _FAMILY for item in items
    )
    return owned or (isinstance(metrics, str) and "vllm:" in metrics)


class ForeignWatch:
    """Looks for vLLM servers on the ports of the known presets.

    Args:
        presets: the known presets.
    """

    def __init__(self, presets: Callable[[], Iterable[Preset]], clock: Callable[[], float] = time.monotonic) -> None:
        self._presets = presets
        self._clock = clock
        self._lock = threading.Lock()
        self._endpoint: Endpoint | None = None
        self._known: tuple[float, tuple[_Address, ...]] | None = None
        self._not: dict[str, float] = {}
        """Sockets that do not speak vLLM, and when they were asked."""
        self._nobody = -_LOOK_S
        """When it was last seen that nobody listens."""

    def endpoint(self) -> Endpoint | None:
        """Where a server that is not ours answers; asks only where somebody listens at all."""
        with self._lock:
            return self._find()

    def _addresses(self) -> tuple[_Address, ...]:
        """Read anew now and then: preset files may be edited meanwhile."""
        now = self._clock()
        if self._known is None or now - self._known[0] > _PRESETS_S:
            self._known = (now, tuple(dict.fromkeys(_addresses(self._presets()))))
        return self._known[1]

    def _find(self) -> Endpoint | None:
        if self._clock() - self._nobody < _LOOK_S:
            return None
        for host, port, key in self._addresses():
            sockets = answering(host, port)
            if not sockets:
                continue
            mark = "+".join(sorted(one.inode for one in sockets))
            if self._clock() - self._not.get(mark, -_AGAIN_S) < _AGAIN_S:
                continue
            url = url_of(host, port)
            if self._endpoint is not None and (self._endpoint.url, self._endpoint.key) == (url, key):
                return self._endpoint
            found = Endpoint(url, key)
            if speaks_vllm(found):
                self._drop()
                self._endpoint = found
                return found
            found.close()
            self._not[mark] = self._clock()
        self._drop()
        self._nobody = self._clock()
        return None

    def status(self) -> ServerStatus | None:
        """The server that is not ours; `None` when there is none."""
        endpoint = self.endpoint()
        if endpoint is None:
            return None
        status = foreign_status(endpoint)
        if status.state is not State.FOREIGN:
            return None
        port = int(endpoint.url.rpartition(":")[2])
        owner = owner_of(port)
        who = f"{owner[1]} (pid {owner[0]})" if owner else "another user's process"
        note = f"not started by this console: {who}; it is watched only"
        return replace(status, note=f"{note}; {status.note}" if status.note else note)

    def close(self) -> None:
        """Drop the kept connections."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None


def _addresses(presets: Iterable[Preset]) -> Iterable[_Address]:
    for preset in presets:
        if preset.server.port:
            yield preset.server.host, preset.server.port, preset.api_key


def _ask_all(endpoint: Endpoint, paths: tuple[str, ...], text: tuple[str, ...] = ()) -> list[Any]:
    # Imported here: the first frame of the console must not wait for it.
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max_workers=len(paths)) as pool:
        return list(pool.map(lambda path: _ask(endpoint, path, text=path in text), paths))


def _ask(endpoint: Endpoint, path: str, *, text: bool) -> Any:
    try:
        if text:
            return endpoint.get(path, deadline=_DEADLINE_S).text
        return endpoint.get_json(path, deadline=_DEADLINE_S)
    except EndpointError as error:
        return error
