"""Controllers of namespaces: one empties and removes deleted namespaces, the other creates the default objects of namespaces.

Pods are deleted first, then everything else, as in upstream's ordered namespace deletion.

Source: pkg/controller/namespace/deletion and pkg/controller/serviceaccount v1.36.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.apiserver.bridge.document_controller import DocumentController, refs_of
from bayplan.apiserver.bridge.document_owners import DELETED_OWNERS
from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.model.requests import RequestInfo, WriteOptions
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.updates import update
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.store.store import Store
from bayplan.base.durations import SECOND_NS
from bayplan.base.go_text.times import format_time
from bayplan.base.plain_data import Document, part, parts, texts
from bayplan.controllers.controller import ControllerTools, Enqueue, ReconcileResult, RejectedWrites
from bayplan.controllers.writer import AwaitsAnswers, WriteRejected
from bayplan.objects.namespace import Namespace

_TERMINATING = "Terminating"
_FINALIZER = "kubernetes"
_PODS, _NAMESPACES = "pods", "namespaces"
# Deletion takes time, and checking takes longer with more objects, so check less often if there are many.
_FEW = 200
_SHORT_WAIT_NS, _LONG_WAIT_NS = SECOND_NS // 20, SECOND_NS // 2
_CERTIFICATE = "kube-root-ca.crt"
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)


@dataclass(slots=True)
class _Turn:
    """The deletions of one reconcile.

    Attributes:
        tried: the table and key of each object.
        refused: the reason of the first refused deletion, by table.
    """

    tried: set[tuple[str, tuple[str, str]]] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)

    def leaves(self, table: str, items: list[Item]) -> bool:
        """Return whether any of these objects of a table still has to be tried."""
        return any(not _is_going(each) and (table, each.key) not in self.tried for each in items)


class NamespaceController(DocumentController):
    """Reconciles terminating namespaces; keys are their names."""

    kind = Namespace

    def __init__(
        self, tools: ControllerTools, documents: Store, writer: ObjectWriter, enqueue: Enqueue, *, backend: Backend
    ) -> None:
        super().__init__(tools, documents, writer, enqueue)
        self._backend = backend
        self._going: dict[str, None] = {}
        # The reason of the first refused deletion, by namespace and table. If `burst` leaves objects of a table for the next
        # turn, that turn keeps the reason: the status must not change in every turn.
        self._refused: dict[str, dict[str, str]] = {}

    def begin(self, now_ns: int) -> None:
        """Queue all terminating namespaces."""
        self._going.clear()
        for item in self.documents.table(_NAMESPACES).items():
            self._note(item, now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Queue a changed namespace if it is terminating.

        `reconcile` itself checks again for objects that are still there.
        """
        if write.table == _NAMESPACES:
            if write.type == DELETED:
                self._going.pop(write.new.name, None)
                self._refused.pop(write.new.name, None)
            else:
                self._note(write.new, now_ns)

    def _note(self, item: Item, now_ns: int) -> None:
        if item.fields.get("status.phase") == _TERMINATING:
            self._going[item.name] = None
            self.enqueue(item.name, now_ns)

    def reconcile(self, key: str, now_ns: int) -> ReconcileResult:
        """Delete the remaining objects of a namespace, report them in its status, and finalize the empty namespace.

        Raises:
            WriteRejected: the API rejects a write to the namespace.
        """
        item = self.documents.get(_NAMESPACES, ("", key))
        if item is None or key not in self._going:
            return None
        rejected = RejectedWrites()
        turn = _Turn()
        left = self._left(key)
        pods = left.pop(_PODS, None)
        more = pods is not None and self._delete_all(f"{key} pods", {_PODS: pods}, turn, rejected)
        if pods is None or _PODS in turn.refused:
            # As in upstream, the other objects only wait for pods that are being deleted.
            more = self._delete_all(f"{key} others", left, turn, rejected) or more
        left = self._left(key)
        former, refused = self._refused.get(key, {}), turn.refused
        self._refused[key] = refused
        if more:
            refused.update({table: text for table, text in former.items() if turn.leaves(table, left.get(table, []))})
        if rejected.problem is not None:
            self._report_remaining(key, left, refused, now_ns)
            return rejected.result(now_ns if more else None, now_ns)
        if more:
            return now_ns
        if not left:
            self._finalize(key)
            return None
        is_halfway = not all(_is_going(each) for items in left.values() for each in items)
        if _PODS not in left and is_halfway:
            return now_ns
        self._report_remaining(key, left, refused, now_ns)
        count = sum(map(len, left.values()))
        return now_ns + (_SHORT_WAIT_NS if count <= _FEW else _LONG_WAIT_NS)

    def _delete_all(self, key: str, left: dict[str, list[Item]], turn: _Turn, rejected: RejectedWrites) -> bool:
        """Delete objects of a namespace; return whether `burst` leaves objects for the next call.

        Args:
            key: identifies these objects across turns.
            left: the objects, by table.
            turn: the deletions of this turn; updated.
            rejected: collects the refused deletions.
        """

        def delete(found: tuple[str, Item]) -> None:
            table, item = found
            turn.tried.add((table, item.key))
            try:
                self.object_writer.delete(table, item.key, propagation="Background", uid=item.uid)
            except AwaitsAnswers:
                raise
            except WriteRejected as refusal:
                turn.refused.setdefault(table, refusal.message)
                raise

        waiting = [(table, each) for table, items in left.items() for each in items if not _is_going(each)]
        return self.write_each(key, waiting, delete, rejected)[1]

    def _left(self, namespace: str) -> dict[str, list[Item]]:
        """Return the remaining objects of a namespace, by table."""
        names = [name for name in self.documents.table_names() if name not in (DELETED_OWNERS, _NAMESPACES)]
        return {name: found for name in names if (found := self.documents.between(name, namespace))}

    def _report_remaining(self, name: str, left: dict[str, list[Item]], refused: dict[str, str], now_ns: int) -> None:
        """Write the conditions of a namespace; upstream counts no objects of a resource of which a deletion was refused."""
        left = {table: items for table, items in left.items() if table not in refused}
        resources = sorted(f"{_shown(table)} has {len(items)} resource instances" for table, items in left.items())
        finalizers: dict[str, int] = {}
        for items in left.values():
            for item in items:
                for each in refs_of(item).finalizers:
                    finalizers[each] = finalizers.get(each, 0) + 1
        held = sorted(f"{each} in {count} resource instances" for each, count in finalizers.items())
        stored = self.documents.get(_NAMESPACES, ("", name))
        if stored is None:
            return
        status = dict(part(self.object_writer.document(_NAMESPACES, stored), "status"))
        time = format_time(now_ns)
        known = {str(each.get("type")): each for each in parts(status, "conditions")}
        wanted = (
            (
                "NamespaceDeletionDiscoveryFailure",
                "False",
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                "False",
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                "True" if refused else "False",
                "ContentDeletionFailed" if refused else "ContentDeleted",
                f"Failed to delete all resource types, {len(refused)} remaining: {', '.join(sorted(refused.values()))}"
                if refused
                else "All content successfully deleted, may be waiting on finalization",
            ),
            (
                "NamespaceContentRemaining",
                "True" if left else "False",
                "SomeResourcesRemain" if left else "ContentRemoved",
                f"Some resources are remaining: {', '.join(resources)}" if left else "All content successfully removed",
            ),
            (
                "NamespaceFinalizersRemaining",
                "True" if held else "False",
                "SomeFinalizersRemain" if held else "ContentHasNoFinalizers",
                f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
                if held
                else "All content-preserving finalizers finished",
            ),
        )
        status["conditions"] = [_condition(known.get(each[0]), each, time) for each in wanted]
        self.object_writer.change(_NAMESPACES, ("", name), {"status": status}, "status")

    def _finalize(self, name: str) -> None:
        resource = self.object_writer.resource(_NAMESPACES)
        stored = self.documents.get(_NAMESPACES, ("", name))
        if stored is None:
            return
        document = self.object_writer.document(_NAMESPACES, stored)
        finalizers = [each for each in texts(part(document, "spec"), "finalizers") if each != _FINALIZER]
        wanted: Document = {
            **document,
            "metadata": dict(part(document, "metadata")),
            "spec": {"finalizers": finalizers},
        }
        info = RequestInfo("update", resource, "", name, "finalize")
        update(self._backend, info, wanted, WriteOptions(manager=self.object_writer.manager))


