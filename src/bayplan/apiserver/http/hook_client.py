"""Webhook calls over HTTPS: a connection for each call, with a timeout and a size limit, only to allowed targets.

The client follows no redirects, uses no proxies and sends no credentials. Errors have the wording of Go's client.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import sys
import uuid
from collections.abc import Sequence
from typing import cast

import aiohttp
import msgspec
from yarl import URL

from bayplan.apiserver.admission.outgoing import Answer, Call, Outgoing, Session
from bayplan.apiserver.admission.targets import Endpoint
from bayplan.base.plain_data import Document
from bayplan.objects.selectors import quote

MAX_RESPONSE_BYTES = 3 * 1024 * 1024
"""Maximum size of one response in bytes, equal to that of a request to the API."""
MAX_CONCURRENT_CALLS = 64
_ABORTS_TLS = sys.version_info < (3, 12, 7)
"""Whether aiohttp must abort cancelled TLS connections, because asyncio would wait for the peer to close them."""
_UNKNOWN_AUTHORITY, _EXPIRED = frozenset((2, 18, 19, 20, 21)), frozenset((9, 10))
"""OpenSSL's codes (X509_V_ERR_...) of certificate errors for which Go has its own message."""
_KIND_STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    503: "the server is currently unable to handle the request",
}


class HookClient:
    """Calls the webhooks of one server. Belongs to one event loop.

    Args:
        outgoing: the allowed targets; also stores the responses to calls of controllers.
    """

    def __init__(self, outgoing: Outgoing) -> None:
        self._outgoing = outgoing
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_CALLS)
        self._tasks: set[asyncio.Task[None]] = set()
        outgoing.caller = self

    def close(self) -> None:
        """Cancel the background calls in progress."""
        self._outgoing.caller = None
        for task in self._tasks:
            task.cancel()

    async def make(self, session: Session, calls: Sequence[Call]) -> None:
        """Make the calls that a request needs in parallel, and store the responses in its session."""
        for call, answer in zip(calls, await asyncio.gather(*map(self._make, calls)), strict=True):
            session.answers[call.digest()] = answer

    def send(self, call: Call, endpoint: Endpoint) -> None:
        """Make a call in the background, and pass the response to `Outgoing.store`."""
        task = asyncio.get_running_loop().create_task(self._send(call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, call: Call) -> None:
        self._outgoing.store(call, await self._make(call))

    async def _make(self, call: Call) -> Answer:
        uid = str(uuid.uuid4())
        sent = _with_uid(call.body, call.uid_path, uid)
        endpoint = self._outgoing.endpoint(call)
        if endpoint is None:
            return Answer({}, uid, sent, "this server may not call it")
        where = f"Post {quote(endpoint.url(call.timeout_s))}"
        try:
            async with self._slots, asyncio.timeout(call.timeout_s):
                status, media_type, body = await _post(endpoint, call, msgspec.json.encode(sent))
        except TimeoutError:
            return Answer({}, uid, sent, f"{where}: context deadline exceeded")
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            return Answer({}, uid, sent, f"{where}: {go_problem(problem, endpoint)}")
        return _answer(uid, sent, status, body, media_type)


def _with_uid(body: Document, path: tuple[str, ...], uid: str) -> Document:
    """Return a copy of a review with a uid as the first field of its request."""
    inner = cast("Document", body[path[0]])
    return {**body, path[0]: {path[1]: uid, **inner}}


async def _post(endpoint: Endpoint, call: Call, body: bytes) -> tuple[int, str, bytes]:
    """Send a review, and return the status, media type and body of the response.

    Raises:
        ValueError: the response is too long, or the CA bundle is invalid.
    """
    context = _context(str(call.client.get("caBundle") or ""))
    url = URL.build(
        scheme="https",
        host=endpoint.place.host,
        port=endpoint.place.port,
        path=endpoint.path or "/",
        query={"timeout": f"{call.timeout_s}s"},
    )
    headers = {"Accept": "application/json, */*", "Content-Type": "application/json", "Host": endpoint.authority}
    connector = aiohttp.TCPConnector(force_close=True, enable_cleanup_closed=_ABORTS_TLS)
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as session,
        session.post(
            url, data=body, headers=headers, ssl=context, server_hostname=endpoint.server_name, allow_redirects=False
        ) as response,
    ):
        chunks: list[bytes] = []
        size = 0
        async for chunk in response.content.iter_chunked(1 << 16):
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                raise ValueError(f"an answer of more than {MAX_RESPONSE_BYTES} bytes")
            chunks.append(chunk)
        return response.status, response.headers.get("Content-Type", ""), b"".join(chunks)


