"""The page's ASGI application: media types, caching, compression, and which requests it does not answer."""

from __future__ import annotations

import asyncio
import gzip
import re

import pytest

from bayplan.base.asgi import Scope
from bayplan.ui.application import POLICY, Page
from bayplan.ui.static_files import load_static_files

STATIC = load_static_files()
PAGE = Page(STATIC)


def scope(path: str, method: str = "GET", **headers: str) -> Scope:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "headers": named}


def ask(path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of an answer."""
    sent: list[Scope] = []

    async def send(message: Scope) -> None:
        sent.append(message)

    async def receive() -> Scope:
        return {"type": "http.request"}

    asyncio.run(PAGE(scope(path, method, **headers), receive, send))
    start, *rest = sent
    answered = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], answered, b"".join(message["body"] for message in rest)


@pytest.mark.parametrize(
    ("path", "accept", "want"),
    [
        pytest.param("/ui", "*/*", True, id="the page's root"),
        pytest.param("/ui/pods/shop/web-0", "*/*", True, id="any address under it"),
        pytest.param("/", "text/html,*/*", True, id="the root for a browser"),
        pytest.param("/", "application/json", False, id="the root belongs to Kubernetes for all other clients"),
        pytest.param("/api/v1/pods", "text/html", False, id="the Kubernetes API, also for a browser"),
        pytest.param("/uitest", "text/html", False, id="a path with the same prefix"),
        pytest.param("/bayplan/v1/pods", "text/html", False, id="our own API"),
    ],
)
def test_the_application_answers_only_page_paths(path: str, accept: str, want: bool) -> None:
    assert PAGE.answers(scope(path, accept=accept)) is want


def test_the_application_does_not_answer_websockets() -> None:
    assert not PAGE.answers({"type": "websocket", "path": "/ui", "headers": []})


@pytest.mark.parametrize("path", ["/ui/", "/ui/pods/a/b", "/ui/objects/apps/v1/deployments"])
def test_each_page_address_returns_the_shell(path: str) -> None:
    status, headers, body = ask(path)
    assert status == 200
    assert headers["content-type"] == "text/html; charset=utf-8"
    assert headers["cache-control"] == "no-cache"
    assert headers["content-security-policy"] == POLICY
    assert f"/ui/static/{STATIC.digest}/main.js".encode() in body


def test_the_root_redirects_to_the_page() -> None:
    for path in ("/", "/ui"):
        status, headers, _ = ask(path)
        assert (status, headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("main.js", "text/javascript; charset=utf-8"),
        ("pages/pod.js", "text/javascript; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_static_files_have_content_types_and_immutable_caching(name: str, want: str) -> None:
    status, headers, body = ask(f"/ui/static/{STATIC.digest}/{name}")
    assert (status, headers["content-type"]) == (200, want)
    assert "immutable" in headers["cache-control"]
    assert len(body) == int(headers["content-length"])


def test_an_outdated_digest_returns_the_current_file_without_caching() -> None:
    assert ask("/ui/static/0123456789ab/main.js")[1]["cache-control"] == "no-cache"


def test_a_matching_etag_returns_304() -> None:
    path = f"/ui/static/{STATIC.digest}/main.js"
    etag = ask(path)[1]["etag"]
    assert ask(path, if_none_match=f'"other", W/{etag}')[0] == 304
    assert ask(path, if_none_match='"other"')[0] == 200


def test_static_files_are_compressed_if_the_client_accepts_it() -> None:
    path = f"/ui/static/{STATIC.digest}/page.css"
    plain, packed = ask(path), ask(path, accept_encoding="gzip, br")
    assert packed[1]["content-encoding"] == "gzip"
    assert gzip.decompress(packed[2]) == plain[2]
    assert len(packed[2]) < len(plain[2]) / 2


def test_a_head_request_has_no_body() -> None:
    status, headers, body = ask("/ui/", "HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) > 0


def test_post_requests_and_unknown_files_are_refused() -> None:
    assert ask("/ui/", "POST")[0] == 405
    assert ask(f"/ui/static/{STATIC.digest}/nothing.js")[0] == 404
    assert ask(f"/ui/static/{STATIC.digest}/../application.py")[0] == 404


def test_content_security_policy_forbids_foreign_and_inline_code() -> None:
    assert re.match(r"default-src 'self';", POLICY)
    assert "unsafe" not in POLICY
    assert "require-trusted-types-for 'script'" in POLICY
