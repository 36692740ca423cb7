"""A source that is a dict, a target that is Bayplan's API in process, and a follower between them, driven by tests."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from bayplan.apiserver.rest.api import Api
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.bootstrap import bootstrap
from bayplan.apiserver.rest.messages import Request, Response, parse_query
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part
from bayplan.client.request_steps import RequestSteps
from bayplan.client.requests import ApiRequest, ApiResponse
from bayplan.http_api.document_batch import BatchWriter
from bayplan.sync.batching import execute_batch, finish, fits_batch
from bayplan.sync.followed_kinds import BY_PLURAL, ObjectRef
from bayplan.sync.follower import Follower
from bayplan.sync.known_objects import ref_of
from bayplan.sync.memory import Memory
from bayplan.sync.policy import SyncPolicy
from bayplan.sync.sync_write import SyncWrite
from bayplan.sync.writing import execute_write, read_memory, save_memory

NS = "default"
T = TypeVar("T")


class LocalCluster:
    """The target cluster.

    Attributes:
        supports_batches: Whether it accepts Bayplan's batch requests; the tests run both ways.
    """

    supports_batches = False

    def __init__(self) -> None:
        self.backend = Backend(Store())
        bootstrap(self.backend)
        self._api = Api(self.backend)

    def send(self, request: ApiRequest) -> ApiResponse:
        """Return the response to a request."""
        return asyncio.run(self.answer(request))

    async def answer(self, request: ApiRequest) -> ApiResponse:
        """Return the response to a request; for use in a running event loop."""
        if self.supports_batches and request.path == "/bayplan/v1/objects":
            batch = await BatchWriter(self.backend).write(request.body, "test", objects="objects=1" in request.query)
            return ApiResponse(200, msgspec.json.encode(batch))
        headers = {"content-type": request.content_type}
        query = parse_query(request.query)
        answer = await self._api.handle(Request(request.method, request.path, query, headers, request.body))
        assert isinstance(answer, Response)
        assert answer.status != 500, answer.body
        return ApiResponse(answer.status, answer.body)

    def drive(self, exchange: RequestSteps[T]) -> T:
        """Run an exchange: send its requests one after the other, and return its result."""
        try:
            step = next(exchange)
            while True:
                assert isinstance(step, ApiRequest), "this server is never busy"
                step = exchange.send(self.send(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def get(self, plural: str, name: str, namespace: str = NS) -> Document | None:
        """Return an object of the target, or None."""
        kind = BY_PLURAL[plural]
        answer = self.send(ApiRequest("GET", kind.path(namespace if kind.namespaced else "", name)))
        return msgspec.json.decode(answer.body) if answer.ok else None

    def list(self, plural: str) -> tuple[list[Document], int]:
        """Return all objects of a kind and the revision of the list."""
        found = msgspec.json.decode(self.send(ApiRequest("GET", BY_PLURAL[plural].path())).body)
        return found["items"], int(found["metadata"]["resourceVersion"])

    def ask(self, method: str, path: str, document: object = None) -> ApiResponse:
        """Send a document, fail if it is refused, and return the response."""
        answer = self.send(ApiRequest(method, path, b"" if document is None else msgspec.json.encode(document)))
        assert answer.ok, answer.body
        return answer

    def bind(self, name: str, node: str) -> None:
        """Bind a pod, as the target's scheduler does."""
        target = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": {"name": node}}
        self.ask("POST", f"/api/v1/namespaces/{NS}/pods/{name}/binding", target)

    def delete_pod(self, name: str) -> None:
        """Delete a pod, as preemption in the target does."""
        self.ask("DELETE", f"/api/v1/namespaces/{NS}/pods/{name}", {"gracePeriodSeconds": 0})


