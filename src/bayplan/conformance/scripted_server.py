"""An HTTP server on loopback with scripted responses, which replaces the extenders of recorded cases and of tests."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypedDict

from bayplan.conformance.cases import JsonObject


class Response(TypedDict, total=False):
    """The response to a request, which can be delayed (`delayMs`) or replaced by closing the connection (`close`)."""

    status: int
    body: str
    delayMs: int
    close: bool


class ScriptedServer(ThreadingHTTPServer):
    """Answers the requests to each path with the path's responses in turn; the last response is repeated.

    Args:
        responses: the responses by path.

    Attributes:
        exchanges: the received requests: path and JSON body, in order.
    """

    daemon_threads = True

    def __init__(self, responses: Mapping[str, Sequence[Response]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.exchanges: list[tuple[str, JsonObject]] = []
        self._responses = responses
        self._asked: Counter[str] = Counter()

    @property
    def address(self) -> str:
        """Host and port of the server."""
        return f"127.0.0.1:{self.server_port}"

    def take(self) -> list[tuple[str, JsonObject]]:
        """Return the requests since the last call."""
        taken, self.exchanges = self.exchanges, []
        return taken

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect, as they do after responses that they need not read."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]

    def next_response(self, path: str) -> Response:
        """Return the response to the next request to a path."""
        responses = self._responses.get(path, ({"status": 404, "body": ""},))
        number = min(self._asked[path], len(responses) - 1)
        self._asked[path] += 1
        return responses[number]


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Record a request and send its scripted response."""
        self.server.exchanges.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
        response = self.server.next_response(self.path)
        time.sleep(response.get("delayMs", 0) / 1000)
        if response.get("close"):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        body = response["body"].encode()
        try:
            self.send_response(response.get("status", 200))
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except OSError:
            # The client has stopped waiting.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def scripted(responses: Mapping[str, Sequence[Response]]) -> Iterator[ScriptedServer]:
    """Run a server with these responses while the block runs."""
    server = ScriptedServer(responses)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
