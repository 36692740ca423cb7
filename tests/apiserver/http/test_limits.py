"""Limits that apply before authentication: header size, time to send a request, connections, file descriptors."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect as websocket

from bayplan.apiserver.http.graceful import GracefulServer
from bayplan.apiserver.http.limits import (
    MAX_REJECTIONS,
    ConnectionTable,
    DescriptorWatch,
    HttpLimits,
    default_connections,
)
from bayplan.apiserver.http.protocol import WebSocketProtocol, limited_protocol
from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.serving import ask, call, serving, wait_until

MAPS = "/api/v1/namespaces/default/configmaps"
TOKEN = "secret"

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def connect(server: ApiServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 20)


def everything(opened: socket.socket) -> bytes:
    """Return the bytes received until the server closes the connection."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := opened.recv(1 << 16):
            found += piece
    return found


def test_a_selector_of_100_kb_is_accepted() -> None:
    with serving() as server:
        call(server, "POST", MAPS, {"metadata": {"name": "a", "labels": {"x": "v19999"}}})
        values = ",".join(f"v{number}" for number in range(20_000))
        assert len(values) > 100_000
        status, body = ask(f"{server.url}{MAPS}?labelSelector=x%20in%20({values})")
        assert status == 200
        assert b'"name":"a"' in body


def test_long_paths_and_queries_are_answered() -> None:
    with serving() as server:
        assert ask(f"{server.url}{MAPS}/{'x' * 200_000}")[0] == 404
        with connect(server) as opened:
            path = b"http://localhost/api/v1/namespaces?pretty=" + b"0" * 100_000
            opened.sendall(b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path)
            assert everything(opened).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET / HTTP/1.1\r\nX: %b\r\n\r\n" % (b"x" * 1_100_000), id="one field that ends"),
        pytest.param(b"GET / HTTP/1.1\r\nX: %b" % (b"x" * 5_000_000), id="one field that does not end"),
        pytest.param(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200_000, id="many fields"),
        pytest.param(b"GET /?%b" % (b"x" * 1_100_000), id="an address"),
    ],
)
def test_headers_above_1_mib_are_refused_before_the_token_is_checked(head: bytes) -> None:
    with serving(token=TOKEN) as server:
        with connect(server) as opened:
            with contextlib.suppress(ConnectionError):
                opened.sendall(head)
            assert everything(opened).startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert ask(f"{server.url}/readyz")[0] == 200


def test_a_header_just_below_1_mib_is_accepted() -> None:
    with serving() as server, connect(server) as opened:
        field = b"x" * ((1 << 20) - 200)
        opened.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: %b\r\n\r\n" % field)
        assert everything(opened).startswith(b"HTTP/1.1 200")


def test_endless_trailers_do_not_block_the_server_and_many_small_chunks_are_accepted() -> None:
    with serving(limits=HttpLimits(header_bytes=10_000)) as server:
        with connect(server) as opened:
            head = b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" % MAPS.encode()
            opened.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n")
            with contextlib.suppress(ConnectionError):
                for _ in range(100):
                    opened.sendall(b"X: %b\r\n" % (b"x" * 10_000))
            everything(opened)
        assert ask(f"{server.url}/readyz")[0] == 200
        # A body of very many chunks is accepted.
        with connect(server) as opened:
            body = b'{"metadata":{"name":"chunks"},"data":{"a":"%b"}}' % (b"x" * 20_000)
            opened.sendall(head + b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
            opened.sendall(b"".join(b"1\r\n%b\r\n" % body[at : at + 1] for at in range(len(body))) + b"0\r\n\r\n")
            assert everything(opened).startswith(b"HTTP/1.1 201")


QUICK = HttpLimits(header_seconds=0.3, body_seconds=0.3, body_bytes_per_second=1_000_000)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\r\n\r\n", id="line breaks"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: loc", id="half a header"),
        pytest.param(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /", id="half a second request"),
        pytest.param(
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{" % MAPS.encode(), id="half a body"
        ),
    ],
)
def test_slow_clients_are_disconnected(sent: bytes) -> None:
    with serving(limits=QUICK) as server, connect(server) as opened:
        opened.sendall(sent)
        everything(opened)


