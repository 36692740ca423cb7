"""One connection that writes its own objects, and records the writes that the server has acknowledged.

Every object contains a number and a text derived from it, so that a partial object would be noticed. A connection has
one request under way at a time: one write or one batch. If the server is killed, each write of this request may or may
not be stored, but all earlier writes must be.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from random import Random

Document = dict[str, object]

NAMESPACE = "crash"
_KEYS = 12
_PATHS = {"configmaps": f"/api/v1/namespaces/{NAMESPACE}/configmaps", "pods": f"/api/v1/namespaces/{NAMESPACE}/pods"}
_LARGE = 200_000
_SHARE_OF_BATCHES = 0.25
_BATCHES = "/bayplan/v1/objects"
_KINDS = {"configmaps": "ConfigMap", "pods": "Pod"}


def filler(number: int) -> str:
    """Return the text for a number; for every 97th number it is a large one."""
    random = Random(number)
    length = _LARGE if number % 97 == 0 else random.randrange(3000)
    return random.choice("abcdefgh") * length


def document(kind: str, name: str, number: int) -> Document:
    """Return an object that contains a number; pods name a scheduler that does not exist."""
    held = {"number": str(number), "filler": filler(number)}
    metadata: Document = {"name": name, "labels": {"number": str(number)}}
    if kind == "configmaps":
        return {"metadata": metadata, "data": held}
    spec = {"schedulerName": "nobody", "containers": [{"name": "c", "image": "pause:3.10"}]}
    return {"metadata": {**metadata, "annotations": held}, "spec": spec}


def number_of(kind: str, found: Document) -> int:
    """Return the number that an object contains.

    Raises:
        AssertionError: Parts of the object belong to different numbers.
    """
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    held = found["data"] if kind == "configmaps" else metadata["annotations"]
    assert isinstance(held, dict)
    number = int(held["number"])
    assert metadata["labels"] == {"number": str(number)}, f"half an object: {metadata['name']}"
    assert held["filler"] == filler(number), f"half an object: {metadata['name']}"
    return number


@dataclass(slots=True)
class Pending:
    """A write under way: the object's name, and its number after the write (None if the write deletes it)."""

    name: str
    number: int | None


class Writer:
    """A connection that writes objects.

    Args:
        index: The index of the connection, which decides the names and the kind of its objects.
        random: The source of its random choices.
        numbers: A list with the last number used, shared by all connections, so that each write has another number.

    Attributes:
        known: The number in the last acknowledged write, by name. Names of deleted objects are absent.
        pending: The writes under way.
        revision: The highest acknowledged revision.
        acknowledged: The number of acknowledged writes.
    """

    def __init__(self, index: int, random: Random, numbers: list[int]) -> None:
        self.kind = "pods" if index % 2 else "configmaps"
        self.known: dict[str, int] = {}
        self.pending: list[Pending] = []
        self.revision = 0
        self.acknowledged = 0
        self._index = index
        self._random = random
        self._numbers = numbers

    def owns(self, name: str) -> bool:
        """Return whether an object belongs to this connection."""
        return name.startswith(f"w{self._index}-")

    async def write(self, port: int) -> None:
        """Write until the connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while True:
                body: Document | bytes | None
                if self._random.random() < _SHARE_OF_BATCHES:
                    method, path, body = "POST", _BATCHES, self._next_batch()
                else:
                    method, path, body = self._next()
                writer.write(_request(method, path, body))
                status, answer = await _answer(reader)
                if status not in (200, 201):
                    raise AssertionError(f"{method} {path}: {status} {answer[:500]!r}")
                if path == _BATCHES:
                    self._take_batch(json.loads(answer))
                else:
                    self._take(json.loads(answer))
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _name(self) -> str:
        return f"w{self._index}-{self._random.randrange(_KEYS)}"

    def _number(self) -> int:
        self._numbers[0] += 1
        return self._numbers[0]

    def _next_batch(self) -> bytes:
        """Choose writes to several objects, record them as under way, and return the body of their request."""
        lines: list[Document] = []
        for name in dict.fromkeys(self._name() for _ in range(_KEYS)):
            kind: Document = {"apiVersion": "v1", "kind": _KINDS[self.kind]}
            if name in self.known:
                self.pending.append(Pending(name, None))
                lines.append({"delete": {**kind, "metadata": {"name": name, "namespace": NAMESPACE}}})
                continue
            pending = Pending(name, self._number())
            self.pending.append(pending)
            wanted = {**kind, **document(self.kind, name, pending.number or 0)}
            wanted["metadata"]["namespace"] = NAMESPACE  # type: ignore[index]
            lines.append(wanted)
        return b"\n".join(json.dumps(line).encode() for line in lines)

    def _take_batch(self, answer: Document) -> None:
        outcomes = answer["items"]
        assert isinstance(outcomes, list)
        for pending, outcome in zip(self.pending, outcomes, strict=True):
            assert outcome["outcome"] == ("created" if pending.number is not None else "deleted"), outcome
            if pending.number is None:
                del self.known[pending.name]
            else:
                self.known[pending.name] = pending.number
            self.revision = max(self.revision, int(outcome["resource_version"]))
        self.acknowledged += len(self.pending)
        self.pending = []

    def _next(self) -> tuple[str, str, Document | None]:
        """Choose a write, record it as under way, and return its method, path and body."""
        name = self._name()
        path = _PATHS[self.kind]
        number = self._number()
        pending = Pending(name, number)
        self.pending = [pending]
        wanted = document(self.kind, name, number)
        if name not in self.known:
            return "POST", path, wanted
        choice = self._random.random()
        if choice < 0.2:
            pending.number = None
            return "DELETE", f"{path}/{name}", None
        if choice < 0.6 and self.kind == "configmaps":
            return "PUT", f"{path}/{name}", wanted
        del wanted["metadata"]["name"]  # type: ignore[attr-defined]
        wanted.pop("spec", None)
        return "PATCH", f"{path}/{name}", wanted

    def _take(self, answer: Document) -> None:
        (pending,) = self.pending
        metadata = answer.get("metadata")
        if pending.number is None:
            del self.known[pending.name]
        else:
            assert number_of(self.kind, answer) == pending.number
            self.known[pending.name] = pending.number
        if isinstance(metadata, dict) and "resourceVersion" in metadata:
            self.revision = max(self.revision, int(metadata["resourceVersion"]))
        self.acknowledged += 1
        self.pending = []

    def reconcile(self, found: dict[str, int]) -> None:
        """Compare the acknowledged writes with the objects after a restart, and continue from these objects.

        Args:
            found: The numbers in all present objects of this connection, by name.

        Raises:
            AssertionError: An acknowledged write is lost, or an object was never written.
        """
        for name in sorted({*self.known, *found}):
            allowed = [self.known.get(name), *(each.number for each in self.pending if each.name == name)]
            assert found.get(name) in allowed, f"{self.kind} {name}: {found.get(name)} instead of one of {allowed}"
        self.known = found
        self.pending = []


def _request(method: str, path: str, body: Document | bytes | None) -> bytes:
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    length = next(int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length:"))
    return int(head.split()[1]), await reader.readexactly(length)
