"""Stopping a server: requests under way get a grace period; longer ones are cancelled without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest
import uvicorn

from bayplan.apiserver.http.graceful import GracefulServer
from bayplan.base.asgi import Receive, Scope, Send

ANSWER = b"done"


async def slow(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer after the number of seconds in the path."""
    if scope["type"] != "http":
        return
    await asyncio.sleep(float(scope["path"].strip("/")))
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": ANSWER})


@contextlib.contextmanager
def serving(grace_s: float) -> Iterator[tuple[GracefulServer, str, list[str]]]:
    """Run a server in a thread; yield it, its address, and what happened at its end."""
    ready, events = threading.Event(), list[str]()
    server = GracefulServer(
        uvicorn.Config(slow, port=0, log_level="warning", lifespan="off"),
        on_ready=ready.set,
        on_end=lambda: events.append("ends"),
        on_closed=lambda: events.append("closed"),
        grace_s=grace_s,
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    assert ready.wait(30)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield server, f"http://127.0.0.1:{port}", events
    server.should_exit = True
    thread.join(30)
    assert not thread.is_alive()


def asked(url: str) -> tuple[threading.Thread, list[bytes]]:
    """Ask in a thread; return it, and a list that gets the answer."""
    answers: list[bytes] = []

    def ask() -> None:
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=30) as answer:
            answers.append(answer.read())

    thread = threading.Thread(target=ask)
    thread.start()
    time.sleep(0.5)
    return thread, answers


def test_a_request_that_ends_within_the_grace_period_is_answered() -> None:
    with serving(20.0) as (server, url, events):
        thread, answers = asked(f"{url}/1.5")
        server.should_exit = True
        thread.join(30)
    assert answers == [ANSWER]
    assert events == ["ends", "closed"]


def test_a_request_exceeding_the_grace_period_is_cancelled_without_a_traceback(
    capfd: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    with serving(0.3) as (server, url, events):
        thread, answers = asked(f"{url}/3600")
        server.should_exit = True
        thread.join(30)
    assert answers == []
    assert events == ["ends", "closed"]
    assert time.monotonic() - began < 30
    assert "Traceback" not in capfd.readouterr().err


def test_idle_connections_are_closed_immediately_on_shutdown() -> None:
    with serving(20.0) as (server, url, _):
        thread, answers = asked(f"{url}/0")
        thread.join(30)
        began = time.monotonic()
        server.should_exit = True
    assert answers == [ANSWER]
    assert time.monotonic() - began < 15
