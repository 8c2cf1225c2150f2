"""The only door to HTTP: base URL, key, total deadlines, bounded replies, no proxy for loopback."""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from console.errors import ConsoleError, UsageError
from console.files import parse_json
from console.timely import Deadline, TimelyBackend

if TYPE_CHECKING:
    from types import ModuleType

    import httpx

Fault = Literal["refused", "timeout", "too-big", "protocol", "proxy"]
_HOST = re.compile(r"[\w.:%-]+", re.ASCII)
"""What a host is written with: a name or an address, IPv6 without its brackets."""
DEADLINE_S = 2.0
LIMIT_BYTES = 8_000_000
TOKENIZE = "/tokenize?from=qwen-console"
"""Asked for prompts of our own: servers pass the mark over, and their access log shows whose question it was."""


class EndpointError(ConsoleError):
    """A request that got no whole answer."""

    def __init__(self, kind: Fault, url: str, why: str) -> None:
        fixes = {
            "refused": "is the server up? `qwen-console status` tells; the log has its reason",
            "timeout": "the server may be busy or hung; its log and `qwen-console status` tell which",
            "too-big": "check that the address is vLLM's",
            "protocol": "check that the address is vLLM's and speaks plain HTTP",
            "proxy": "look at HTTP_PROXY, HTTPS_PROXY and ALL_PROXY; NO_PROXY with this host goes past them",
        }
        super().__init__(f"{url} did not answer", why, fixes[kind])
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole HTTP answer."""

    status: int
    text: str

    def json(self) -> Any:
        """The body as JSON; `None` if it is none."""
        try:
            return parse_json(self.text)
        except ValueError:
            return None


def is_loopback(host: str) -> bool:
    """Whether traffic to this host stays on this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def free_port(host: str = "127.0.0.1") -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def normal_url(url: str) -> str:
    """`host:port` or a URL with a path, as `http://host:port`.

    Raises:
        UsageError: no host can be read from it.
    """
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is no address", str(error), "give it as http://HOST:PORT") from None
    if not host or not _HOST.fullmatch(host) or parts.scheme not in ("http", "https"):
        raise UsageError(f"{url!r} is no address", "an http(s) URL is needed", "give it as http://HOST:PORT")
    base = parts.path.rstrip("/").removesuffix("/v1").removesuffix("/metrics")
    return f"{parts.scheme}://{parts.netloc}{base}"


def _httpx() -> ModuleType:
    """The library, without the command line that comes with it: that takes 30 ms and 3 MB.

    Imported here, for the first frame of the console must not wait for it.
    """
    if "httpx" not in sys.modules:
        # A module that is known to be absent; httpx does without it, as it does where click or rich is not installed.
        sys.modules["httpx._main"] = None  # type: ignore[assignment]
    import httpx

    return httpx


@dataclass(slots=True)
class Endpoint:
    """One server's address and key; safe to use from several threads."""

    url: str
    key: str | None = field(default=None, repr=False)
    _client: httpx.Client | None = field(default=None, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)
    _deadline: Deadline = field(default_factory=Deadline, repr=False, compare=False)

    def get(self, path: str, *, deadline: float = DEADLINE_S, limit: int = LIMIT_BYTES) -> Reply:
        """GET `path` within `deadline` seconds in all, reading `limit` bytes at most.

        Raises:
            EndpointError: refused, too slow, too big, or not HTTP.
        """
        return self._send("GET", path, None, deadline, limit)

    def get_json(self, path: str, *, deadline: float = DEADLINE_S) -> Any:
        """The JSON body of a 200 answer, else `None`."""
        reply = self.get(path, deadline=deadline)
        return reply.json() if reply.status == 200 else None

    def post_json(self, path: str, body: object, *, deadline: float = 30.0) -> tuple[int, Any]:
        """POST JSON; the status and the JSON of the answer (`None` if it is none)."""
        reply = self._send("POST", path, body, deadline, LIMIT_BYTES)
        return reply.status, reply.json()

    def close(self) -> None:
        """Drop the kept connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _http(self) -> httpx.Client:
        with self._lock:
            if self._client is None:
                httpx, parts = _httpx(), urlsplit(self.url)
                headers = {"authorization": f"Bearer {self.key}"} if self.key else {}
                here = is_loopback(parts.hostname or "")
                if here:
                    # What goes over no line is not worth packing, least of all to the server.
                    headers["accept-encoding"] = "identity"
                # Without TLS there is nothing to verify, and reading the authorities' certificates takes 20 ms.
                tls = parts.scheme == "https"
                try:
                    self._client = httpx.Client(base_url=self.url, headers=headers, trust_env=not here, verify=tls)
                except (ImportError, ValueError, httpx.InvalidURL) as error:
                    # Of what it is made from only the environment is not ours.
                    raise EndpointError("proxy", self.url, f"the proxy of this shell cannot be used: {error}") from None
                self._hold_to_deadlines(self._client)
            return self._client

    def _hold_to_deadlines(self, client: httpx.Client) -> None:
        """httpx bounds each of its waits and has no way to bound all of them; its connections are made to."""
        for transport in (client._transport, *client._mounts.values()):
            pool: Any = getattr(transport, "_pool", None)
            if backend := getattr(pool, "_network_backend", None):
                pool._network_backend = TimelyBackend(backend, self._deadline)

    def _send(self, method: str, path: str, body: object, deadline: float, limit: int) -> Reply:
        client, httpx = self._http(), _httpx()
        end = self._deadline.end = time.monotonic() + deadline
        try:
            with client.stream(method, path, json=body, timeout=deadline) as response:
                chunks, size = [], 0
                for chunk in response.iter_bytes():
                    size += len(chunk)
                    if size > limit:
                        raise EndpointError("too-big", self.url + path, f"the answer is larger than {limit:,} bytes")
                    if time.monotonic() > end:
                        raise EndpointError("timeout", self.url + path, f"no whole answer within {deadline:g} s")
                    chunks.append(chunk)
        except httpx.ConnectError as error:
            raise EndpointError("refused", self.url + path, f"no connection: {error}") from None
        except httpx.TimeoutException:
            raise EndpointError("timeout", self.url + path, f"no answer within {deadline:g} s") from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise EndpointError("protocol", self.url + path, f"{type(error).__name__}: {error}") from None
        return Reply(response.status_code, b"".join(chunks).decode("utf-8", errors="replace"))
