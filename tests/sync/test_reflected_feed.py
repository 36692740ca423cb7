"""Tests of a live cluster as a feed: first a list, then changes, and a notice of each later list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import cast

import msgspec
import pytest

from bayplan.base.errors import InputError
from bayplan.base.plain_data import Document, part
from bayplan.client.connection import ApiConnection, StreamRejected
from bayplan.client.reflector import RetryTimes
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.feed import Bookmark, Changed, FeedChange, Listed
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.reflected_feed import ReflectedFeed

TOO_OLD = StreamRejected(ApiResponse(410, b'{"message": "too old"}'))


def service(name: str, version: int, namespace: str = "a") -> Document:
    return {"metadata": {"name": name, "namespace": namespace, "resourceVersion": str(version), "uid": f"uid-{name}"}}


def event(kind: str, document: Document) -> Document:
    return {"type": kind, "object": document}


def end_of_list(version: int) -> Document:
    annotations = {"k8s.io/initial-events-end": "true"}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}


class Script:
    """A cluster that answers watches from a list, and is silent then.

    Args:
        streams: the watches.
        statuses: the statuses of the first responses to other requests; later ones succeed.
    """

    def __init__(self, streams: Sequence[Sequence[Document | bytes | Exception]], statuses: Sequence[int] = ()) -> None:
        self._streams = list(streams)
        self._statuses = list(statuses)
        self.done = asyncio.Event()

    async def send(self, request: ApiRequest) -> ApiResponse:
        if self._statuses:
            return ApiResponse(self._statuses.pop(0), b'{"message": "no list"}')
        return ApiResponse(200, b'{"items": []}')

    async def stream(self, path: str, query: str) -> AsyncGenerator[list[bytes], None]:
        if not self._streams:
            self.done.set()
            await asyncio.Event().wait()
        for line in self._streams.pop(0):
            await asyncio.sleep(0)
            if isinstance(line, Exception):
                raise line
            yield [line if isinstance(line, bytes) else msgspec.json.encode(line)]


def short(change: FeedChange) -> str:
    """Return a short form of a change: a list, an existing object, a deleted one, a revision up to which all is known."""
    if isinstance(change, Listed):
        names = ",".join(str(part(each, "metadata")["name"]) for each in change.documents)
        return f"={names} at {change.revision}"
    if isinstance(change, Changed):
        return f"{'-' if change.deleted else '+'}{part(change.document, 'metadata')['name']}"
    assert isinstance(change, Bookmark)
    assert isinstance(change, Bookmark)
    return f"up to {change.revision}"


def reported(streams: Sequence[Sequence[Document | Exception]], policy: SyncPolicy | None = None) -> list[str]:
    """Return the output of a feed of services for these watches."""

    async def run() -> list[str]:
        script, found = Script(streams), list[str]()
        times = RetryTimes(first_pause_seconds=0.0)
        feed = ReflectedFeed(
            cast("ApiConnection", script), policy or SyncPolicy(), kinds=("services",), retry_times=times
        )
        await feed.open()
        task = asyncio.create_task(feed.run(lambda change: found.append(short(change))))
        await asyncio.wait_for(script.done.wait(), 10)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return found

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("streams", "want"),
    [
        pytest.param([[end_of_list(5)]], ["= at 5"], id="an empty list is reported"),
        pytest.param(
            [[event("ADDED", service("x", 3)), end_of_list(5), event("ADDED", service("y", 6))]],
            ["=x at 5", "+y"],
            id="an object added after the list is a change",
        ),
        pytest.param(
            [
                [event("ADDED", service("x", 3)), end_of_list(5), event("ADDED", service("y", 6)), TOO_OLD],
                [event("ADDED", service("x", 3)), event("ADDED", service("z", 8)), end_of_list(9)],
            ],
            ["=x at 5", "+y", "-y", "+z", "up to 9"],
            id="a later list is reported as the differences, and up to where",
        ),
        pytest.param(
            [
                [event("ADDED", service("x", 3)), end_of_list(5), TOO_OLD],
                [event("ADDED", service("x", 3)), end_of_list(9)],
            ],
            ["=x at 5", "up to 9"],
            id="an equal later list is reported",
        ),
    ],
)
def test_a_feed_reports_the_first_list_and_then_differences(
    streams: Sequence[Sequence[Document | Exception]], want: list[str]
) -> None:
    assert reported(streams) == want


@pytest.mark.parametrize(
    ("statuses", "plural", "want"),
    [
        pytest.param([], "pods", "pods", id="the server answers"),
        pytest.param(
            [500],
            "services",
            "services of source can't be listed: no list; try kubectl get --raw /readyz",
            id="an error",
        ),
        pytest.param(
            [401],
            "services",
            "source: expected valid credentials, got no list; try kubectl auth whoami",
            id="the credentials are rejected",
        ),
        pytest.param([403], "services", "without services: no list", id="a kind that may not be listed is left out"),
        pytest.param([404], "services", "without services: no list", id="a kind that is not served is left out"),
        pytest.param(
            [403],
            "pods",
            "source list pods: expected permission to list pods in all namespaces, got no list; "
            "try kubectl auth can-i list pods --all-namespaces",
            id="pods may not be listed",
        ),
    ],
)
def test_opening_reports_permissions_only_for_denials(statuses: list[int], plural: str, want: str) -> None:
    async def opened() -> str:
        script = cast("ApiConnection", Script([], statuses))
        feed = ReflectedFeed(script, SyncPolicy(), kinds=(plural,))
        await feed.open()
        left_out = [f"without {name}: {why}" for name, why in feed.left_out.items()]
        return ", ".join((*feed.kinds, *left_out))

    try:
        found = asyncio.run(opened())
    except InputError as problem:
        found = str(problem)
    assert found == want


def test_only_selected_namespaces_are_reported() -> None:
    stream = [event("ADDED", service("x", 3)), event("ADDED", service("y", 3, "b")), end_of_list(5)]
    assert reported([[*stream, event("ADDED", service("z", 6, "b"))]], SyncPolicy(namespaces=("b",))) == [
        "=y at 5",
        "+z",
    ]


def test_a_one_time_feed_ends_after_its_list() -> None:
    async def run() -> list[str]:
        script, found = Script([[event("ADDED", service("x", 3)), end_of_list(5)]]), list[str]()
        feed = ReflectedFeed(cast("ApiConnection", script), SyncPolicy(), kinds=("services",), once=True)
        await feed.open()
        await asyncio.wait_for(feed.run(lambda change: found.append(short(change))), 10)
        return found

    assert asyncio.run(run()) == ["=x at 5"]


def test_a_one_time_feed_survives_events_that_cannot_be_decoded_after_its_list() -> None:
    async def run() -> list[str]:
        first: list[Document | bytes] = [event("ADDED", service("x", 3)), end_of_list(5), b"<garbage>"]
        second = [*[event("ADDED", service(f"y{number}", 3)) for number in range(20)], end_of_list(6)]
        script, found = Script([first, second]), list[str]()
        feed = ReflectedFeed(cast("ApiConnection", script), SyncPolicy(), kinds=("services", "namespaces"), once=True)
        await feed.open()
        await asyncio.wait_for(feed.run(lambda change: found.append(short(change))), 10)
        return found

    assert "=x at 5" in asyncio.run(run())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        pytest.param(b"<garbage>", "JSON is malformed: invalid character (byte 0)", id="no JSON"),
        pytest.param(b'{"type": "ADDED", "object": {}}', "Object missing required field `metadata`", id="no metadata"),
        pytest.param(b"[]", "Expected `object`, got `array`", id="a list instead of an event"),
    ],
)
@pytest.mark.parametrize("parts", [True, False])
def test_a_one_time_feed_ends_with_an_error_if_a_list_cannot_be_decoded(line: bytes, why: str, parts: bool) -> None:
    async def run() -> None:
        script = cast("ApiConnection", Script([[event("ADDED", service("x", 3)), line, end_of_list(5)]]))
        feed = ReflectedFeed(script, SyncPolicy(), kinds=("services",), once=True, parts=parts)
        await feed.open()
        await asyncio.wait_for(feed.run(lambda change: None), 10)

    with pytest.raises(ExceptionGroup) as found:
        asyncio.run(run())
    (problem,) = found.value.exceptions
    assert isinstance(problem, InputError)
    assert str(problem) == (
        f"services of source can't be listed: the response can't be decoded: {why}; try kubectl get --raw /api/v1/services"
    )
