"""Allowed webhook targets: a target is allowed only if an entry covers it."""

from __future__ import annotations

import pytest

from bayplan.apiserver.admission.targets import Targets
from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document

SERVICE: Document = {"service": {"namespace": "shop", "name": "hook", "path": "x", "port": 8443}}


def url(text: str) -> Document:
    return {"url": text}


@pytest.mark.parametrize(
    ("allowed", "client", "want"),
    [
        pytest.param([], url("https://127.0.0.1:1/x"), None, id="nothing is allowed by default"),
        pytest.param([], SERVICE, None, id="a service is not allowed by default"),
        pytest.param(["loopback"], url("https://127.0.0.1:1/x"), "127.0.0.1:1 https://127.0.0.1:1/x", id="this machine"),
        pytest.param(["loopback"], url("https://localhost/x"), "localhost:443 https://localhost/x", id="localhost"),
        pytest.param(["loopback"], url("https://[::1]:2/"), "[::1]:2 https://[::1]:2/", id="an IPv6 address"),
        pytest.param(["loopback"], url("https://10.0.0.1/x"), None, id="another machine"),
        pytest.param(["loopback"], url("https://localhost.example.com/x"), None, id="a name with an allowed prefix"),
        pytest.param(["loopback"], url("https://127.0.0.1@10.0.0.1/x"), None, id="an address after user information"),
        pytest.param(["loopback"], url("http://127.0.0.1/x"), None, id="plain HTTP"),
        pytest.param(["loopback"], url("https://169.254.169.254/latest"), None, id="a metadata service"),
        pytest.param(["loopback"], SERVICE, None, id="a service without an address"),
        pytest.param(["h.example:443"], url("https://h.example/x"), "h.example:443 https://h.example/x", id="a host name"),
        pytest.param(["h.example:443"], url("https://h.example:444/x"), None, id="another port of the host"),
        pytest.param(["any"], url("https://10.0.0.1/x"), "10.0.0.1:443 https://10.0.0.1/x", id="any address"),
        pytest.param(["any"], url("https://10.0.0.1:99999/x"), None, id="an invalid port"),
        pytest.param(["shop/hook=127.0.0.1:9"], SERVICE, "127.0.0.1:9 https://hook.shop.svc:8443/x", id="a mapped service"),
        pytest.param(["shop/hook:8443=127.0.0.1:9"], SERVICE, "127.0.0.1:9 https://hook.shop.svc:8443/x", id="with a port"),
        pytest.param(["shop/hook:443=127.0.0.1:9"], SERVICE, None, id="another port of the service"),
        pytest.param(["10.0.0.1:443=127.0.0.1:9"], url("https://10.0.0.1/x"), "127.0.0.1:9 https://10.0.0.1/x", id="mapped"),
    ],
)  # fmt: skip
def test_webhook_targets_are_limited_to_allowed_addresses(
    allowed: list[str], client: Document, want: str | None
) -> None:
    found = Targets(allowed).find(client)
    shown = None if found is None else f"{found.place} {found.url(1).partition('?')[0]}"
    assert shown == want


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param("", id="nothing"),
        pytest.param("everywhere", id="a word"),
        pytest.param("host:99999", id="an invalid port"),
        pytest.param("shop/hook", id="an entry without an address"),
        pytest.param("https://host:1", id="a URL"),
    ],
)
def test_an_invalid_webhooks_target_is_refused(entry: str) -> None:
    with pytest.raises(InputError, match="--webhooks"):
        Targets([entry])
