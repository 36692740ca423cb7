"""A watch that records the last event of each object: a crash must not undo what it has shown."""

from __future__ import annotations

import asyncio
import contextlib
import json

from tests.crash.writer import NAMESPACE


class Watcher:
    """A watch of one resource.

    Attributes:
        last: The type and revision of the last event, by object name.
        events: The number of events so far.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.last: dict[str, tuple[str, int]] = {}
        self.events = 0

    async def watch(self, port: int, revision: int) -> None:
        """Read the events after a revision until the connection ends."""
        path = f"/api/v1/namespaces/{NAMESPACE}/{self.kind}?watch=1&resourceVersion={revision}"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert b" 200 " in head[:20], head
            rest = b""
            while size := int(await reader.readline(), 16):
                rest += await reader.readexactly(size + 2)
                *lines, rest = rest[:-2].split(b"\n")
                for line in lines:
                    self._take(line)
        except (ConnectionError, asyncio.IncompleteReadError, ValueError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    def _take(self, line: bytes) -> None:
        event = json.loads(line)
        assert event["type"] in ("ADDED", "MODIFIED", "DELETED"), event
        metadata = event["object"]["metadata"]
        self.last[metadata["name"]] = (event["type"], int(metadata["resourceVersion"]))
        self.events += 1

    def check(self, revisions: dict[str, int], revision: int) -> None:
        """Compare the recorded events with the objects after a restart.

        Args:
            revisions: The revisions of the present objects, by name.
            revision: The revision of the list.

        Raises:
            AssertionError: A change that the watch has shown was undone.
        """
        for name, (kind, seen) in self.last.items():
            assert seen <= revision, f"revision {seen} was seen, and the store is at {revision}"
            found = revisions.get(name, 0)
            if kind == "DELETED":
                assert not found or found > seen, (
                    f"{self.kind} {name} was seen deleted at {seen}, and is there at {found}"
                )
            elif found:
                assert found >= seen, f"{self.kind} {name} was seen at {seen}, and is there at {found}"
        self.last = {}