def test_a_line_break_after_a_request_does_not_keep_the_connection_open() -> None:
    with serving(limits=QUICK) as server, connect(server) as opened:
        opened.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert opened.recv(1 << 16).startswith(b"HTTP/1.1 200")
        opened.sendall(b"\r\n")
        assert everything(opened) == b""


def test_a_client_sending_single_bytes_is_disconnected() -> None:
    with serving(limits=QUICK) as server, connect(server) as opened:
        opened.sendall(b"GET / HTTP/1.1\r\nX: ")

        def drip() -> bool:
            try:
                opened.sendall(b"x")
            except ConnectionError:
                return True
            return False

        wait_until(drip, 15)


def wait_for_disconnection(port: int) -> None:
    """Wait until the server disconnects a client that connects now and sends nothing."""
    with socket.create_connection(("127.0.0.1", port), 20) as opened:
        everything(opened)


def test_an_idle_watch_is_not_disconnected() -> None:
    with serving(limits=QUICK) as server, connect(server) as opened:
        opened.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert opened.recv(12) == b"HTTP/1.1 200"
        wait_for_disconnection(urlsplit(server.url).port or 0)
        call(server, "POST", MAPS, {"metadata": {"name": "late"}})
        found = b""
        while b'"late"' not in found:
            found += opened.recv(1 << 16)


