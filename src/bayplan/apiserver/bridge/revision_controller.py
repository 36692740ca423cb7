"""Maintains ControllerRevisions of StatefulSets and DaemonSets, for ``kubectl rollout history`` and ``rollout undo``.

Only clients need these objects: the controllers of the virtual cluster store templates themselves. If a set returns to
an earlier template, its revision becomes the newest revision, under its old name.

Source: pkg/controller/history v1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.apiserver.bridge.object_writer import ObjectWriter
from bayplan.apiserver.bridge.revision_documents import REVISIONS, SETS, typed_template
from bayplan.apiserver.bridge.templates import plain
from bayplan.apiserver.bridge.typed_store import TABLE_OF_KIND
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part
from bayplan.cluster.naming import revision_name, template_hash
from bayplan.cluster.source_copies import is_copy
from bayplan.cluster.store import ChangeEvent
from bayplan.controllers.controller import Controller, ControllerTools
from bayplan.controllers.pod_factory import controller_reference
from bayplan.controllers.revisions import REVISION_LABEL, observed_daemon_set_hash, observed_stateful_set_hash
from bayplan.objects.workloads import DEFAULT_REVISION_HISTORY_LIMIT, DaemonSet, StatefulSet

_HASH_LABEL = "controller.kubernetes.io/hash"
"""The label of the hash in revisions of StatefulSets. Revisions of DaemonSets have it in `REVISION_LABEL`."""


class RevisionController(Controller):
    """Reconciles the revisions of sets; keys are the kind and the key of a set.

    Args:
        tools: see `ControllerTools`.
        documents: the API's store.
        writer: writes untyped objects through the API.
    """

    kind = StatefulSet
    watches = (StatefulSet, DaemonSet)

    def __init__(self, tools: ControllerTools, documents: Store, writer: ObjectWriter) -> None:
        super().__init__(tools)
        self._documents = documents
        self._writer = writer
        # The last processed template of each set, by uid, to skip events that do not change it.
        self._templates: dict[str, object] = {}
        self._crowded: dict[str, None] = {}

    def keys_for(self, event: ChangeEvent) -> Iterable[str]:
        """Return the key of a set whose template changed, or that has too many revisions because old pods use them."""
        item = event.new
        if not isinstance(item, StatefulSet | DaemonSet):
            self._templates.pop(event.object.metadata.uid, None)
            self._crowded.pop(event.object.metadata.uid, None)
            return ()
        uid = item.metadata.uid
        if self._templates.get(uid) is item.spec.template and uid not in self._crowded:
            return ()
        return (f"{event.kind.__name__} {item.key}",)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Store a revision for the current template, and delete the oldest revisions above the history limit.

        Raises:
            WriteRejected: the API rejects a write.
        """
        kind, _, place = key.partition(" ")
        item = self.store.get(SETS[kind], place)
        if item is None or item.metadata.deletion_timestamp is not None or is_copy(item):
            return None
        known = self._revisions_of(item)
        # The pods of a set from a dump without revisions have their own hash, which the controllers continue to use.
        digest = ("" if known else self._observed_hash(item)) or template_hash(item.spec.template, 0)
        # Another program may have created the template's revision under a different name.
        name = self._same_template(item, known) or revision_name(item.metadata.name, digest)
        newest = max(known.values(), default=0)
        namespace = item.metadata.namespace
        if name not in known:
            self._writer.create(REVISIONS, namespace, self._document(item, name, digest, newest + 1))
        elif known[name] < newest:
            self._writer.change(REVISIONS, (namespace, name), {"revision": newest + 1})
        self._templates[item.metadata.uid] = item.spec.template
        self._forget_oldest(item, name)
        return None

    def _observed_hash(self, item: StatefulSet | DaemonSet) -> str:
        if isinstance(item, StatefulSet):
            return observed_stateful_set_hash(item)
        return observed_daemon_set_hash(item, self.store.owned_pods(item.metadata.uid).active.values())

    def _same_template(self, item: StatefulSet | DaemonSet, known: dict[str, int]) -> str | None:
        """Return the name of the newest stored revision with the set's current template, or None."""
        for name in reversed(known):
            stored = self._documents.get(REVISIONS, (item.metadata.namespace, name))
            if stored is not None and typed_template(decode_item(stored), type(item)) == item.spec.template:
                return name
        return None

    def _revisions_of(self, item: StatefulSet | DaemonSet) -> dict[str, int]:
        """Return the revision numbers of a set by the name of the revision, oldest first."""
        found: dict[str, int] = {}
        for each in self._documents.between(REVISIONS, item.metadata.namespace):
            if item.metadata.uid.encode() in each.raw:
                number = decode_item(each).get("revision")
                found[each.name] = number if isinstance(number, int) else 0
        return dict(sorted(found.items(), key=lambda entry: entry[1]))

    def _document(self, item: StatefulSet | DaemonSet, name: str, digest: str, number: int) -> Document:
        metadata = item.metadata
        stored = self._documents.get(TABLE_OF_KIND[type(item)], (metadata.namespace, metadata.name))
        template = part(decode_item(stored), "spec", "template") if stored is not None else {}
        label = REVISION_LABEL if isinstance(item, DaemonSet) else _HASH_LABEL
        return {
            "metadata": {
                "name": name,
                "namespace": metadata.namespace,
                "labels": {**item.spec.template.metadata.labels, label: digest},
                "annotations": metadata.annotations,
                "ownerReferences": [plain(controller_reference(item))],
            },
            "data": {"spec": {"template": {**template, "$patch": "replace"}}},
            "revision": number,
        }

    def _forget_oldest(self, item: StatefulSet | DaemonSet, newest: str) -> None:
        limit = item.spec.revision_history_limit
        if limit is None:
            limit = DEFAULT_REVISION_HISTORY_LIMIT
        prefix = f"{item.metadata.name}-"
        labels = [pod.metadata.labels.get(REVISION_LABEL, "") for pod in self.store.owned_pods(item.metadata.uid)]
        live = {label if label.startswith(prefix) else prefix + label for label in labels} | {newest}
        known = self._revisions_of(item)
        unused = [name for name in known if name not in live]
        surplus = unused[: max(len(unused) - limit, 0)]
        for name in surplus:
            self._writer.delete(REVISIONS, (item.metadata.namespace, name))
        if len(known) - len(surplus) > limit + 1:
            self._crowded[item.metadata.uid] = None
        else:
            self._crowded.pop(item.metadata.uid, None)
