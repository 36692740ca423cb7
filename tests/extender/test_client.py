"""HTTP with extenders: the request bodies, the connections, and how failures are reported."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from bayplan.base.errors import ConfigurationError
from bayplan.conformance.scripted_server import scripted
from bayplan.extender.client import ExtenderClient
from bayplan.extender.connections import ExtenderConnections
from bayplan.framework.configuration.document import Extender, ExtenderTLSConfig
from bayplan.framework.extender_answers import ExtenderFailure
from bayplan.testing.builders import make_pod
from tests.extender.servers import says

CERTIFICATES = Path(__file__).parent / "certificates"
CERTIFICATE, KEY = CERTIFICATES / "certificate.pem", CERTIFICATES / "key.pem"
SECOND_NS = 1_000_000_000


def extender(url: str, **settings: object) -> Extender:
    return replace(Extender(url_prefix=url, filter_verb="filter", http_timeout_ns=5 * SECOND_NS), **settings)


def send(configuration: Extender, verb: str = "filter") -> object:
    client = ExtenderClient(configuration)
    try:
        return client.send(verb, {"Pod": None})
    finally:
        client.close()


def test_requests_are_posted_as_json_to_the_path_of_the_verb() -> None:
    with scripted({"/a/filter": [says({"NodeNames": ["n"]})]}) as server:
        connections = ExtenderConnections([extender(f"http://{server.address}/a/")])
        with connections:
            client = connections._clients[0]
            for number in range(3):
                assert client.send("filter", {"number": number}) == {"NodeNames": ["n"]}
        assert server.take() == [("/a/filter", {"number": number}) for number in range(3)]


@pytest.mark.parametrize(
    ("url", "want"),
    [
        pytest.param(
            "http://127.0.0.1:1", "dial tcp 127.0.0.1:1: connect: connection refused", id="connection refused"
        ),
        pytest.param("http://nowhere.invalid", "dial tcp: lookup nowhere.invalid: no such host", id="no such host"),
        pytest.param("ftp://127.0.0.1", 'unsupported protocol scheme "ftp"', id="another protocol"),
    ],
)
def test_an_unreachable_server_is_reported_as_a_failure(url: str, want: str) -> None:
    with pytest.raises(ExtenderFailure) as problem:
        send(extender(url))
    assert str(problem.value) == f'Post "{url}/filter": {want}'


def test_loopback_requests_ignore_the_environments_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with scripted({"/filter": [says({})]}) as server:
        assert send(extender(f"http://{server.address}")) == {}


class MisbehavingServer(BaseHTTPRequestHandler):
    """Responds in two pieces that arrive too late, or redirects the client, depending on the path."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/moved":
            self.send_response(307)
            self.send_header("Location", "/there")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Content-Length", "9" if self.path == "/slow" else "2")
        self.end_headers()
        self.wfile.write(b"{" if self.path == "/slow" else b"{}")
        self.wfile.flush()
        if self.path == "/slow":
            threading.Event().wait(0.4)
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def misbehaving() -> Iterator[str]:
    yield from run(HTTPServer(("127.0.0.1", 0), MisbehavingServer), "http")


@pytest.fixture
def https() -> Iterator[str]:
    """Run a server whose certificate is its own authority, for the name extender.example."""
    server = HTTPServer(("127.0.0.1", 0), MisbehavingServer)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE, KEY)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    yield from run(server, "https")


def run(server: HTTPServer, scheme: str) -> Iterator[str]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"{scheme}://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_redirect_is_followed(misbehaving: str) -> None:
    assert send(extender(misbehaving), "moved") == {}


def test_a_late_body_is_reported_as_a_timeout(misbehaving: str) -> None:
    text = "context deadline exceeded (Client.Timeout or context cancellation while reading body)"
    with pytest.raises(ExtenderFailure) as problem:
        send(extender(misbehaving, http_timeout_ns=SECOND_NS // 5), "slow")
    assert str(problem.value) == text


def test_https_to_an_http_server_is_reported(misbehaving: str) -> None:
    url = misbehaving.replace("http", "https")
    want = f'Post "{url}/filter": http: server gave HTTP response to HTTPS client'
    with pytest.raises(ExtenderFailure) as problem:
        send(extender(url, enable_https=True))
    assert str(problem.value) == want


NAMED = ExtenderTLSConfig(server_name="extender.example", ca_file=str(CERTIFICATE))


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        pytest.param({"enable_https": True}, {}, id="enableHTTPS without authority verifies nothing"),
        pytest.param({"tls_config": ExtenderTLSConfig(insecure=True)}, {}, id="insecure"),
        pytest.param({"tls_config": NAMED}, {}, id="an authority, and the name of the certificate"),
        pytest.param(
            {"tls_config": replace(NAMED, ca_file="", ca_data=CERTIFICATE.read_bytes())}, {}, id="an authority as data"
        ),
        pytest.param(
            {"tls_config": replace(NAMED, cert_file=str(CERTIFICATE), key_file=str(KEY))},
            {},
            id="a certificate of our own",
        ),
        pytest.param({}, "x509: certificate signed by unknown authority", id="an unknown authority"),
        pytest.param(
            {"tls_config": replace(NAMED, server_name="")},
            "x509: certificate is not valid for 127.0.0.1",
            id="a certificate of another name",
        ),
    ],
)
def test_certificates_are_verified_as_configured(settings: dict[str, object], want: object, https: str) -> None:
    if not isinstance(want, str):
        assert send(extender(https, **settings)) == want
        return
    with pytest.raises(ExtenderFailure) as problem:
        send(extender(https, **settings))
    assert str(problem.value) == f'Post "{https}/filter": tls: failed to verify certificate: {want}'


def test_a_missing_certificate_file_is_a_configuration_error() -> None:
    tls = ExtenderTLSConfig(ca_file="/nowhere/ca.pem")
    with pytest.raises(ConfigurationError, match=r"tlsConfig: can't read /nowhere/ca\.pem: No such file or directory"):
        send(extender("https://127.0.0.1:1", tls_config=tls))


def test_typed_objects_are_sent_as_json() -> None:
    with scripted({"/filter": [says({})]}) as server:
        client = ExtenderClient(extender(f"http://{server.address}"))
        client.send("filter", {"Pod": make_pod("p").req(cpu="1").obj(), "NodeNames": None})
        client.close()
        ((_, asked),) = server.take()
    request: Any = asked
    assert request["Pod"]["metadata"]["name"] == "p"
    assert request["Pod"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    assert json.dumps(request["NodeNames"]) == "null"