def test_an_idle_websocket_is_not_disconnected() -> None:
    other_disconnected = threading.Event()

    async def application(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await asyncio.to_thread(other_disconnected.wait, 20)
        await send({"type": "websocket.send", "text": "late"})

    config = uvicorn.Config(
        application,
        port=0,
        http=limited_protocol(ConnectionTable(QUICK)),
        ws=WebSocketProtocol,
        lifespan="off",
        log_level="error",
    )
    ready = threading.Event()
    server = GracefulServer(config, on_ready=ready.set)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert ready.wait(20)
        port = server.servers[0].sockets[0].getsockname()[1]
        with websocket(f"ws://127.0.0.1:{port}/", proxy=None) as opened:
            wait_for_disconnection(port)
            other_disconnected.set()
            assert opened.recv(20) == "late"
    finally:
        server.should_exit = True
        thread.join(20)


def test_an_incomplete_delete_body_deletes_nothing() -> None:
    with serving(limits=QUICK) as server:
        call(server, "POST", MAPS, {"metadata": {"name": "m"}})
        with connect(server) as opened:
            head = f"DELETE {MAPS}/m HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            opened.sendall(f"{head}Content-Length: 40\r\n\r\n".encode())
            everything(opened)
        assert ask(f"{server.url}{MAPS}/m")[0] == 200


def test_new_connections_replace_the_oldest_idle_ones() -> None:
    with serving(limits=HttpLimits(connections=20)) as server:
        held = [connect(server) for _ in range(60)]
        assert ask(f"{server.url}/readyz") == (200, b"ok")
        # The oldest connections were closed.
        assert everything(held[0]) == b""
        for each in held:
            each.close()


def test_active_connections_stay_open_and_new_ones_are_refused_at_the_limit() -> None:
    with serving(limits=HttpLimits(connections=5)) as server:
        watches = []
        for _ in range(5):
            opened = connect(server)
            opened.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert opened.recv(12) == b"HTTP/1.1 200"
            watches.append(opened)
        with connect(server) as another:
            assert everything(another).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        watches.pop().close()
        wait_until(lambda: _is_ready(server))
        for each in watches:
            each.close()


def _is_ready(server: ApiServer) -> bool:
    try:
        return ask(f"{server.url}/readyz")[0] == 200
    except OSError:
        return False


def test_unfinished_headers_share_a_size_limit() -> None:
    limits = HttpLimits(unfinished_bytes=2_000_000)
    with serving(limits=limits) as server:
        held = []
        for _ in range(10):
            opened = connect(server)
            with contextlib.suppress(ConnectionError):
                opened.sendall(b"GET / HTTP/1.1\r\nX: %b" % (b"x" * 900_000))
            held.append(opened)
        assert ask(f"{server.url}/readyz") == (200, b"ok")
        answers = []
        readers = [
            threading.Thread(target=lambda each=each: answers.append(everything(each)[:12])) for each in held[3:]
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(20)
        assert answers.count(b"HTTP/1.1 503") >= 5
        for each in held:
            each.close()


class Connection:
    """A connection that remembers whether it was closed."""

    closed = False

    def close_idle(self) -> None:
        self.closed = True


def test_the_longest_idle_connection_is_closed_first(caplog: pytest.LogCaptureFixture) -> None:
    table = ConnectionTable(HttpLimits(connections=2), clock=lambda: 100.0)
    first, second, third = Connection(), Connection(), Connection()
    assert table.add(first)
    assert table.add(second)
    table.work(first)
    table.wait(first)
    assert table.add(third)
    assert (first.closed, second.closed) == (False, True)
    assert "2 connections are open" in caplog.text
    table.work(first)
    table.work(third)
    table.discard(second)
    assert not table.add(Connection())
    assert (table.closed, table.refused) == (1, 1)


class Sockets:
    """An application that accepts WebSockets and waits until they end."""

    def answers(self, scope: Any) -> bool:
        return bool(scope["type"] == "websocket")

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()


def test_websockets_count_as_connections_until_closed() -> None:
    with serving(limits=HttpLimits(connections=3)) as server:
        server.mount(Sockets())
        address = server.url.replace("http", "ws") + "/socket"
        with contextlib.ExitStack() as opened:
            for _ in range(3):
                opened.enter_context(websocket(address, proxy=None))
            another = opened.enter_context(connect(server))
            assert everything(another).startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        wait_until(lambda: _is_ready(server))


def test_a_refused_websocket_upgrade_returns_404_without_logging_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with serving() as server:
        address = server.url.replace("http", "ws") + "/api/v1/namespaces/default/pods/none/exec?command=ls"
        with pytest.raises(InvalidStatus) as refused:
            websocket(address, proxy=None)
        assert refused.value.response.status_code == 404
        assert b'"kind":"Status"' in refused.value.response.body
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_concurrent_refusal_responses_are_limited() -> None:
    table = ConnectionTable(HttpLimits(connections=1))
    assert [table.begin_rejection() for _ in range(MAX_REJECTIONS + 1)] == [True] * MAX_REJECTIONS + [False]
    table.end_rejection()
    assert table.begin_rejection()


def test_a_connection_with_oversized_headers_counts_until_closed() -> None:
    with serving(limits=HttpLimits(connections=2, header_bytes=1_000)) as server:
        held = [connect(server) for _ in range(2)]
        for each in held:
            each.sendall(b"GET / HTTP/1.1\r\nX: %b" % (b"x" * 9_000))
        for each in held:
            assert each.recv(12) == b"HTTP/1.1 431"
        with connect(server) as another:
            assert everything(another).startswith(b"HTTP/1.1 503")
        wait_until(lambda: _is_ready(server))
        for each in held:
            each.close()


def test_the_default_connection_limit_leaves_file_descriptors_free() -> None:
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert 16 <= default_connections() <= max(16, soft - 128)


def test_running_out_of_file_descriptors_and_recovering_are_logged_once_each(caplog: pytest.LogCaptureFixture) -> None:
    used = [10, 95, 99, 50, 96]
    watch = DescriptorWatch(100, lambda: used.pop(0))
    with caplog.at_level(logging.WARNING):
        assert [watch.check(7) for _ in range(5)] == [False, True, True, False, True]
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith("95 of 100 file descriptors are in use, 7 of them by clients")
    assert messages[1] == "file descriptors are available again: 50 of 100 are in use"
    assert len(messages) == 3


def test_a_failing_descriptor_count_is_treated_as_no_free_descriptors(caplog: pytest.LogCaptureFixture) -> None:
    def count() -> int:
        raise OSError(24, "Too many open files")

    assert DescriptorWatch(100, count).check(7)
    assert "100 of 100 file descriptors" in caplog.text
