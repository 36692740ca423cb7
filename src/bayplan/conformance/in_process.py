"""In-process requests to the API, through the ASGI application, with responses in the recorded format."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, cast

import msgspec

from bayplan.apiserver.http.application import Application
from bayplan.base.asgi import Message
from bayplan.conformance.cases import Json, JsonObject

_HEADERS = ("content-type", "warning", "retry-after", "allow", "etag")


async def send(application: Application, method: str, path: str, headers: dict[str, str], body: bytes) -> JsonObject:
    """Send a request through the application, and return the response in the recorded format."""
    sent: list[Message] = []
    pending = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        if pending:
            return pending.pop()
        await asyncio.Event().wait()
        raise AssertionError("no client disconnects")

    async def keep(message: Message) -> None:
        sent.append(message)

    plain, _, query = path.partition("?")
    fields = {"user-agent": "conformance/1.0"} | {name.lower(): value for name, value in headers.items()}
    scope: dict[str, Any] = {
        "type": "http", "method": method, "path": plain, "raw_path": plain.encode(), "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }  # fmt: skip
    await application(scope, receive, keep)
    # Responses to requests with a parameter named watch were recorded as lists of JSON values.
    return _recorded(sent, is_watch="watch=" in query and sent[0]["status"] == 200)


def _recorded(sent: list[Message], *, is_watch: bool) -> JsonObject:
    start = sent[0]
    body = b"".join(message.get("body", b"") for message in sent[1:])
    headers: dict[str, str] = {}
    for raw_name, raw_value in start["headers"]:
        name, value = raw_name.decode(), raw_value.decode()
        if name in _HEADERS:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    response: JsonObject = {"status": start["status"], "headers": cast("Json", headers)}
    media_type = headers.get("content-type", "")
    if media_type.startswith("application/vnd.kubernetes.protobuf"):
        response["base64"] = base64.b64encode(body).decode()
    elif is_watch:
        response["stream"] = [msgspec.json.decode(line) for line in body.splitlines() if line]
    elif media_type.startswith("application/json") and body:
        response["body"] = msgspec.json.decode(body)
        response["text"] = body.decode()
    else:
        response["body"] = body.decode()
    return response
