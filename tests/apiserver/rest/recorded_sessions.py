"""Convert recorded sessions of real clients into scenarios that `bayplan.conformance.api` can replay.

A client sends uids and versions that the server assigned. Where a recorded answer first has such a value, the value is
captured under a name, and later requests use the value that Bayplan's server returned under that name.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import cast

import msgspec

from bayplan.conformance.cases import Json, JsonObject

_VARYING = frozenset(("uid", "resourceVersion"))
_TIMES = re.compile(r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
_AGE = re.compile(r"^(<unknown>|\d+[smhd](\d+[smhd])?( ago)?)$")
_ADDRESS = re.compile(r"\b10\.96\.\d+\.\d+\b")
_SENT_HEADERS = ("accept", "content-type", "user-agent")


def read_sessions(path: Path) -> list[JsonObject]:
    """Return the sessions of a file."""
    return [msgspec.json.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


class Scenario:
    """Sessions as one scenario, in their order.

    Attributes:
        exchanges: in the format of recorded scenarios.
    """

    def __init__(self) -> None:
        self.exchanges: list[JsonObject] = []
        self._names: dict[tuple[str, str], str] = {}

    def add(self, session: JsonObject) -> None:
        """Add the exchanges of a session whose bodies were recorded."""
        for exchange in cast("list[JsonObject]", session["exchanges"]):
            if is_whole(exchange):
                self.exchanges.append(self._scenario_exchange(str(session["session"]), exchange))

    def send(self, note: str, method: str, path: str, body: Json) -> None:
        """Add a request that no session has, for a change made between two sessions."""
        request: JsonObject = {
            "method": method,
            "path": path,
            "headers": {"content-type": "application/json"},
            "body": body,
        }
        self.exchanges.append({"id": note, "request": request, "response": {}})

    def _scenario_exchange(self, session: str, exchange: JsonObject) -> JsonObject:
        headers = cast("dict[str, str]", exchange["request_headers"])
        kept = {name: value for name, value in headers.items() if name.lower() in _SENT_HEADERS}
        for name, value in kept.items():
            if name.lower() == "accept":
                # Responses in protobuf were recorded as JSON, too.
                kept[name] = re.sub(r"application/vnd\.kubernetes\.protobuf[^,]*, ?", "", value)
        request: JsonObject = {"method": exchange["method"], "path": exchange["path"], "headers": cast("Json", kept)}
        template: JsonObject = {"path": self._path(str(exchange["path"]))}
        body = exchange.get("request_body")
        if isinstance(body, dict | list) and "protobuf" in kept.get("Content-Type", ""):
            # It went over the wire in protobuf; the recording has it as JSON.
            kept["Content-Type"] = "application/json"
        if body is not None:
            request["body"] = body
            template["body"] = self._filled(body, "")
        captures: dict[str, str] = {}
        answer = exchange.get("response_body")
        self._capture(answer, "", "", captures)
        response: JsonObject = {"status": exchange["status"]}
        response["stream" if "stream" in exchange else "body"] = exchange.get("stream", answer)
        return {
            "id": f"{session}/{exchange['seq']}",
            "request": request,
            "template": template,
            "captures": cast("Json", captures),
            "response": response,
        }

    def _path(self, path: str) -> str:
        return re.sub(r"(?<=[?&]resourceVersion=)(\d+)", lambda found: self._value("resourceVersion", found[1]), path)

    def _value(self, kind: str, value: str) -> str:
        name = self._names.get((kind, value))
        return f"${{{name}}}" if name else value

    def _filled(self, value: Json, name: str) -> Json:
        if isinstance(value, dict):
            # In a JSON patch the name stands at the end of a path.
            at = str(value.get("path", "")).rpartition("/")[2] if "op" in value else ""
            return {key: self._filled(item, at if key == "value" else key) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item, name) for item in value]
        return self._value(name, value) if isinstance(value, str) and name in _VARYING else value

    def _capture(self, value: Json, name: str, pointer: str, captures: dict[str, str]) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                self._capture(item, key, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", captures)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                self._capture(item, name, f"{pointer}/{index}", captures)
        elif isinstance(value, str) and name in _VARYING and (name, value) not in self._names:
            self._names[(name, value)] = captured = f"v{len(self._names)}"
            captures[captured] = pointer


def is_whole(exchange: JsonObject) -> bool:
    """Return whether an exchange was recorded with its bodies; large ones and discovery were not."""
    return not any(
        isinstance(exchange.get(part), dict) and "left_out" in cast("JsonObject", exchange[part])
        for part in ("request_body", "response_body")
    )


def plain(value: Json, name: str = "") -> Json:
    """Return a value without the parts that vary between runs: uids, versions, times, ages, addresses, managed fields."""
    if isinstance(value, dict):
        if value.get("type") == "BOOKMARK" and isinstance(value.get("object"), dict):
            # Apart from its metadata, the object is Go's zero value after a conversion.
            value = {"type": "BOOKMARK", "object": {"metadata": cast("JsonObject", value["object"])["metadata"]}}
        kept = {key: plain(item, key) for key, item in value.items() if key not in ("managedFields", "description")}
        # Answers in protobuf were recorded as JSON, in which an empty list is null.
        return {key: [] if key == "items" and item is None else item for key, item in kept.items()}
    if isinstance(value, list):
        return [plain(item, name) for item in value]
    if isinstance(value, str):
        value = _ADDRESS.sub("<address>", value)
        if name in (*_VARYING, "clusterIP", "clusterIPs", "continue"):
            return f"<{name}>"
        if _TIMES.match(value) or _AGE.match(value):
            return "<time>"
    return value
