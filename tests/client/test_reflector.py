"""Reflectors with a scripted server: however streams fail, the changes lead from an empty state to the latest."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.base.errors import InputError
from bayplan.client.cluster_access import ClusterAccess
from bayplan.client.connection import ApiConnection, ConnectionLost, StreamRejected, StreamSilent
from bayplan.client.reflector import Change, Reflector, RetryTimes
from bayplan.client.requests import NO_ANSWER, ApiRequest, ApiResponse
from bayplan.objects.kinds import decode_json
from bayplan.objects.namespace import Namespace

PATH = "/api/v1/namespaces"
Line = dict[str, Any]


def item(name: str, version: int, uid: str = "") -> Line:
    return {"metadata": {"name": name, "resourceVersion": str(version), "uid": uid or name}}


def event(kind: str, name: str, version: int, uid: str = "") -> Line:
    return {"type": kind, "object": item(name, version, uid)}


def bookmark(version: int, *, ends_list: bool = False) -> Line:
    annotations = {"k8s.io/initial-events-end": "true"} if ends_list else {}
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}


TOO_OLD = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
REFUSED = StreamRejected(ApiResponse(403, b'{"message": "forbidden"}'))
GONE = StreamRejected(ApiResponse(410, b'{"message": "too old"}'))
NO_STREAMS = StreamRejected(ApiResponse(422, b'{"message": "sendInitialEvents is forbidden"}'))
LOST = ConnectionLost("reset by peer")
SILENT = StreamSilent("no data")
BUSY = StreamRejected(ApiResponse(429, b'{"message": "too many requests"}'))
TOO_LARGE = StreamRejected(ApiResponse(504, b'{"message": "Timeout: Too large resource version: 7, current: 2"}'))


class Script:
    """A server that answers streams and requests from lists; when the streams are used up, the last one stays silent.

    `checks` are the responses to requests for its revision; after them, the revision is never too old.
    """

    def __init__(
        self,
        streams: Sequence[Sequence[Line | Exception]],
        pages: Sequence[ApiResponse] = (),
        checks: Sequence[ApiResponse] = (),
    ) -> None:
        self.streams = [list(stream) for stream in streams]
        self.pages = list(pages)
        self.checks = list(checks)
        self.access = ClusterAccess(None, None)
        self.asked: list[str] = []
        self.done = asyncio.Event()

    async def stream(self, path: str, query: str) -> AsyncGenerator[list[bytes], None]:
        assert path == PATH
        self.asked.append("initial" if "sendInitialEvents" in query else _part(query, "resourceVersion"))
        if not self.streams:
            self.done.set()
            await asyncio.Event().wait()
        for line in self.streams.pop(0):
            await asyncio.sleep(0)
            if isinstance(line, Exception):
                raise line
            yield [msgspec.json.encode(line)]

    async def send(self, request: ApiRequest, *, seconds: float | None = None) -> ApiResponse:
        if _part(request.query, "limit") == "1":
            self.asked.append("check")
            return self.checks.pop(0) if self.checks else page(10**9, [])
        self.asked.append(f"page {_part(request.query, 'continue')}".strip())
        return self.pages.pop(0)


def _part(query: str, name: str) -> str:
    return dict(part.partition("=")[::2] for part in query.split("&")).get(name, "")


def page(version: int, items: Sequence[Line], following: str = "") -> ApiResponse:
    body = {"metadata": {"resourceVersion": str(version), "continue": following}, "items": items}
    return ApiResponse(200, msgspec.json.encode(body))


def decode(raw: bytes) -> Namespace:
    found = decode_json(raw, Namespace)
    if found.metadata.name == "odd":
        raise InputError("odd")
    return found


NO_PAUSES = RetryTimes(first_pause_seconds=0.0, short_seconds=0.0)


class Followed:
    """The output of a reflector, and its end."""

    def __init__(self) -> None:
        self.reported: list[tuple[str, str]] = []
        self.state: dict[str, tuple[str, str]] = {}

    def take(self, changes: Sequence[Change[Namespace]]) -> None:
        for old, new in changes:
            if old is not None:
                # Each change must start from the state that the previous one has left.
                assert self.state[old.key] == (old.metadata.uid, old.metadata.resource_version)
            else:
                assert new is not None
                assert new.key not in self.state
            if new is None:
                assert old is not None
                del self.state[old.key]
                self.reported.append(("-", old.key))
            else:
                self.state[new.key] = (new.metadata.uid, new.metadata.resource_version)
                self.reported.append(("+" if old is None else "=", new.key))


def follow(
    script: Callable[[], Script], retry_times: RetryTimes = NO_PAUSES
) -> tuple[Followed, Script, Reflector[Namespace]]:
    """Run a reflector until the script is over."""

    async def run() -> tuple[Followed, Script, Reflector[Namespace]]:
        server, followed = script(), Followed()
        reflector = Reflector(
            cast("ApiConnection", server), PATH, decode, followed.take, jitter=lambda: 0.0, retry_times=retry_times
        )
        task = asyncio.ensure_future(reflector.run())
        await asyncio.wait_for(cast("Awaitable[bool]", server.done.wait()), 10)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return followed, server, reflector

    return asyncio.run(run())


LIST = [event("ADDED", "a", 3), event("ADDED", "b", 5), bookmark(7, ends_list=True)]


@pytest.mark.parametrize(
    ("streams", "pages", "reported", "asked"),
    [
        pytest.param(
            [[*LIST, event("ADDED", "c", 8), event("MODIFIED", "a", 9), event("DELETED", "b", 10)]], [],
            [("+", "a"), ("+", "b"), ("+", "c"), ("=", "a"), ("-", "b")], ["initial", "10"],
            id="a streamed list continues as a watch",
        ),
        pytest.param(
            [[NO_STREAMS], [event("MODIFIED", "a", 9)]], [page(7, [item("a", 3)], "next"), page(7, [item("b", 5)])],
            [("+", "a"), ("+", "b"), ("=", "a")], ["initial", "page", "page next", "7", "9"],
            id="a server without streaming lists is read page by page",
        ),
        pytest.param(
            [[NO_STREAMS]],
            [page(7, [item("a", 3)], "next"), ApiResponse(410, b"{}"), page(9, [item("b", 5)])],
            [("+", "b")], ["initial", "page", "page next", "page", "9"],
            id="a list that expires between two pages is read at once",
        ),
        pytest.param(
            [[*LIST, bookmark(20)], [event("ADDED", "c", 21)]], [], [("+", "a"), ("+", "b"), ("+", "c")],
            ["initial", "20", "21"], id="a watch that ends resumes at the last bookmark",
        ),
        pytest.param(
            [LIST, [LOST], [event("ADDED", "c", 8)]], [], [("+", "a"), ("+", "b"), ("+", "c")],
            ["initial", "7", "check", "7", "8"], id="a lost connection costs nothing",
        ),
        pytest.param(
            [LIST, [TOO_OLD], [event("ADDED", "b", 5), event("ADDED", "c", 8), bookmark(9, ends_list=True)]], [],
            [("+", "a"), ("+", "b"), ("-", "a"), ("+", "c")], ["initial", "7", "initial", "9"],
            id="a version that has expired is reported as the difference to a new list",
        ),
        pytest.param(
            [LIST, [GONE], [event("ADDED", "a", 8, "other"), event("ADDED", "b", 5), bookmark(9, ends_list=True)]], [],
            [("+", "a"), ("+", "b"), ("-", "a"), ("+", "a")], ["initial", "7", "initial", "9"],
            id="another object of the same name is a deletion and an addition",
        ),
        pytest.param(
            [[*LIST, event("MODIFIED", "a", 8, "other")]], [], [("+", "a"), ("+", "b"), ("-", "a"), ("+", "a")],
            ["initial", "8"], id="also if a watch merged the two",
        ),
        pytest.param(
            [[REFUSED], LIST], [], [("+", "a"), ("+", "b")], ["initial", "initial", "7"],
            id="a client that is refused tries again",
        ),
        pytest.param(
            [LIST[:2], LIST], [], [("+", "a"), ("+", "b")], ["initial", "initial", "7"],
            id="an incomplete list is discarded",
        ),
        pytest.param(
            [[*LIST, event("DELETED", "z", 8), event("MODIFIED", "y", 9)]], [],
            [("+", "a"), ("+", "b"), ("+", "y")], ["initial", "9"],
            id="a deletion of an unknown object is ignored and a change of one is an addition",
        ),
        pytest.param(
            [[event("ADDED", "odd", 1), *LIST, event("ADDED", "odd", 8)]], [], [("+", "a"), ("+", "b")],
            ["initial", "8"], id="objects that can't be decoded are skipped",
        ),
    ],
)  # fmt: skip
def test_changes_lead_to_the_newest_state_despite_interruptions(
    streams: list[list[Line | Exception]], pages: list[ApiResponse], reported: list[tuple[str, str]], asked: list[str]
) -> None:
    followed, server, reflector = follow(lambda: Script(streams, pages))
    assert followed.reported == reported
    assert server.asked == asked
    assert followed.state.keys() == reflector.items.keys()
    assert reflector.synced.is_set()


@pytest.mark.parametrize(
    ("failure", "checks", "asked"),
    [
        pytest.param(SILENT, [page(7, [])], ["initial", "7", "check", "7", "9"], id="a silent watch is opened again"),
        pytest.param(
            SILENT, [page(2, [])], ["initial", "7", "check", "initial", "9"], id="of a server that lost its data"
        ),
        pytest.param(
            LOST, [page(2, [])], ["initial", "7", "check", "initial", "9"], id="a lost watch, after which data is lost"
        ),
        pytest.param(
            LOST, [ApiResponse(NO_ANSWER, b"refused"), page(7, [])], ["initial", "7", "check", "check", "7", "9"],
            id="a server that does not respond is asked again",
        ),
        pytest.param(
            LOST, [ApiResponse(403, b"{}")], ["initial", "7", "check", "7", "9"], id="a client that may only watch"
        ),
        pytest.param(BUSY, [page(7, [])], ["initial", "7", "check", "7", "9"], id="a busy server"),
        pytest.param(TOO_LARGE, [], ["initial", "7", "initial", "9"], id="a server that rejects the version"),
    ],
)  # fmt: skip
def test_after_a_failure_a_reflector_lists_again_if_the_server_lost_data(
    failure: Exception, checks: list[ApiResponse], asked: list[str]
) -> None:
    last: list[Line | Exception] = [event("ADDED", "c", 9)]
    if asked[-2] == "initial":
        last = [event("ADDED", "c", 9), bookmark(9, ends_list=True)]
    followed, server, _ = follow(lambda: Script([LIST, [failure], last], checks=checks))
    assert server.asked == asked
    assert followed.state.keys() == ({"c"} if asked[-2] == "initial" else {"a", "b", "c"})


def test_a_lost_watch_is_opened_again_without_a_pause() -> None:
    times = RetryTimes(first_pause_seconds=100.0, calm_seconds=0.0, short_seconds=0.0)
    followed, _, _ = follow(lambda: Script([[*LIST, LOST], [event("ADDED", "c", 8), LOST], [bookmark(9)]]), times)
    assert followed.state.keys() == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("streams", "pages", "calm_seconds", "want"),
    [
        pytest.param(
            [LIST, [LOST], [LOST], [event("ADDED", "c", 8)], [BUSY]], [], 0.0, [1.0, 2.0, 1.0],
            id="a watch that ends normally ends the outage",
        ),
        pytest.param([[LOST], [LOST], LIST, [BUSY]], [], 0.0, [1.0, 2.0, 1.0], id="also the watch of a streamed list"),
        pytest.param([[NO_STREAMS], [REFUSED], [REFUSED]], [page(7, [])] * 3, 0.0, [1.0, 2.0], id="a list by pages does not"),
        pytest.param(
            [[NO_STREAMS], [GONE], [GONE]], [page(7, [])] * 3, 0.0, [1.0, 2.0],
            id="a server that rejects the version of every list as expired",
        ),
        pytest.param(
            [[*LIST, TOO_OLD], [*LIST, TOO_OLD], LIST], [], 100.0, [1.0, 2.0],
            id="a server whose watches expire at once",
        ),
        pytest.param([[*LIST, TOO_OLD], LIST], [], 0.0, [], id="a watch that expires after some time"),
        pytest.param(
            [[NO_STREAMS]], [ApiResponse(200, b"{}"), ApiResponse(200, b"{}"), page(7, [])], 0.0, [1.0, 2.0],
            id="a list without a version",
        ),
    ],
)  # fmt: skip
def test_pauses_double_until_a_watch_works(
    streams: list[list[Line | Exception]],
    pages: list[ApiResponse],
    calm_seconds: float,
    want: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses, sleep = list[float](), asyncio.sleep

    async def note(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", note)
    times = RetryTimes(first_pause_seconds=1.0, calm_seconds=calm_seconds, short_seconds=0.0)
    follow(lambda: Script(streams, pages), times)
    assert pauses == want


def test_lists_by_pages_between_refused_watches_do_not_end_the_problem(caplog: pytest.LogCaptureFixture) -> None:
    streams: list[list[Line | Exception]] = [[NO_STREAMS], [REFUSED], [REFUSED], [event("ADDED", "c", 8)]]
    _, server, reflector = follow(lambda: Script(streams, [page(7, [])] * 3))
    assert server.asked.count("page") == 3
    assert [record.getMessage() for record in caplog.records] == [f"{PATH}: forbidden", f"{PATH}: watched again"]
    assert not reflector.problem


def test_a_watch_that_begins_with_an_error_does_not_end_the_problem(caplog: pytest.LogCaptureFixture) -> None:
    follow(lambda: Script([LIST, [TOO_OLD], [TOO_OLD], LIST]))
    want = [f"{PATH}: too old resource version", f"{PATH}: watched again"]
    assert [record.getMessage() for record in caplog.records] == want


def test_a_silent_list_is_reported_as_a_problem(caplog: pytest.LogCaptureFixture) -> None:
    follow(lambda: Script([[SILENT], LIST]))
    assert [record.getMessage() for record in caplog.records] == [f"{PATH}: no data", f"{PATH}: watched again"]


def test_a_reflector_reports_refusals_and_undecodable_objects() -> None:
    _, _, refused = follow(lambda: Script([[*LIST, event("ADDED", "odd", 8)], [REFUSED]]))
    assert refused.problem == "forbidden"
    assert list(refused.undecodable) == ["odd"]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_random_interruptions_never_lose_changes(seed: int) -> None:
    """A server gets random writes; watches break off, are refused, or start at an expired version. No change is lost."""
    draw = random.Random(seed)
    state: dict[str, Line] = {}
    version = 1
    written: list[Line] = []
    streams: list[list[Line | Exception]] = []

    def write() -> None:
        nonlocal version
        version += 1
        name = draw.choice("abcd")
        if name not in state:
            state[name] = item(name, version, f"uid{version}")
            kind = "ADDED"
        elif draw.random() < 0.3:
            gone = state.pop(name)
            written.append(
                {"type": "DELETED", "object": {"metadata": {**gone["metadata"], "resourceVersion": str(version)}}}
            )
            return
        else:
            state[name] = item(name, version, state[name]["metadata"]["uid"])
            kind = "MODIFIED"
        written.append({"type": kind, "object": state[name]})

    seen = 0
    fresh = True
    for _ in range(draw.randint(1, 6)):
        for _ in range(draw.randint(0, 5)):
            write()
        stream: list[Line | Exception] = []
        if fresh:
            stream = [{"type": "ADDED", "object": each} for each in state.values()]
            stream.append(bookmark(version, ends_list=True))
            seen, fresh = len(written), False
        for _ in range(draw.randint(0, 4)):
            write()
        # The watch delivers some of the new changes, in order, before it ends in one of several ways.
        upto = draw.randint(seen, len(written))
        stream += written[seen:upto]
        seen = upto
        ending = draw.choice((None, LOST, TOO_OLD))
        if ending is not None:
            stream.append(ending)
        fresh = ending is TOO_OLD
        streams.append(stream)
    last: list[Line | Exception] = list(written[seen:])
    if fresh:
        last = [*({"type": "ADDED", "object": each} for each in state.values()), bookmark(version, ends_list=True)]
    followed, _, _ = follow(lambda: Script([*streams, last]))
    want = {name: (each["metadata"]["uid"], each["metadata"]["resourceVersion"]) for name, each in state.items()}
    assert followed.state == want
