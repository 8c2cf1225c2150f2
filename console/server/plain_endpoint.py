"""The door to HTTP for the recorder, which must stay small."""

from __future__ import annotations

import http.client
import io
import socket
import time
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from console.endpoint import Endpoint, EndpointError, Reply
from console.timely import TimelyFile


class _Response(http.client.HTTPResponse):
    """An answer whose head and body are whole at `end`, or that is given up."""

    def __init__(self, sock: socket.socket, *args: Any, end: float, **more: Any) -> None:
        super().__init__(sock, *args, **more)
        file: Any = self.fp
        self.fp = io.BufferedReader(TimelyFile(sock, file.detach(), end))


class PlainEndpoint(Endpoint):
    """The same door without the HTTP library of the console, which takes more memory than everything else here."""

    def _send(self, method: str, path: str, body: object, deadline: float, limit: int) -> Reply:
        del body  # nothing is sent from here
        parts = urlsplit(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=deadline)
        end = time.monotonic() + deadline
        connection.response_class = partial(_Response, end=end)  # type: ignore[assignment]
        try:
            connection.request(method, path, headers={"authorization": f"Bearer {self.key}"} if self.key else {})
            with connection.getresponse() as response:
                text = self._body(response, self.url + path, end, limit)
        except TimeoutError:
            raise EndpointError("timeout", self.url + path, "no whole answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            raise EndpointError("refused", self.url + path, str(error)) from None
        finally:
            connection.close()
        return Reply(response.status, text.decode("utf-8", errors="replace"))

    @staticmethod
    def _body(response: http.client.HTTPResponse, url: str, end: float, limit: int) -> bytes:
        """The whole body, in time and not larger than `limit` bytes."""
        text = bytearray()
        while piece := response.read1(65536):
            text += piece
            if len(text) > limit:
                raise EndpointError("too-big", url, f"the answer is larger than {limit:,} bytes")
            if time.monotonic() > end:
                raise EndpointError("timeout", url, "no whole answer in time")
        if response.length:
            raise EndpointError("protocol", url, f"{response.length:,} bytes of the answer are missing")
        return bytes(text)
