"""Servers with endless responses: the amount that is read, and therefore memory, is limited."""

from __future__ import annotations

import asyncio
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bayplan.base.bounded_body import BodyTooLarge, BoundedBody
from bayplan.base.durations import SECOND_NS
from bayplan.client.cluster_access import ClusterAccess
from bayplan.client.connection import MAX_LINE_BYTES, ApiConnection, ConnectionLost
from bayplan.extender.client import MIN_ANSWER_LIMIT_BYTES, ExtenderClient
from bayplan.framework.configuration.document import Extender
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.http_api.errors import RequestError
from bayplan.http_api.remote_server import RemoteServer

PIECE = b" " * (1 << 20)
MAX_PIECES = 4096


class Endless(BaseHTTPRequestHandler):
    """Answers without end, in the way that the path names."""

    sent = 0

    def do_GET(self) -> None:
        self.do_POST()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        redirects = self.path.endswith("/moved")
        self.send_response(307 if redirects else 200)
        if redirects:
            self.send_header("Location", "/here")
        body = PIECE
        if self.path.endswith("/bomb"):
            self.send_header("Content-Encoding", "gzip")
            body = gzip.compress(PIECE * 256)
        self.end_headers()
        if self.path.endswith("/here"):
            self.wfile.write(b"{}")
            return
        try:
            for _ in range(MAX_PIECES):
                self.wfile.write(body)
                Endless.sent += len(body)
        except OSError:
            pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def endless() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    Endless.sent = 0
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def ask(url: str, verb: str) -> object:
    client = ExtenderClient(Extender(url_prefix=url, http_timeout_ns=30 * SECOND_NS))
    try:
        return client.send(verb, {"Pod": {}})
    finally:
        client.close()


@pytest.mark.parametrize("verb", ["filter", "bomb"], ids=["plain", "compressed"])
def test_an_endless_extender_response_fails(verb: str) -> None:
    with endless() as url:
        with pytest.raises(ExtenderFailure, match="the answer is longer than 16,777,216 bytes"):
            ask(url, verb)
        assert Endless.sent < 4 * MIN_ANSWER_LIMIT_BYTES


def test_the_body_of_a_redirect_is_not_read() -> None:
    with endless() as url:
        assert ask(url, "moved") == {}
        assert Endless.sent < MIN_ANSWER_LIMIT_BYTES


def test_an_endless_response_of_a_compared_server_is_refused() -> None:
    with endless() as url, pytest.raises(RequestError, match="at most 67,108,864 bytes"):
        asyncio.run(RemoteServer(f"{url}/bomb?").placements())


def test_a_watch_with_an_endless_line_is_aborted() -> None:
    async def watch(url: str) -> None:
        access = ClusterAccess(None, None)
        access.url = url
        async with ApiConnection(access, user_agent="tests/1.0") as connection:
            async for _ in connection.stream("/watch", "watch=1"):
                pass

    with endless() as url:
        with pytest.raises(ConnectionLost, match="a line of the stream is longer than"):
            asyncio.run(watch(url))
        assert Endless.sent < 4 * MAX_LINE_BYTES


def test_the_size_limit_applies_after_decompression() -> None:
    body = BoundedBody(1000, "gzip")
    body.add(gzip.compress(b"x" * 1000))
    assert body.joined() == b"x" * 1000
    with pytest.raises(BodyTooLarge, match="longer than 1,000 bytes"):
        BoundedBody(1000, "gzip").add(gzip.compress(b"x" * 1001))
    with pytest.raises(BodyTooLarge):
        BoundedBody(1000).add(b"x" * 1001)