def _context(bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the configured CA bundle (base64 of PEM), or the system's CAs if it is empty.

    Raises:
        ValueError: the bundle is invalid.
    """
    if not bundle:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Accept self-signed certificates without the CA flag, as Go does: many webhooks have such certificates.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    try:
        context.load_verify_locations(cadata=msgspec.json.decode(json.dumps(bundle), type=bytes).decode("ascii"))
    except (ssl.SSLError, msgspec.ValidationError, UnicodeDecodeError) as problem:
        raise ValueError(f"unable to load root certificates: {problem}") from None
    return context


def go_problem(problem: Exception, endpoint: Endpoint) -> str:
    """Return the message of Go's client for a failed call."""
    cause: BaseException = problem
    while isinstance(cause, aiohttp.ClientConnectorError) or (
        isinstance(cause, aiohttp.ClientError) and isinstance(cause.__cause__, OSError)
    ):
        cause = cause.os_error if isinstance(cause, aiohttp.ClientConnectorError) else cast("OSError", cause.__cause__)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _certificate_problem(cause, endpoint)
    if isinstance(cause, ssl.SSLError):
        if cause.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
            return "http: server gave HTTP response to HTTPS client"
        return f"remote error: tls: {str(cause.reason or cause).lower().replace('_', ' ')}"
    if isinstance(cause, socket.gaierror):
        return f"dial tcp: lookup {endpoint.place.host}: no such host"
    if isinstance(cause, ConnectionRefusedError):
        return f"dial tcp {endpoint.place}: connect: connection refused"
    if isinstance(cause, ConnectionResetError):
        return "read: connection reset by peer"
    if isinstance(cause, aiohttp.ServerDisconnectedError | asyncio.IncompleteReadError | ssl.SSLEOFError):
        return "EOF"
    return str(cause) or type(cause).__name__


def _certificate_problem(problem: ssl.SSLCertVerificationError, endpoint: Endpoint) -> str:
    number = problem.verify_code
    if number in _UNKNOWN_AUTHORITY:
        why = "certificate signed by unknown authority"
    elif number in _EXPIRED:
        why = "certificate has expired or is not yet valid"
    elif "mismatch" in problem.verify_message or "not valid for" in problem.verify_message:
        why = f"certificate is not valid for any names, but wanted to match {endpoint.server_name}"
    else:
        why = problem.verify_message
    return f"tls: failed to verify certificate: x509: {why}"


def _answer(uid: str, sent: Document, status: int, body: bytes, media_type: str) -> Answer:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        found = None
    if 200 <= status < 300:
        if isinstance(found, dict):
            return Answer(found, uid, sent)
        if not body:
            return Answer({}, uid, sent, f"0-length response with status code: {status} and content type: {media_type}")
        # Upstream parses a body that is not JSON as YAML, which reads almost any text as a string.
        kind = "array" if isinstance(found, list) else "number" if isinstance(found, int | float) else "string"
        text = f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type {_KIND_STRUCT}"
        return Answer({}, uid, sent, text)
    if isinstance(found, dict) and found.get("kind") == "Status" and found.get("message"):
        return Answer({}, uid, sent, str(found["message"]))
    text = _REFUSALS.get(status, "")
    if not text:
        shown = quote(body.decode("utf-8", "replace").strip()[:2048])
        text = f"an error on the server ({shown}) has prevented the request from succeeding"
        if status < 500:
            text = f"the server responded with the status code {status} but did not return more information"
    return Answer({}, uid, sent, text)
