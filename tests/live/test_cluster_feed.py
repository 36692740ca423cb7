"""The feed of a cluster: it watches while the caller works, and an unexpected exception ends both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import cast

import msgspec
import pytest

from bayplan.client.connection import ApiConnection
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.live.cluster_feed import ClusterFeed, ObjectChange
from bayplan.objects.node import Node


class NodeServer:
    """A server with nodes only, which `add` adds; its watches never end."""

    def __init__(self) -> None:
        self._added: asyncio.Queue[object] = asyncio.Queue()
        self._added.put_nowait(
            {
                "type": "BOOKMARK",
                "object": {"metadata": {"resourceVersion": "1", "annotations": {"k8s.io/initial-events-end": "true"}}},
            }
        )

    def add(self, name: str) -> None:
        metadata = {"name": name, "uid": name, "resourceVersion": "2"}
        self._added.put_nowait({"type": "ADDED", "object": {"metadata": metadata}})

    async def send(self, request: ApiRequest) -> ApiResponse:
        if request.path != "/api/v1":
            return ApiResponse(404)
        return ApiResponse(200, b'{"resources": [{"name": "nodes"}]}')

    async def stream(self, path: str, query: str) -> AsyncGenerator[list[bytes], None]:
        assert path == "/api/v1/nodes"
        while True:
            yield [msgspec.json.encode(await self._added.get())]


async def opened(server: NodeServer, found: list[str]) -> ClusterFeed:
    """Return a feed that collects the names of nodes; a node `bad` causes an exception."""

    def take(changes: Sequence[ObjectChange]) -> None:
        for _, new in changes:
            assert new is not None
            if new.metadata.name == "bad":
                raise ZeroDivisionError("a bug")
            found.append(new.metadata.name)

    feed = ClusterFeed(cast("ApiConnection", server), take)
    await feed.open()
    return feed


def test_changes_are_passed_on_until_the_work_has_ended() -> None:
    found: list[str] = []

    async def run() -> None:
        server = NodeServer()
        feed = await opened(server, found)

        async def work() -> None:
            await feed.wait_until_synced()
            feed.begin()
            try:
                await asyncio.Event().wait()
            finally:
                # As a scheduler that waits for the confirmation of its last bindings.
                server.add("last")
                async with asyncio.timeout(10):
                    while feed.get(Node, "last") is None:
                        await asyncio.sleep(0)

        task = asyncio.ensure_future(feed.watch_during(work()))
        await feed.wait_until_synced()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())
    assert found == ["last"]


def test_an_exception_while_a_change_is_processed_ends_the_work() -> None:
    found: list[str] = []

    async def run() -> None:
        server = NodeServer()
        feed = await opened(server, found)

        async def work() -> None:
            await feed.wait_until_synced()
            feed.begin()
            for name in ("good", "bad", "after"):
                server.add(name)
            await asyncio.Event().wait()

        async with asyncio.timeout(10):
            await feed.watch_during(work())

    with pytest.raises(ZeroDivisionError, match="a bug"):
        asyncio.run(run())
    assert found == ["good"]


def test_an_exception_of_the_work_is_raised_as_it_is() -> None:
    async def run() -> None:
        feed = await opened(NodeServer(), [])

        async def work() -> None:
            await feed.wait_until_synced()
            raise KeyError("lease")

        await feed.watch_during(work())

    with pytest.raises(KeyError, match="lease"):
        asyncio.run(run())