def _is_going(item: Item) -> bool:
    return refs_of(item).deletion_timestamp is not None


def _shown(table: str) -> str:
    group, _, name = table.rpartition("/")
    return f"{name}.{group}"


def _condition(known: Document | None, wanted: tuple[str, str, str, str], time: str) -> Document:
    type_, status, reason, message = wanted
    if known is not None and known.get("status") == status:
        time = str(known.get("lastTransitionTime") or time)
    return {"type": type_, "status": status, "lastTransitionTime": time, "reason": reason, "message": message}


class NamespaceDefaultsController(DocumentController):
    """Creates the default objects of namespaces: a ServiceAccount, and a ConfigMap with the server's certificate.

    Args:
        tools, documents, writer, enqueue: see `DocumentController`.
        certificate: the PEM certificate of the server; empty without TLS, as upstream without a root CA file.
    """

    kind = Namespace

    def __init__(
        self, tools: ControllerTools, documents: Store, writer: ObjectWriter, enqueue: Enqueue, *, certificate: str
    ) -> None:
        super().__init__(tools, documents, writer, enqueue)
        self._certificate = certificate

    def begin(self, now_ns: int) -> None:
        """Queue all namespaces."""
        for item in self.documents.table(_NAMESPACES).items():
            self.enqueue(item.name, now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Queue a namespace that is new or whose default object was deleted."""
        item = write.new
        if write.table == _NAMESPACES:
            if write.old is None:
                self.enqueue(item.name, now_ns)
        elif write.type == DELETED and (write.table, item.name) in (
            ("serviceaccounts", "default"),
            ("configmaps", _CERTIFICATE),
        ):
            self.enqueue(item.namespace, now_ns)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Create the missing default objects of a namespace, unless it is terminating.

        Raises:
            WriteRejected: the API rejects a write.
        """
        item = self.documents.get(_NAMESPACES, ("", key))
        if item is None or item.fields.get("status.phase") == _TERMINATING:
            return None
        if self.documents.get("serviceaccounts", (key, "default")) is None:
            self.object_writer.create("serviceaccounts", key, {"metadata": {"name": "default", "namespace": key}})
        if self.documents.get("configmaps", (key, _CERTIFICATE)) is None:
            metadata = {"name": _CERTIFICATE, "annotations": {"kubernetes.io/description": _DESCRIPTION}}
            self.object_writer.create("configmaps", key, {"metadata": metadata, "data": {"ca.crt": self._certificate}})
        return None
