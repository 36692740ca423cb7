"""Requests that a web page of another origin may have sent, and bodies that a form can send."""

from __future__ import annotations

import pytest

from bayplan.base.errors import InputError
from bayplan.base.web_origin import check_origins, foreign_origin, form_type

HOST = "127.0.0.1:6443"


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param({}, "", id="curl and client libraries send neither"),
        pytest.param({"origin": "http://127.0.0.1:6443"}, "", id="our own page"),
        pytest.param({"origin": "http://localhost:3000"}, "http://localhost:3000", id="another port is another origin"),
        pytest.param({"origin": "http://127.0.0.1"}, "http://127.0.0.1", id="the default port, too"),
        pytest.param({"origin": "https://evil.example"}, "https://evil.example", id="another host"),
        pytest.param({"origin": "null"}, "null", id="a sandboxed frame or a file"),
        pytest.param({"origin": "http://["}, "http://[", id="no URL at all"),
        pytest.param({"sec-fetch-site": "same-origin", "origin": "https://proxy.example"}, "", id="behind a proxy"),
        pytest.param({"sec-fetch-site": "none"}, "", id="an address that was typed"),
        pytest.param({"sec-fetch-site": "same-site", "origin": "http://127.0.0.1:3000"}, "http://127.0.0.1:3000", id="same site"),
        pytest.param({"sec-fetch-site": "cross-site"}, "a page of another site (cross-site)", id="without an origin"),
        pytest.param({"origin": "http://page.example:8080"}, "", id="an allowed origin"),
        pytest.param({"sec-fetch-site": "cross-site", "origin": "http://page.example:8080"}, "", id="an allowed site"),
    ],
)  # fmt: skip
def test_requests_from_foreign_origins_are_detected(headers: dict[str, str], want: str) -> None:
    assert foreign_origin({"host": HOST, **headers}, {"http://page.example:8080"}) == want


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        pytest.param("http://a.example", "a.example:80", id="port 80 of HTTP"),
        pytest.param("https://a.example", "a.example:443", id="port 443 of HTTPS"),
        pytest.param("https://A.example", "a.example", id="capital letters"),
        pytest.param("http://[::1]:8080", "[::1]:8080", id="IPv6"),
    ],
)
def test_an_origin_that_spells_the_host_differently_is_not_foreign(origin: str, host: str) -> None:
    assert foreign_origin({"host": host, "origin": origin}) == ""


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        pytest.param({"content-type": "application/json"}, "", id="JSON"),
        pytest.param({"content-type": "text/plain;charset=UTF-8"}, "text/plain", id="text"),
        pytest.param(
            {"content-type": "Multipart/Form-Data; boundary=x"}, "multipart/form-data", id="a form with files"
        ),
        pytest.param(
            {"content-type": "application/x-www-form-urlencoded"}, "application/x-www-form-urlencoded", id="a form"
        ),
        pytest.param({"content-length": "7"}, "", id="no type from a program"),
        pytest.param({"content-length": "7", "origin": "http://x"}, "none", id="no type from a browser"),
        pytest.param({"transfer-encoding": "chunked", "sec-fetch-site": "none"}, "none", id="no type, in chunks"),
        pytest.param({"content-length": "0", "origin": "http://x"}, "", id="no body"),
    ],
)
def test_form_content_types_are_detected(headers: dict[str, str], want: str) -> None:
    assert form_type(headers) == want


@pytest.mark.parametrize("origin", ["localhost:3000", "http://localhost:3000/", "*", "null", "ftp://x", "http://["])
def test_invalid_allowed_origins_are_refused(origin: str) -> None:
    with pytest.raises(InputError, match="--allow-origin"):
        check_origins([origin], "--allow-origin")
