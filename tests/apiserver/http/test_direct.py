"""Requests that bypass uvicorn: which ones do, and that they get the same bytes as through uvicorn."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest

from bayplan.apiserver.http.direct import DirectCycle, is_direct
from bayplan.apiserver.http.request_head import MAX_DIRECT_BYTES, RequestHead
from bayplan.apiserver.http.server import ApiServer
from bayplan.apiserver.rest.messages import Response
from tests.apiserver.client import pod
from tests.apiserver.serving import PATIENCE, call, serving, wait_until

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
OTHER_WAY = "; charset=utf-8"
"""A parameter that the API ignores, but that `is_direct` does not."""


def request(method: str, path: str, body: bytes = b"", content_type: str = "", *more: str) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more]
    lines += [f"Content-Type: {content_type}"] if content_type else []
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def connect(server: ApiServer) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), PATIENCE)


def answer(connection: socket.socket) -> bytes:
    """Return one response without its date."""
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(1 << 16)
        assert received, data
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    fields = head.split(b"\r\n")
    (size,) = [int(line.partition(b":")[2]) for line in fields if line.startswith(b"content-length")]
    while len(body) < size:
        body += connection.recv(1 << 16)
    assert len(body) == size
    return b"\r\n".join(line for line in fields if not line.startswith(b"date")) + b"\r\n\r\n" + body


def of(name: str) -> bytes:
    return json.dumps(pod(name)).encode()


@pytest.mark.parametrize(
    ("method", "path", "body", "content_type", "status"),
    [
        pytest.param("PATCH", f"{PODS}/a?dryRun=All", b'{"metadata":{"labels":{"x":"y"}}}', MERGE, 200, id="a patch"),
        pytest.param("PUT", f"{PODS}/a?dryRun=All", of("a"), "application/json", 200, id="an update"),
        pytest.param("POST", PODS, of("a"), "application/json", 409, id="a name in use"),
        pytest.param("POST", PODS, b'{"spec":{}}', "application/json", 422, id="an invalid pod"),
        pytest.param("POST", PODS, b"{", "application/json", 400, id="a broken body"),
        pytest.param("POST", "/api/v1/nowhere", b"{}", "application/json", 404, id="no such resource"),
        pytest.param("PATCH", f"{PODS}/a?dryRun=All", b'{"nope":1}', MERGE, 200, id="a warning in a header"),
        pytest.param("PATCH", f"{PODS}/%61?dryRun=All&x=%20", b"{}", MERGE, 200, id="escapes in the address"),
    ],
)
def test_direct_and_uvicorn_responses_are_identical(
    method: str, path: str, body: bytes, content_type: str, status: int
) -> None:
    with serving([pod("a")]) as server, connect(server) as connection:
        found = []
        # A spec that is sent a second time comes from the cache, in which its fields have another order; hence two
        # requests through uvicorn.
        for media_type in (content_type + OTHER_WAY, content_type + OTHER_WAY, content_type):
            connection.sendall(request(method, path, body, media_type))
            # A second may pass between two of them.
            found.append(re.sub(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", b"TIME", answer(connection)))
        assert server.connections.direct == 1
        assert found[1] == found[2]
        assert found[2].startswith(b"HTTP/1.1 %d " % status)


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param([(b"content-length", b"10"), (b"content-type", b"application/json")], True, id="JSON"),
        pytest.param([], True, id="no body"),
        pytest.param([(b"content-length", b"10"), (b"content-type", b"application/yaml")], False, id="YAML"),
        pytest.param([(b"content-length", b"%d" % (MAX_DIRECT_BYTES + 1))], False, id="a long body"),
        pytest.param([(b"content-length", b"1" * 40)], False, id="a huge length"),
        pytest.param([(b"content-length", b"-1")], False, id="a negative length"),
        pytest.param([(b"transfer-encoding", b"chunked")], False, id="chunks"),
        pytest.param([(b"content-encoding", b"gzip")], False, id="a compressed body"),
        pytest.param([(b"expect", b"100-continue")], False, id="a client that asks first"),
    ],
)
def test_only_short_uncompressed_json_bodies_are_answered_directly(
    headers: list[tuple[bytes, bytes]], want: bool
) -> None:
    assert is_direct(headers) is want


def test_a_body_sent_in_pieces_is_answered_directly_when_complete(tmp_path: Path) -> None:
    with serving(store=tmp_path / "store") as server, connect(server) as connection:
        whole = request("POST", PODS, of("a"), "application/json")
        for start in range(0, len(whole), 60):
            connection.sendall(whole[start : start + 60])
        assert answer(connection).startswith(b"HTTP/1.1 201 Created")
        connection.sendall(request("DELETE", f"{PODS}/a"))
        assert answer(connection).startswith(b"HTTP/1.1 200 OK")
        assert server.connections.direct == 2
        assert server.connections.unfinished_bytes == 0


def test_pipelined_requests_are_answered_in_order(tmp_path: Path) -> None:
    """The second one arrives while the first waits for the disk."""
    with serving(store=tmp_path / "store") as server, connect(server) as connection:
        posts = [request("POST", PODS, of(name), "application/json") for name in "abc"]
        connection.sendall(b"".join(posts) + request("GET", f"{PODS}/c"))
        received = b""
        while received.count(b'"kind":"Pod"') < 4:
            received += connection.recv(1 << 16)
        places = [received.index(f'"metadata":{{"name":"{name}"'.encode()) for name in "abc"]
        assert places == sorted(places)
        assert received.count(b"HTTP/1.1 201") == 3


def test_connection_close_closes_the_connection_after_the_response() -> None:
    with serving() as server, connect(server) as connection:
        connection.sendall(request("POST", PODS, of("a"), "application/json", "Connection: close"))
        assert b"connection: close\r\n" in answer(connection)
        assert connection.recv(1) == b""
        assert server.connections.direct == 1


def test_direct_writes_obey_the_rate_limit_and_require_the_token() -> None:
    with serving(rate_limit=1) as server, connect(server) as connection:
        codes = []
        for name in "abc":
            connection.sendall(request("POST", PODS, of(name), "application/json"))
            codes.append(answer(connection).split()[1])
        assert codes == [b"201", b"201", b"429"]
        assert server.connections.direct == 0
    with serving(token="secret") as server, connect(server) as connection:
        connection.sendall(request("POST", PODS, of("a"), "application/json"))
        assert answer(connection).startswith(b"HTTP/1.1 401")
        connection.sendall(request("POST", PODS, of("a"), "application/json", "Authorization: Bearer secret"))
        assert answer(connection).startswith(b"HTTP/1.1 201")
        assert server.connections.direct == 2


def test_a_head_is_checked_again_only_if_its_bytes_differ() -> None:
    with serving(token="secret") as server, connect(server) as connection:

        def codes(*requests: bytes) -> list[bytes]:
            found = []
            for each in requests:
                connection.sendall(each)
                found.append(answer(connection).split()[1])
            return found

        allowed = "Authorization: Bearer secret"
        first, second = (request("POST", PODS, of(name), "application/json", allowed) for name in "ab")
        assert codes(first, second, first) == [b"201", b"201", b"409"]
        assert server.connections.unparsed == 2
        dry_run = request("POST", f"{PODS}?dryRun=All", of("c"), "application/json", allowed)
        foreign = request("POST", PODS, of("c"), "application/json", "Authorization: Bearer wrong!")
        patch = request("PATCH", f"{PODS}/a", b"{}", MERGE, allowed)
        delete = request("DELETE", f"{PODS}/a", b"{}", "application/json", allowed)
        assert codes(dry_run, foreign, second, patch, delete) == [b"201", b"401", b"409", b"200", b"200"]
        assert server.connections.unparsed == 2
        # Nothing is cached for a client without access.
        assert codes(foreign, foreign, first) == [b"401", b"401", b"201"]
        assert server.connections.unparsed == 2


def test_large_heads_are_not_cached() -> None:
    padding = f"X-Padding: {'x' * 9_000}"
    with serving() as server, connect(server) as connection:
        for name in "ab":
            connection.sendall(request("POST", PODS, of(name), "application/json", padding))
            assert statuses(connection, 1) == [b"201"]
        assert (server.connections.direct, server.connections.unparsed) == (2, 0)


def statuses(connection: socket.socket, count: int) -> list[bytes]:
    """Return the status codes of the next `count` responses, which may arrive together."""
    received = b""
    while len(found := re.findall(rb"HTTP/1.1 (\d+)", received)) < count or not received.endswith(b"}\n"):
        piece = connection.recv(1 << 16)
        assert piece, received
        received += piece
    return found


FIRST, SECOND, LONGER = (request("POST", PODS, of(name), "application/json") for name in ("a", "b", "c" * 30))
OTHER = request("POST", PODS, of("b"), "application/json", "X-Other: 1")


@pytest.mark.parametrize(
    ("pieces", "unparsed"),
    [
        pytest.param([FIRST, SECOND, LONGER], 2, id="one piece each"),
        pytest.param([FIRST, (SECOND[:40], SECOND[40:]), LONGER], 1, id="the second in two pieces"),
        pytest.param([(FIRST[:40], FIRST[40:]), SECOND, LONGER], 1, id="the first in two pieces"),
        pytest.param([FIRST, b"\r\n" + SECOND, LONGER], 1, id="a line break before the second"),
        pytest.param([FIRST, OTHER, LONGER], 0, id="another header"),
    ],
)
def test_a_request_with_the_head_of_the_last_one_is_not_parsed_if_it_arrives_in_one_piece(
    pieces: list[bytes | tuple[bytes, bytes]], unparsed: int
) -> None:
    with serving() as server, connect(server) as connection:
        found = []
        for piece in pieces:
            if isinstance(piece, tuple):
                start, piece = piece
                connection.sendall(start)
                wait_until(lambda: server.connections.unfinished_bytes > 0)
            connection.sendall(piece)
            found += statuses(connection, 1)
        assert found == [b"201"] * 3
        assert (server.connections.unparsed, server.connections.direct) == (unparsed, 3)
        assert {each["metadata"]["name"] for each in call(server, "GET", PODS)["items"]} == {"a", "b", "c" * 30}
        assert server.connections.unfinished_bytes == 0


def test_pipelined_requests_with_equal_heads_are_parsed() -> None:
    with serving() as server, connect(server) as connection:
        connection.sendall(FIRST)
        assert statuses(connection, 1) == [b"201"]
        connection.sendall(SECOND + LONGER)
        assert statuses(connection, 2) == [b"201", b"201"]
        assert server.connections.unparsed == 0


def test_bytes_after_the_announced_body_of_a_repeated_request_are_rejected() -> None:
    with serving() as server, connect(server) as connection:
        connection.sendall(FIRST)
        assert statuses(connection, 1) == [b"201"]
        connection.sendall(FIRST + b"x")
        received = b""
        while piece := connection.recv(1 << 16):
            received += piece
        assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"409", b"400"]
        assert server.connections.unparsed == 0


def test_a_repeated_request_finds_a_resource_that_was_defined_or_deleted_in_between() -> None:
    path = "/apis/shop.example.com/v1/namespaces/default/crates"
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    names = {"plural": "crates", "singular": "crate", "kind": "Crate", "listKind": "CrateList"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crates.shop.example.com"},
        "spec": {"group": "shop.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    with serving() as server, connect(server) as connection:

        def create(name: str) -> bytes:
            crate = {"apiVersion": "shop.example.com/v1", "kind": "Crate", "metadata": {"name": name}}
            connection.sendall(request("POST", path, json.dumps(crate).encode(), "application/json"))
            return answer(connection).split()[1]

        assert create("a") == b"404"
        call(server, "POST", definitions, definition)
        assert [create("a"), create("b")] == [b"201", b"201"]
        call(server, "DELETE", f"{definitions}/crates.shop.example.com")
        assert create("c") == b"404"
        assert server.connections.unparsed == 3


def test_requests_of_a_client_that_does_not_read_are_not_answered_directly() -> None:
    """Otherwise, each small patch of a large object would add the object to the server's buffer."""
    large = {"metadata": {"name": "large"}, "data": {"a": "x" * 900_000}}
    with serving() as server, connect(server) as connection:
        call(server, "POST", MAPS, large)
        before = server.connections.direct
        patch = request("PATCH", f"{MAPS}/large", b'{"metadata":{"labels":{"a":"b"}}}', MERGE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(patch * 40)
        assert call(server, "GET", f"{MAPS}/large")["metadata"]["labels"] == {"a": "b"}
        assert server.connections.direct - before < 20


class Broken:
    """An application whose own code fails."""

    def __init__(self, fails: str) -> None:
        self.fails = fails

    async def answer_write(self, _scope: object, _body: bytes) -> Response:
        if self.fails == "to answer":
            raise KeyError("a bug")
        return Response(799 if self.fails == "to name a status" else 201, b"{}")

    def until_durable(self, _response: Response) -> asyncio.Future[None] | None:
        if self.fails != "to store":
            return None
        waiting = asyncio.get_running_loop().create_future()
        waiting.cancel()
        return waiting

    def write_failed(self, _problem: BaseException) -> Response:
        return Response(500, b"{}")


@pytest.mark.parametrize(
    ("fails", "want"),
    [
        pytest.param("to answer", [], id="an exception ends the connection"),
        pytest.param("to name a status", [], id="an unknown status ends the connection"),
        pytest.param("to store", [b"HTTP/1.1 500 Internal Server Error"], id="a cancelled write is not acknowledged"),
    ],
)
def test_server_failures_abort_the_connection_or_return_500(
    fails: str, want: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    class Transport:
        def __init__(self) -> None:
            self.written: list[bytes] = []
            self.aborted = False

        def write(self, data: bytes) -> None:
            self.written.append(data.partition(b"\r\n")[0])

        def abort(self) -> None:
            self.aborted = True

    async def answered() -> Transport:
        transport = Transport()
        head = RequestHead.of({"method": "POST", "path": PODS, "headers": []})
        cycle = DirectCycle(
            head, cast("Any", transport), cast("Any", Broken(fails)), [], keep_alive=True, on_response=lambda: None
        )
        cycle.answer()
        await asyncio.sleep(0)
        return transport

    transport = asyncio.run(answered())
    assert transport.written == want
    assert transport.aborted == (not want) == bool(caplog.records)
