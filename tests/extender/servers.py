"""HTTP servers on loopback for tests of extenders: scripted answers, by path, and what was asked."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]


class ScriptedServer(ThreadingHTTPServer):
    """Answers each path with one response after the other; the last one is repeated.

    A response is ``{"status": 200, "body": "...", "delayMs": 0, "close": false}``.
    """

    daemon_threads = True

    def __init__(self, responses: Mapping[str, Sequence[Json]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.responses = responses
        self.exchanges: list[tuple[str, Json]] = []
        self.asked: Counter[str] = Counter()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server_port}"

    def take(self) -> list[tuple[str, Json]]:
        taken, self.exchanges = self.exchanges, []
        return taken


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = self.server.asked[self.path]
        self.server.asked[self.path] += 1
        self.server.exchanges.append((self.path, request))
        responses = self.server.responses.get(self.path, [{"status": 404, "body": ""}])
        response = responses[min(asked, len(responses) - 1)]
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
            # A client that waits no longer.
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def scripted(responses: Mapping[str, Sequence[Json]]) -> Iterator[ScriptedServer]:
    """Run a server while the block runs."""
    server = ScriptedServer(responses)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(value: object, **more: Any) -> Json:
    """Return a response with a JSON body."""
    return {"status": 200, "body": value if isinstance(value, str) else json.dumps(value)} | more
