"""Watches with initial events whose revision the store does not have yet, and watches that fail."""

from __future__ import annotations

import asyncio
import json
from time import monotonic

import pytest

from bayplan.apiserver.rest.messages import Request, Response, Stream, parse_query
from bayplan.apiserver.rest.watch_frames import WatchFrames
from bayplan.apiserver.store.item import Write
from tests.apiserver.client import PODS, Client, collect, pod
from tests.apiserver.rest.test_reads import reported

_QUERY = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1"


async def _watch(client: Client, ahead: int, *created: str) -> list[object]:
    """Return the events of a watch from a revision ahead of the store's; the pods are created after 0.1 seconds."""
    query = parse_query(f"{_QUERY}&resourceVersion={client.store.revision + ahead}")
    stream = await client.api.handle(Request("GET", PODS, query))
    assert isinstance(stream, Stream)
    task = asyncio.ensure_future(collect(stream))
    await asyncio.sleep(0.1)
    for name in created:
        await client.api.handle(Request("POST", PODS, {}, {}, json.dumps(pod(name)).encode()))
    return await task


def test_a_watch_continues_as_soon_as_the_store_has_its_revision() -> None:
    start = monotonic()
    events = asyncio.run(_watch(Client(), 2, "a", "b", "c"))
    assert reported(events) == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("BOOKMARK", None)]
    assert monotonic() - start < 2


def test_a_watch_whose_revision_is_not_reached_ends_with_an_error_at_its_timeout() -> None:
    start = monotonic()
    [event] = asyncio.run(_watch(Client(), 1000, "a"))
    assert 0.9 < monotonic() - start < 2
    assert isinstance(event, dict)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)
    assert event["object"]["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"


def test_a_watch_that_fails_ends_and_affects_neither_the_write_nor_other_watches(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    encode, failed = WatchFrames.of_write, list[WatchFrames]()

    def fail_once(frames: WatchFrames, kind: str, write: Write) -> bytes:
        if not failed:
            failed.append(frames)
            raise RuntimeError("a bug")
        return encode(frames, kind, write)

    async def test() -> None:
        client = Client()
        query = {"watch": "1", "resourceVersion": str(client.store.revision), "timeoutSeconds": "1"}
        streams = [await client.api.handle(Request("GET", PODS, query)) for _ in range(2)]
        tasks = [asyncio.ensure_future(collect(stream)) for stream in streams if isinstance(stream, Stream)]
        await asyncio.sleep(0.1)
        created = await client.api.handle(Request("POST", PODS, {}, {}, json.dumps(pod("a")).encode()))
        assert isinstance(created, Response)
        assert created.status == 201
        [failure], events = await asyncio.gather(*tasks)
        assert isinstance(failure, dict)
        assert (failure["type"], failure["object"]["reason"]) == ("ERROR", "Expired")
        assert reported(events) == [("ADDED", "a")]

    monkeypatch.setattr(WatchFrames, "of_write", fail_once)
    asyncio.run(test())
    assert "RuntimeError: a bug" in caplog.text


def test_bookmarks_before_the_timeout_report_only_revisions_since_the_watch_began_even_those_of_sent_events() -> None:
    async def test() -> list[list[object]]:
        client = Client()
        since = client.store.revision
        await client.api.handle(Request("POST", PODS, {}, {}, json.dumps(pod("a")).encode()))
        tasks = []
        for selector in ("", "&labelSelector=none"):
            query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=3&resourceVersion={since}{selector}"
            stream = await client.api.handle(Request("GET", PODS, parse_query(query)))
            assert isinstance(stream, Stream)
            tasks.append(asyncio.ensure_future(collect(stream)))
        await asyncio.sleep(0.1)
        await client.api.handle(Request("POST", PODS, {}, {}, json.dumps(pod("b")).encode()))
        late = await client.api.handle(Request("GET", PODS, parse_query(query)))
        assert isinstance(late, Stream)
        return list(await asyncio.gather(*tasks, collect(late)))

    sent, unselected, late = asyncio.run(test())
    assert set(reported(sent)[2:]) == {("BOOKMARK", None)}
    assert reported(sent)[:2] == [("ADDED", "a"), ("ADDED", "b")]
    assert set(reported(unselected)) == {("BOOKMARK", None)}
    assert reported(late) == []


def test_a_watch_of_two_seconds_has_bookmarks_only_after_initial_objects() -> None:
    async def test() -> list[list[object]]:
        client = Client()
        tasks = []
        for start in (str(client.store.revision), "0"):
            query = f"watch=1&allowWatchBookmarks=true&timeoutSeconds=2&resourceVersion={start}"
            stream = await client.api.handle(Request("GET", PODS, parse_query(query)))
            assert isinstance(stream, Stream)
            tasks.append(asyncio.ensure_future(collect(stream)))
        await asyncio.sleep(0.1)
        await client.api.handle(Request("POST", PODS, {}, {}, json.dumps(pod("a")).encode()))
        return list(await asyncio.gather(*tasks))

    later, from_start = asyncio.run(test())
    assert reported(later) == [("ADDED", "a")]
    assert reported(from_start)[-1] == ("BOOKMARK", None)