class FollowerFixture:
    """A source, a follower and a target. Events of the source are queued until a test delivers or drops them.

    Args:
        kinds: The kinds to sync.
        policy: The policy of the follower.
    """

    def __init__(self, kinds: Iterable[str] = ("nodes", "pods"), policy: SyncPolicy | None = None) -> None:
        self.kinds = tuple(kinds)
        self.policy = policy or SyncPolicy()
        self.here = LocalCluster()
        self.source: dict[ObjectRef, Document] = {}
        self._numbers = itertools.count(1)
        self._seen_here = 0
        self._told_here: dict[ObjectRef, Document] = {}
        self._pending: list[tuple[ObjectRef, Document, bool]] = []
        self._under_way: list[SyncWrite] = []
        self.follower: Follower

    # The source.

    def put(self, plural: str, document: Document) -> Document:
        """Add or replace an object of the source; give a new one a uid."""
        ref = ref_of(plural, document)
        before = self.source.get(ref)
        number = str(next(self._numbers))
        uid = part(before, "metadata")["uid"] if before is not None else f"source-{number}"
        metadata = {**part(document, "metadata"), "uid": uid, "resourceVersion": number}
        document = {**document, "metadata": metadata}
        self.source[ref] = document
        self._pending.append((ref, document, False))
        return document

    def remove(self, plural: str, name: str, namespace: str = NS) -> None:
        """Delete an object of the source."""
        ref = ObjectRef(plural, namespace if BY_PLURAL[plural].namespaced else "", name)
        self._pending.append((ref, self.source.pop(ref), True))

    # The follower.

    def start(self) -> None:
        """Start the follower, or restart it as in a new process, with only the state that the target stores."""
        self._under_way.clear()
        memory = Memory()
        memory.load(self.here.drive(read_memory()))
        self.follower = Follower(self.policy, memory, self.kinds)
        self.list_local()
        self.relist()
        self.save()

    def list_local(self) -> None:
        """Deliver lists of the target's objects to the follower."""
        for plural in self.kinds:
            documents, revision = self.here.list(plural)
            self.follower.local_listed(plural, documents, revision)
            self._told_here = {ref: each for ref, each in self._told_here.items() if ref.plural != plural}
            self._told_here |= {ref_of(plural, each): each for each in documents}
        self._seen_here = self.here.backend.store.revision

    def relist_local(self) -> None:
        """Deliver the target's changes to the follower as a watch does that was interrupted and lists again."""
        for plural in self.kinds:
            documents, revision = self.here.list(plural)
            found = {ref_of(plural, each): each for each in documents}
            for ref, known in [row for row in self._told_here.items() if row[0].plural == plural]:
                if ref not in found or part(found[ref], "metadata")["uid"] != part(known, "metadata")["uid"]:
                    del self._told_here[ref]
                    self.follower.local_deleted(plural, known)
            for ref, document in found.items():
                if self._told_here.get(ref) != document:
                    self._told_here[ref] = document
                    self.follower.local_changed(plural, document)
            self.follower.local_bookmark(plural, revision)
        self._seen_here = self.here.backend.store.revision

    def relist(self) -> None:
        """Deliver lists of the source's objects to the follower, and drop pending events."""
        self._pending.clear()
        for plural in self.kinds:
            self.follower.source_listed(plural, [each for ref, each in self.source.items() if ref.plural == plural])

    def tell(self, *, merged: bool = False) -> None:
        """Deliver the source's events to the follower.

        Args:
            merged: Whether only the last event of each object is delivered.
        """
        pending, self._pending = self._pending, []
        if merged:
            pending = list({ref: event for event in pending for ref in [event[0]]}.values())
        for ref, document, deleted in pending:
            (self.follower.source_deleted if deleted else self.follower.source_changed)(ref.plural, document)

    def deliver_local_events(self) -> None:
        """Deliver the target's events to the follower."""
        for plural in self.kinds:
            for write in self.here.backend.store.since(plural_table(plural), self._seen_here):
                document = msgspec.json.decode(write.new.raw)
                if write.type == "DELETED":
                    self._told_here.pop(ref_of(plural, document), None)
                    self.follower.local_deleted(plural, document)
                else:
                    self._told_here[ref_of(plural, document)] = document
                    self.follower.local_changed(plural, document)
        self._seen_here = self.here.backend.store.revision

    def begin_writes(self) -> None:
        """Let the follower decide on writes that are executed later, by `end_writes` or `work`."""
        self._under_way += self.follower.next_writes(3)

    def end_writes(self) -> None:
        """Execute the decided writes without delivering the target's events."""
        under_way, self._under_way = self._under_way, []
        self._execute(under_way)

    def lose_local_events(self) -> None:
        """Drop the target's events, as an interrupted watch misses objects that were created and deleted."""
        self._seen_here = self.here.backend.store.revision

    def work(self, rounds: int = 50) -> None:
        """Execute writes and deliver the target's events until the follower has nothing left to do."""
        self.end_writes()
        for _ in range(rounds):
            self.deliver_local_events()
            self.save()
            writes = self.follower.next_writes(3)
            if not writes and self.follower.is_idle:
                return
            self._execute(writes)
        raise AssertionError("the follower does not come to rest")

    def _execute(self, writes: Sequence[SyncWrite]) -> None:
        batch = [write for write in writes if self.here.supports_batches and fits_batch(write)]
        for unfinished in self.here.drive(execute_batch(self.follower, batch)):
            self.here.drive(finish(self.follower, unfinished))
        for write in writes:
            if write not in batch:
                self.here.drive(execute_write(self.follower, write))

    def save(self) -> None:
        """Write the follower's changed state to the target."""
        assert self.here.drive(save_memory(self.follower.memory.take_changes())) is None

    def follow(self, *, merged: bool = False) -> None:
        """Deliver all of the source's events, and execute all writes."""
        self.tell(merged=merged)
        self.work()


def plural_table(plural: str) -> str:
    """Return the name of the store's table for a kind."""
    kind = BY_PLURAL[plural]
    return f"{kind.group}/{plural}" if kind.group else plural


def node(name: str, *, cpu: str = "4", ready: str = "True", unschedulable: bool = False) -> Document:
    """Return a node of the source."""
    amounts: Document = {"cpu": cpu, "memory": "8Gi", "pods": "110"}
    status: Document = {
        "allocatable": amounts,
        "capacity": amounts,
        "conditions": [{"type": "Ready", "status": ready}],
    }
    spec: Document = {"unschedulable": True} if unschedulable else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def pod(
    name: str,
    *,
    node_name: str = "",
    phase: str = "",
    labels: dict[str, str] | None = None,
    gates: tuple[str, ...] = (),
    **spec: object,
) -> Document:
    """Return a pod of the source."""
    full: Document = {"containers": [{"name": "main", "image": "app:1"}], "serviceAccountName": "there", **spec}
    if node_name:
        full["nodeName"] = node_name
    if gates:
        full["schedulingGates"] = [{"name": gate} for gate in gates]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs", "controller": True}
    metadata: Document = {"name": name, "namespace": NS, "labels": labels or {}, "ownerReferences": [owner]}
    status: Document = {"phase": phase or ("Running" if node_name else "Pending")}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": full, "status": status}
