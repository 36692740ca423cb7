"""Run an API server over real sockets in a thread of the test, and send requests to it."""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from bayplan.apiserver.http.server import ApiServer, ServerOptions
from bayplan.apiserver.rest.loading import load_documents
from bayplan.formats.manifest import PlainObject

PATIENCE = 30.0

Document = dict[str, Any]


@contextlib.contextmanager
def serving(documents: Iterable[Document] = (), *, at: int = 0, **options: Any) -> Iterator[ApiServer]:
    """Run a server on the port `at` that holds `documents` from the start; stop it at the end."""
    server = ApiServer(ServerOptions(port=at, **options))
    load_documents(server.backend, [PlainObject(value, f"document {number}") for number, value in enumerate(documents)])
    ready = threading.Event()
    thread = threading.Thread(target=server.run, args=(ready.set,), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield server
    finally:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive()


def wait_until(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until a condition is true, and fail the test after `patience` seconds."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def ask(url: str, method: str = "GET", body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
    """Send a request; return the status code and the body of the answer."""
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read()


def call(server: ApiServer, method: str, path: str, document: object = None, content_type: str = "") -> Document:
    """Send a document and return that of the answer; fail the test if the status is 300 or higher."""
    body = None if document is None else msgspec.json.encode(document)
    headers: dict[str, str] = {"Content-Type": content_type or "application/json"}
    status, answer = ask(server.url + path, method, body, **headers)
    assert status < 300, answer
    found: Document = msgspec.json.decode(answer)
    return found
