"""Watches over WebSockets, which some client libraries prefer."""

from __future__ import annotations

import contextlib
import logging
import socket
from urllib.parse import urlsplit

import msgspec
import pytest
from websockets.exceptions import ConnectionClosedOK, InvalidStatus
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as websocket

from bayplan.apiserver.http.server import ApiServer
from tests.apiserver.serving import call, serving, wait_until

MAPS = "/api/v1/namespaces/default/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"


def opened(
    server: ApiServer,
    query: str,
    *,
    origin: str | None = "http://127.0.0.1",
    accept: str = "application/json",
    subprotocols: tuple[str, ...] = (),
) -> ClientConnection:
    """Open the watch of a table as a WebSocket."""
    own = origin and f"{origin}:{urlsplit(server.url).port}" if origin == "http://127.0.0.1" else origin
    return websocket(
        f"{server.url.replace('http', 'ws')}{MAPS}?watch=true&{query}",
        origin=own,  # type: ignore[arg-type]
        additional_headers={"Accept": accept},
        subprotocols=subprotocols or None,  # type: ignore[arg-type]
        proxy=None,
    )


def test_each_event_is_a_text_message_and_the_watch_is_closed_normally_at_its_timeout() -> None:
    with serving() as server:
        for name in ("a", "b"):
            call(server, "POST", MAPS, {"metadata": {"name": name}, "data": {"text": "one\u2028two\x85"}})
        with opened(server, "timeoutSeconds=2&fieldSelector=metadata.name!=kube-root-ca.crt") as watch:
            found = [watch.recv(20), watch.recv(20)]
            call(server, "DELETE", f"{MAPS}/a")
            found.append(watch.recv(20))
            with pytest.raises(ConnectionClosedOK) as closed:
                watch.recv(20)
        assert all(isinstance(message, str) and message.endswith("}\n") for message in found)
        events = [msgspec.json.decode(message) for message in found]
        shown = [(event["type"], event["object"]["metadata"]["name"]) for event in events]
        assert shown == [("ADDED", "a"), ("ADDED", "b"), ("DELETED", "a")]
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000


def test_events_in_protobuf_are_binary_messages_without_a_length() -> None:
    with serving() as server:
        call(server, "POST", MAPS, {"metadata": {"name": "a"}})
        with opened(server, "fieldSelector=metadata.name=a", accept=PROTOBUF) as watch:
            call(server, "DELETE", f"{MAPS}/a")
            for kind in (b"ADDED", b"DELETED"):
                message = watch.recv(20)
                assert isinstance(message, bytes)
                assert message.startswith(b"\n%c%b\x12" % (len(kind), kind))


def test_one_subprotocol_is_accepted() -> None:
    with serving() as server, opened(server, "", subprotocols=("one",)) as watch:
        assert watch.subprotocol == "one"


@pytest.mark.parametrize(
    ("query", "origin", "subprotocols", "want"),
    [
        pytest.param("", None, (), 403, id="a client without an origin is refused"),
        pytest.param("", "null", (), 403, id="a page without an origin is refused"),
        pytest.param("", "http://pages.example", (), 403, id="a page of another origin is refused"),
        pytest.param("", "http://127.0.0.1", ("one", "two"), 400, id="two subprotocols are refused"),
        pytest.param(
            "labelSelector=a=b=c", "http://127.0.0.1", (), 400, id="an invalid watch is refused before it is accepted"
        ),
    ],
)
def test_refused_watches(query: str, origin: str | None, subprotocols: tuple[str, ...], want: int) -> None:
    with serving() as server:
        with pytest.raises(InvalidStatus) as refused:
            opened(server, query, origin=origin, subprotocols=subprotocols)
        assert refused.value.response.status_code == want


def test_an_error_has_the_media_type_that_the_client_accepts() -> None:
    with serving() as server:
        with pytest.raises(InvalidStatus) as refused:
            opened(server, "", accept="application/yaml")
        assert refused.value.response.status_code == 406
        assert refused.value.response.headers["Content-Type"] == "application/yaml"
        assert b"\nkind: Status\n" in refused.value.response.body


def test_watches_end_with_their_client_and_with_the_server(caplog: pytest.LogCaptureFixture) -> None:
    with contextlib.ExitStack() as stack:
        with serving() as server:
            quiet = server.connections.open
            with opened(server, ""):
                wait_until(lambda: server.connections.open > quiet)
            wait_until(lambda: server.connections.open == quiet)
            last = stack.enter_context(opened(server, "fieldSelector=metadata.name=none"))
        with pytest.raises(ConnectionClosedOK):
            last.recv(20)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_a_client_that_does_not_read_is_disconnected() -> None:
    text = "x" * 500_000
    with serving() as server:
        quiet = server.connections.open
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname or "", address.port or 0), 20) as slow:
            slow.sendall(
                f"GET {MAPS}?watch=true HTTP/1.1\r\nHost: {address.netloc}\r\nOrigin: {server.url}\r\nUpgrade: websocket\r\n"
                "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            assert slow.recv(12) == b"HTTP/1.1 101"
            for number in range(60):
                call(server, "POST", MAPS, {"metadata": {"name": f"m{number}"}, "data": {"text": text}})
            wait_until(lambda: server.connections.open == quiet)
