"""The proxy for an API server follows from the kubeconfig and the environment."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from bayplan.base.errors import InputError
from bayplan.client.connection import ApiConnection, ConnectionLost
from bayplan.client.proxies import proxy_for
from bayplan.client.requests import ApiRequest
from tests.client.test_connection import connected, kubeconfig

PROXY = "http://proxy:3128"
SERVER = "https://api.example.com:6443"


@pytest.mark.parametrize(
    ("url", "declared", "environment", "want"),
    [
        pytest.param(SERVER, None, {}, None, id="no proxy"),
        pytest.param(
            SERVER, PROXY, {"HTTPS_PROXY": "http://other:1", "NO_PROXY": "*"}, PROXY, id="the kubeconfig wins"
        ),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY}, PROXY, id="the environment's proxy"),
        pytest.param(SERVER, None, {"https_proxy": "proxy:3128"}, PROXY, id="in lower case, without a protocol"),
        pytest.param(SERVER, None, {"HTTP_PROXY": PROXY}, None, id="a proxy for HTTP only"),
        pytest.param("https://localhost:1", None, {"HTTPS_PROXY": PROXY}, None, id="this machine by name"),
        pytest.param("https://127.0.0.1:1", None, {"HTTPS_PROXY": PROXY}, None, id="this machine by address"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "x,example.com"}, None, id="a domain's host"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*.example.com"}, None, id="with an asterisk"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": ".com, y"}, None, id="below a domain"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "ample.com"}, PROXY, id="another domain"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com:443"}, PROXY, id="another port"),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com:6443"}, None, id="this port"),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/8"}, None, id="a network"),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3"}, None, id="an address"),
        pytest.param(
            "https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.1.2.3:443"}, None, id="an address's port"
        ),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "a/b"}, PROXY, id="no network"),
        pytest.param(
            "https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "10.0.0.0/255.0.0.0"}, PROXY, id="a mask"
        ),
        pytest.param("https://10.1.2.3", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": ".2.3"}, None, id="an address's end"),
        pytest.param("https://[fd00::1]:6443", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "fd00::1"}, None, id="IPv6"),
        pytest.param(
            "https://[fd00::1]:6443",
            None,
            {"HTTPS_PROXY": PROXY, "NO_PROXY": "[fd00::1]:6443"},
            None,
            id="IPv6 with a port",
        ),
        pytest.param(
            "https://[fd00::1]:6443", None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "[fd00::1]"}, PROXY, id="only brackets"
        ),
        pytest.param(
            "https://api.example.com",
            None,
            {"HTTPS_PROXY": PROXY, "NO_PROXY": "example.com:443"},
            None,
            id="HTTPS' port",
        ),
        pytest.param(
            "http://example.com", None, {"HTTP_PROXY": PROXY, "NO_PROXY": "example.com:80"}, None, id="HTTP's port"
        ),
        pytest.param(SERVER, None, {"HTTPS_PROXY": PROXY, "NO_PROXY": "*example.com, :6443"}, PROXY, id="no domain"),
    ],
)
def test_a_server_has_the_proxy_that_kubectl_uses(
    url: str, declared: str | None, environment: dict[str, str], want: str | None
) -> None:
    assert proxy_for(url, declared, environment) == want


@pytest.mark.parametrize(
    ("url", "declared", "proxy", "want"),
    [
        pytest.param(SERVER, "socks5://p:1", "", r"config proxy-url: .* got 'socks5://p:1'", id="another protocol"),
        pytest.param(SERVER, "proxy:1", "", r"config proxy-url: .* got 'proxy:1'", id="no protocol in a kubeconfig"),
        pytest.param(SERVER, 5, "", r"config proxy-url: .* got '5'", id="a number"),
        pytest.param(SERVER, None, "http://[bad", r"^HTTPS_PROXY: .* got 'http://\[bad'", id="a malformed URL"),
        pytest.param(SERVER, None, "http://", r"^HTTPS_PROXY: .* got 'http://'", id="no host"),
        pytest.param(SERVER, None, "p:x", r"^HTTPS_PROXY: .* got 'http://p:x'", id="an invalid port"),
        pytest.param(SERVER, None, "socks5://me:a/b@c@p:1", r"got 'socks5://p:1'", id="its password is not shown"),
        pytest.param(SERVER, "me:secret@p:1", "", r"got 'p:1'", id="nor is it without a protocol"),
        pytest.param("https://h:abc", None, "", r"config server: .* got 'https://h:abc'", id="an invalid server"),
        pytest.param("h:1", None, "", r"config server: .* got 'h:1'", id="a server without a protocol"),
    ],
)
def test_an_unusable_url_is_refused(url: str, declared: str | None, proxy: str, want: str) -> None:
    with pytest.raises(InputError, match=want) as refused:
        proxy_for(url, declared, {"HTTPS_PROXY": proxy}, where="config")
    assert "with http:// or https://, a host and a valid port" in str(refused.value)


async def problems(connection: ApiConnection) -> list[str]:
    """Return the errors of a request and a stream, without the URLs."""
    response = await connection.send(ApiRequest("POST", "/api/v1/nodes", b"{}"))
    with pytest.raises(ConnectionLost) as lost:
        await anext(connection.stream("/api/v1/nodes", "watch=1"))
    url = connection.access.url
    return [response.message.removeprefix(f'Post "{url}/api/v1/nodes": '), str(lost.value).removeprefix(f"{url}: ")]


@pytest.mark.parametrize("host", ["127.0.0.1", "no-such-host.invalid"])
def test_errors_name_a_proxy_that_can_t_be_reached(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret@{host}:{port}")
    for problem in connected(kubeconfig(tmp_path, SERVER), problems):
        before, _, reason = problem.partition(f"{host}:{port}: ")
        assert before == "proxyconnect tcp: dial tcp "
        assert reason == "connection refused" or (host != "127.0.0.1" and "name" in reason)


def test_errors_of_a_proxy_do_not_show_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def use(connection: ApiConnection) -> list[str]:
        async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
            connection.access.proxy = f"http://me:secret@127.0.0.1:{proxy.sockets[0].getsockname()[1]}"
            return await problems(connection)

    assert connected(kubeconfig(tmp_path, SERVER), use) == ["Proxy Authentication Required"] * 2
