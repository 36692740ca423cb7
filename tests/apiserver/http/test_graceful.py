"""Stopping a server: requests under way get a grace period; longer ones are cancelled without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import socket
import threading
import urllib.request
from collections.abc import Iterator

import pytest
import uvicorn

from bayplan.apiserver.http.graceful import GracefulServer
from bayplan.base.asgi import Receive, Scope, Send

ANSWER = b"done"

PATIENCE_S = 30
"""Seconds after which a waiting test fails."""

LONG_S = 3600.0
"""A grace period that no test waits for."""


class RunningServer:
    """A server in a thread whose requests are answered when the test permits it.

    Attributes:
        requested: set when a request has arrived.
        permitted: lets the server answer.
        shutdown_began: set when the shutdown begins.
        events: the calls of `on_end` and `on_closed`, in order.
        late_client: with `connects_late`, a client that connects and sends a request when the shutdown begins.
    """

    def __init__(self, grace_s: float, *, connects_late: bool = False) -> None:
        self.late_client: socket.socket | None = None
        self._connects_late = connects_late
        self.requested, self.permitted, self.shutdown_began = threading.Event(), threading.Event(), threading.Event()
        self.events: list[str] = []
        ready = threading.Event()
        self.server = GracefulServer(
            uvicorn.Config(self._answer, interface="asgi3", port=0, log_level="warning", lifespan="off"),
            on_ready=ready.set,
            on_end=self._on_end,
            on_closed=lambda: self.events.append("closed"),
            grace_s=grace_s,
        )
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        assert ready.wait(PATIENCE_S)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.requested.set()
        while not self.permitted.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": ANSWER})

    def _on_end(self) -> None:
        self.events.append("ends")
        if self._connects_late:
            self.late_client = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            self.late_client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.shutdown_began.set()

    def request(self) -> tuple[threading.Thread, list[bytes]]:
        """Send a request in a thread and wait until it arrives; return the thread, and a list that gets the answer."""
        answers: list[bytes] = []

        def ask() -> None:
            url = f"http://127.0.0.1:{self.port}/"
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
                answers.append(answer.read())

        thread = threading.Thread(target=ask)
        thread.start()
        assert self.requested.wait(PATIENCE_S)
        return thread, answers


@contextlib.contextmanager
def serving(grace_s: float, *, connects_late: bool = False) -> Iterator[RunningServer]:
    """Run a server for a ``with`` block; afterwards stop it, and fail unless it ends."""
    running = RunningServer(grace_s, connects_late=connects_late)
    try:
        yield running
    finally:
        running.server.should_exit = True
        running.thread.join(PATIENCE_S)
    assert not running.thread.is_alive()
    assert running.events == ["ends", "closed"]


def test_a_request_that_ends_within_the_grace_period_is_answered() -> None:
    with serving(LONG_S) as running:
        thread, answers = running.request()
        running.server.should_exit = True
        assert running.shutdown_began.wait(PATIENCE_S)
        running.permitted.set()
        thread.join(PATIENCE_S)
        assert answers == [ANSWER]


def test_a_request_exceeding_the_grace_period_is_cancelled_without_a_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with serving(0.1) as running:
        thread, answers = running.request()
        running.server.should_exit = True
        thread.join(PATIENCE_S)
        assert not thread.is_alive()
        assert answers == []
    assert "Traceback" not in capfd.readouterr().err


def test_idle_connections_do_not_delay_a_shutdown() -> None:
    with serving(LONG_S) as running:
        running.permitted.set()
        idle = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
        idle.request("GET", "/")
        assert idle.getresponse().read() == ANSWER
        assert idle.sock is not None, "the connection is kept alive"
        running.server.should_exit = True
        running.thread.join(PATIENCE_S)
        assert idle.sock.recv(1) == b""
        idle.close()


def test_a_request_that_arrives_as_the_shutdown_begins_is_answered(capfd: pytest.CaptureFixture[str]) -> None:
    with serving(LONG_S, connects_late=True) as running:
        running.permitted.set()
        running.server.should_exit = True
        running.thread.join(PATIENCE_S)
        assert running.late_client is not None
        with running.late_client:
            assert running.late_client.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert "Traceback" not in capfd.readouterr().err
