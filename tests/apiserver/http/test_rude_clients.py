"""Clients that are slow, disconnect, or send too much or nothing do not affect others, and leave no state behind."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from bayplan.apiserver.http.server import ApiServer
from bayplan.apiserver.rest import watching
from tests.apiserver.client import Client, pod
from tests.apiserver.serving import ask, call, serving, wait_until

PODS = "/api/v1/namespaces/default/pods"
MAPS = "/api/v1/namespaces/default/configmaps"

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")


def connect(server: ApiServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", urlsplit(server.url).port or 0), 10)


def watching_pods(server: ApiServer, query: str = "") -> socket.socket:
    """Return the connection of a watch that has begun."""
    opened = connect(server)
    opened.sendall(f"GET {MAPS}?watch=1{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert opened.recv(12) == b"HTTP/1.1 200"
    return opened


def listeners(server: ApiServer) -> int:
    """Return how many watches the store still notifies."""
    return len(server.backend.store._on_gap)


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with serving() as found:
        yield found


def test_vanished_watchers_leave_no_listeners(server: ApiServer) -> None:
    for number in range(40):
        watcher = watching_pods(server, f"&labelSelector=a%3D{number}" if number % 2 else "")
        if number % 3:
            # Closes with a reset instead of the TCP handshake.
            watcher.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        watcher.close()
    call(server, "POST", MAPS, {"metadata": {"name": "after", "labels": {"a": "1"}}})
    wait_until(lambda: listeners(server) == 0)


def test_a_slow_watcher_is_disconnected_without_affecting_others(
    server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MAX_BUFFERED_BYTES", 1 << 20)
    slow = watching_pods(server)
    prompt = watching_pods(server)
    reported: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):
            while piece := prompt.recv(1 << 20):
                reported.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        call(server, "POST", MAPS, {"metadata": {"name": f"m{number}"}, "data": {"a": "x" * 200_000}})
    wait_until(lambda: b"".join(reported).count(b'"type":"ADDED"') == 60)
    wait_until(lambda: listeners(server) == 1)
    prompt.shutdown(socket.SHUT_RDWR)
    reader.join(10)
    slow.close()
    prompt.close()
    wait_until(lambda: listeners(server) == 0)


@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n", b"{", id="half a body"),
        pytest.param(b"POST %s HTTP/1.1\r\nHost: loc", b"", id="half a head"),
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"", id="TLS to a plain server"),
        pytest.param(
            b"POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"zz\r\n", id="bad chunks"
        ),
    ],
)
def test_incomplete_requests_are_dropped(head: bytes, body: bytes, server: ApiServer) -> None:
    with connect(server) as opened:
        opened.sendall((head % MAPS.encode() if b"%s" in head else head) + body)
    assert ask(f"{server.url}/readyz") == (200, b"ok")
    assert call(server, "GET", MAPS)["items"] == []


@pytest.mark.parametrize(
    ("how", "pieces"),
    [
        pytest.param(b"Content-Length: 2000000000", 0, id="the declared length, before the body arrives"),
        pytest.param(b"Content-Length: 2000000000", 8, id="the declared length, while the body arrives"),
        pytest.param(b"Transfer-Encoding: chunked", 8, id="chunks"),
    ],
)
def test_huge_bodies_are_refused_before_they_are_read(how: bytes, pieces: int, server: ApiServer) -> None:
    chunked = how.endswith(b"chunked")
    with connect(server) as opened:
        opened.sendall(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (MAPS.encode(), how))
        piece = b"x" * (1 << 20)
        # The server may close the connection while the client still sends.
        with contextlib.suppress(OSError):
            for _ in range(pieces):
                opened.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
        try:
            answer = opened.recv(1 << 16)
        except ConnectionResetError:
            assert pieces, "the connection was reset although the client sent no body"
        else:
            assert answer.startswith(b"HTTP/1.1 413 ")
    assert ask(f"{server.url}/readyz") == (200, b"ok")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 100_000, id="brackets that open"),
        pytest.param(b'{"a":' * 50_000 + b"1" + b"}" * 50_000, id="objects in objects"),
        pytest.param(b'{"data":{"a":' + b"9" * 1_000_000 + b"}}", id="a long number"),
        pytest.param(b'{"metadata":{"name":"' + b"x" * 2_000_000 + b'"}}', id="a long name"),
        pytest.param(
            json.dumps({"metadata": {"name": "m"}, "data": {str(i): "" for i in range(150_000)}}).encode(), id="many"
        ),
        pytest.param(b"x:\n" + b"- &a [x,x,x]\n- &b [*a,*a,*a]\n" * 20_000, id="aliases"),
    ],
)
def test_pathological_bodies_are_answered(body: bytes, server: ApiServer) -> None:
    for kind in ("application/json", "application/yaml"):
        headers: dict[str, str] = {"Content-Type": kind}
        status, _ = ask(server.url + MAPS, "POST", body, **headers)
        assert status in (201, 400, 409, 413, 422)
    assert ask(f"{server.url}/readyz") == (200, b"ok")


def test_clock_jumps_do_not_affect_requests_or_resource_versions() -> None:
    client = Client()
    for seconds in (0.0, 4e9, -1e9, 1e9):
        client.seconds += seconds
        name = f"p{seconds:.0f}".replace("-", "m")
        assert client.post(PODS, pod(name)).status == 201
        assert client.patch(f"{PODS}/{name}", {"metadata": {"labels": {"a": "b"}}}).status == 200
        assert client.get(PODS, accept="application/json;as=Table;v=v1;g=meta.k8s.io").status == 200
        assert client.delete(f"{PODS}/{name}").status == 200
    versions = [write.revision for write in client.store.since("pods", 0)]
    assert versions == sorted(versions)
    client.store.check_invariants()
