"""Tests of a session: it reads feeds and sends requests until the target is up to date; also after a restart."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable

import msgspec
import pytest

from bayplan.apiserver.store.item import Write
from bayplan.base.plain_data import Document, part
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.sync.document_feed import DocumentFeed
from bayplan.sync.feed import Changed, Feed, FeedChange, Listed, OnChange
from bayplan.sync.followed_kinds import BY_PLURAL
from bayplan.sync.memory import MEMORY_NAMESPACE
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.session import STATUS, SyncSession, SyncStatus
from tests.sync.follower_fixture import LocalCluster, node, plural_table, pod

pytestmark = pytest.mark.usefixtures("way")

KINDS: tuple[str, ...] = ("namespaces", "nodes", "pods")


class LiveFeed:
    """A feed of the target."""

    def __init__(self, here: LocalCluster) -> None:
        self.kinds: tuple[str, ...] = tuple(BY_PLURAL)
        self.left_out: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self._here = here

    async def open(self) -> None:
        """There is nothing to open."""

    async def run(self, on_change: OnChange) -> None:
        """Emit existing objects, then every write, until cancelled."""
        store = self._here.backend.store
        for plural in self.kinds:
            documents = [msgspec.json.decode(item.raw) for item in store.between(plural_table(plural))]
            on_change(Listed(plural, documents, store.revision))
            store.listen(plural_table(plural), _teller(plural, on_change), lambda: None)
        await asyncio.Event().wait()


def _teller(plural: str, on_change: OnChange) -> Callable[[Write], None]:
    def tell(write: Write) -> None:
        on_change(Changed(plural, msgspec.json.decode(write.new.raw), deleted=write.type == "DELETED"))

    return tell


class ScriptedFeed:
    """A source whose output is set by the test."""

    def __init__(self) -> None:
        self.kinds = KINDS
        self.left_out: dict[str, str] = {}
        self.problems: dict[str, str] = {}
        self.changes: asyncio.Queue[FeedChange | None] = asyncio.Queue()

    async def open(self) -> None:
        """There is nothing to open."""

    async def run(self, on_change: OnChange) -> None:
        """Emit the test's changes."""
        while (change := await self.changes.get()) is not None:
            on_change(change)


class FlakySender:
    """Sends requests to the target; the first ones fail, because it is too busy or does not respond."""

    def __init__(self, here: LocalCluster, failures: int = 0) -> None:
        self.here = here
        self.failures = failures
        self.sent = 0

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer a request."""
        self.sent += 1
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            return ApiResponse(503 if self.failures % 2 else 0, b"connection refused")
        return await self.here.answer(request)


def run_once(here: LocalCluster, source: Feed, *, failures: int = 0, policy: SyncPolicy | None = None) -> SyncStatus:
    """Import the objects of a source, and return the final status."""

    async def run() -> SyncStatus:
        sender = FlakySender(here, failures)
        session = SyncSession(source, LiveFeed(here), sender.send, policy or SyncPolicy(), name="test")
        await session.run(once=True)
        return session.status()

    return asyncio.run(run())


def dumped(document: Document, uid: str) -> Document:
    """Return a document as a dump has it."""
    return {**document, "metadata": {**part(document, "metadata"), "uid": uid}}


def test_an_import_creates_scheduling_objects_and_lists_ignored_kinds() -> None:
    here = LocalCluster()
    documents: list[Document] = [
        dumped(pod("runs", node_name="n1"), "u1"),
        dumped(pod("waits"), "u2"),
        dumped(node("n1"), "u3"),
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}},
    ]
    status = run_once(here, DocumentFeed(documents), failures=5)
    assert (status.created, status.idle, status.problems) == (3, True, [])
    assert list(status.left_out) == ["Deployment"]
    runs = here.get("pods", "runs")
    assert runs is not None
    assert part(runs, "spec")["nodeName"] == "n1"
    assert part(runs, "status")["phase"] == "Running"


@pytest.mark.parametrize(
    ("once", "want"),
    [
        pytest.param(True, ("import", "done"), id="an import that is complete"),
        pytest.param(False, ("sync", "stopped"), id="a session that was cancelled"),
    ],
)
def test_a_session_records_its_final_state(once: bool, want: tuple[str, str]) -> None:
    here = LocalCluster()

    async def run() -> None:
        scripted = ScriptedFeed()
        for plural in KINDS:
            scripted.changes.put_nowait(Listed(plural, []))
        source = DocumentFeed([dumped(node("n1"), "u1")]) if once else scripted
        kind = "import" if once else "sync"
        session = SyncSession(source, LiveFeed(here), FlakySender(here).send, SyncPolicy(), kind=kind)
        task = asyncio.create_task(session.run(once=once))
        if not once:
            async with asyncio.timeout(20):
                while not session.status().idle:
                    await asyncio.sleep(0.01)
            task.cancel()
        await asyncio.wait((task,), timeout=20)

    asyncio.run(run())
    answer = here.send(ApiRequest("GET", f"/api/v1/namespaces/{MEMORY_NAMESPACE}/configmaps/{STATUS}"))
    data = msgspec.json.decode(answer.body)["data"]
    assert (data["kind"], data["state"]) == want


def test_a_repeated_import_changes_nothing() -> None:
    here = LocalCluster()
    documents = [dumped(node("n1"), "u1"), dumped(pod("runs", node_name="n1"), "u2")]
    run_once(here, DocumentFeed(documents))
    before = [here.list(plural)[0] for plural in KINDS]
    status = run_once(here, DocumentFeed(documents))
    assert status.created == 0
    assert [here.list(plural)[0] for plural in KINDS] == before


def test_refused_and_needless_writes_are_not_counted() -> None:
    here = LocalCluster()
    kept = dumped(pod("kept"), "u1")
    run_once(here, DocumentFeed([kept, dumped(pod("gone"), "u2")]))
    bad = dumped(pod("bad", containers=[]), "u3")
    status = run_once(here, DocumentFeed([kept, dumped(pod("new"), "u4"), bad]))
    assert (status.created, status.updated, status.deleted) == (1, 0, 1)
    assert [each.ref.name for each in status.problems] == ["bad"]


def test_source_and_problems_are_stored_in_the_target() -> None:
    here = LocalCluster()
    bad = pod("bad", containers=[])
    run_once(here, DocumentFeed([dumped(bad, "u1")]))
    answer = here.send(ApiRequest("GET", f"/api/v1/namespaces/{MEMORY_NAMESPACE}/configmaps/{STATUS}"))
    data = msgspec.json.decode(answer.body)["data"]
    assert data["source"] == "test"
    assert data["problems"].startswith("pods default/bad: ")


def test_a_cancelled_session_resumes_where_it_stopped() -> None:
    here = LocalCluster()

    async def follow(changes: list[FeedChange], until: Callable[[], bool]) -> None:
        source = ScriptedFeed()
        for change in changes:
            source.changes.put_nowait(change)
        session = SyncSession(source, LiveFeed(here), FlakySender(here).send, SyncPolicy())
        task = asyncio.create_task(session.run())
        async with asyncio.timeout(20):
            while not (session.status().idle and until()):
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def pods() -> list[str]:
        items = here.backend.store.between("pods")
        return [item.name for item in items]

    first = dumped(pod("first", node_name="n1"), "u1")
    lists: list[FeedChange] = [Listed("namespaces", []), Listed("nodes", [dumped(node("n1"), "n")])]
    asyncio.run(follow([*lists, Listed("pods", [first])], lambda: pods() == ["first"]))
    here.delete_pod("first")
    late = dumped(pod("late", node_name="n1"), "u2")
    asyncio.run(follow([*lists, Listed("pods", [first, late])], lambda: pods() == ["late"]))
    found = here.get("pods", "late")
    assert found is not None
    assert not part(found, "spec").get("nodeName")


def test_namespaces_missing_in_a_dump_are_created() -> None:
    here = LocalCluster()
    lonely: Document = {**pod("lonely"), "metadata": {"name": "lonely", "namespace": "team", "uid": "u"}}
    status = run_once(here, DocumentFeed([lonely]))
    assert (status.created, status.problems) == (2, [])
    assert here.get("pods", "lonely", "team") is not None


def test_manifests_without_uids_are_identified_by_name() -> None:
    here = LocalCluster()
    documents: list[Document] = [node("n1"), pod("waits"), pod("runs", node_name="n1")]
    assert (first := run_once(here, DocumentFeed(documents))).problems == []
    assert first.created == 3
    here.delete_pod("waits")
    again = run_once(here, DocumentFeed(documents))
    assert (again.created, again.problems) == (0, [])
    assert here.get("pods", "waits") is None


@pytest.mark.parametrize("turns", range(5))
def test_cancellation_ends_a_session_even_with_a_concurrent_event(turns: int) -> None:
    here = LocalCluster()

    async def end_it() -> None:
        source = ScriptedFeed()
        for plural in KINDS:
            source.changes.put_nowait(Listed(plural, []))
        session = SyncSession(source, LiveFeed(here), FlakySender(here).send, SyncPolicy())
        task = asyncio.create_task(session.run())
        async with asyncio.timeout(20):
            while not session.status().idle:
                await asyncio.sleep(0.01)
        # The task is cancelled at various moments after an event has arrived.
        source.changes.put_nowait(Changed("nodes", dumped(node("n1"), "n")))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        done, _ = await asyncio.wait((task,), timeout=5)
        assert task in done

    asyncio.run(end_it())


class RefusingSender(FlakySender):
    """Answers writes of the node n1 with an error, until a number of them."""

    def __init__(self, here: LocalCluster, refusals: float, error: ApiResponse) -> None:
        super().__init__(here)
        self.refusals = refusals
        self.error = error

    async def send(self, request: ApiRequest) -> ApiResponse:
        """Answer a request."""
        if self.refusals and request.method in ("POST", "PUT") and b'"name":"n1"' in request.body:
            self.refusals -= 1
            return self.error
        return await super().send(request)


CONFLICT = ApiResponse(409, b'{"message": "the object has been modified"}')
BROKEN = ApiResponse(500, b'{"message": "the webhook failed"}')


def test_an_object_that_met_conflicts_is_reported_and_written_again_later() -> None:
    here = LocalCluster()
    run_once(here, DocumentFeed([dumped(node("n1"), "u1")]))
    labeled = node("n1")
    labeled["metadata"] = {"name": "n1", "labels": {"a": "b"}}
    feed = ScriptedFeed()
    for plural, documents in {"namespaces": [], "nodes": [dumped(labeled, "u1")], "pods": list[Document]()}.items():
        feed.changes.put_nowait(Listed(plural, documents, 1))

    async def run() -> list[str]:
        session = SyncSession(feed, LiveFeed(here), RefusingSender(here, 5, CONFLICT).send, SyncPolicy(), name="test")
        task = asyncio.create_task(session.run())
        async with asyncio.timeout(30):
            while not (problems := session.status().problems):
                await asyncio.sleep(0.01)
            while not (session.status().idle and session.status().updated):
                await asyncio.sleep(0.01)
        assert session.status().problems == []
        task.cancel()
        await asyncio.wait([task])
        return [each.message for each in problems]

    assert asyncio.run(run()) == ["the object has been modified"]
    found = here.get("nodes", "n1")
    assert found is not None
    assert part(part(found, "metadata"), "labels")["a"] == "b"


@pytest.mark.parametrize("error", [BROKEN, ApiResponse(503, BROKEN.body)], ids=["internal error", "unavailable"])
def test_an_object_that_meets_server_errors_is_reported_once_and_does_not_delay_others(
    error: ApiResponse, caplog: pytest.LogCaptureFixture
) -> None:
    here = LocalCluster()
    feed = ScriptedFeed()
    nodes = [dumped(node(name), name) for name in ("n1", "n2")]
    for plural, documents in {"namespaces": [], "nodes": nodes, "pods": [dumped(pod("p"), "p")]}.items():
        feed.changes.put_nowait(Listed(plural, documents, 1))
    sender = RefusingSender(here, math.inf, error)

    async def run() -> None:
        session = SyncSession(feed, LiveFeed(here), sender.send, SyncPolicy(), name="test")
        task = asyncio.create_task(session.run())
        async with asyncio.timeout(60):
            while session.status().created < 2:
                await asyncio.sleep(0.01)
            # Also while the object is tried again.
            for _ in range(300):
                assert [each.message for each in session.status().problems] == ["the webhook failed"]
                await asyncio.sleep(0.01)
            sender.refusals = 0
            while session.status().created < 3 or not session.status().idle:
                await asyncio.sleep(0.01)
        assert session.status().problems == []
        task.cancel()
        await asyncio.wait([task])

    with caplog.at_level(logging.WARNING, "bayplan.sync"):
        asyncio.run(run())
    assert [each.getMessage() for each in caplog.records] == [
        "nodes n1 could not be written, and is tried again later: the webhook failed"
    ]


def test_a_sync_waits_until_its_state_can_be_read_and_saved(caplog: pytest.LogCaptureFixture) -> None:
    here = LocalCluster()
    errors = {"GET": 6, "PUT": 6}
    seen: list[str] = []

    async def send(request: ApiRequest) -> ApiResponse:
        if f"/{MEMORY_NAMESPACE}/" in request.path and not request.path.endswith(f"/{STATUS}"):
            seen.append(request.method)
            if errors.get(request.method):
                errors[request.method] -= 1
                return BROKEN
        elif b'"name":"n1"' in request.body:
            seen.append("object")
        return await here.answer(request)

    session = SyncSession(DocumentFeed([dumped(node("n1"), "u1")]), LiveFeed(here), send, SyncPolicy(), name="test")
    asyncio.run(session.run(once=True))
    assert session.status().created == 1
    assert seen.index("object") > seen.index("POST")
    assert errors == {"GET": 0, "PUT": 0}
    assert [each.getMessage() for each in caplog.records] == [
        "the state of the sync could not be saved: the webhook failed; retrying",
        "the state of the sync is saved again",
    ]


def test_an_import_ends_although_an_object_meets_internal_errors(caplog: pytest.LogCaptureFixture) -> None:
    here = LocalCluster()
    sender = RefusingSender(here, math.inf, BROKEN)

    async def run() -> SyncStatus:
        source = DocumentFeed([dumped(node("n1"), "u1"), dumped(node("n2"), "u2")])
        session = SyncSession(source, LiveFeed(here), sender.send, SyncPolicy(), name="test")
        async with asyncio.timeout(30):
            await session.run(once=True)
        return session.status()

    status = asyncio.run(run())
    assert (status.created, [each.message for each in status.problems]) == (1, ["the webhook failed"])
    # It is not tried again after the end.
    assert caplog.records == []
