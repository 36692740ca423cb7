"""The quota controller: recounts the usage of ResourceQuotas when objects are deleted, pods end, or a quota changes.

Admission adds the usage of new objects (`bayplan.apiserver.rest.quota_usage`), so a create needs no recount.

Source: pkg/controller/resourcequota v1.36.3.
"""

from __future__ import annotations

from msgspec.structs import replace

from bayplan.apiserver.bridge.document_controller import DocumentController
from bayplan.apiserver.rest.backend import decode_item
from bayplan.apiserver.rest.quota_usage import QUOTAS, usage_of
from bayplan.apiserver.store.item import DELETED, Item, Write
from bayplan.apiserver.validation.pod_resources import amounts_of, quota_of
from bayplan.base.durations import SECOND_NS
from bayplan.base.plain_data import part
from bayplan.objects.resource_quotas import Usage, recount

RESYNC_NS = 5 * 60 * SECOND_NS
_OVER = ("Failed", "Succeeded")
_COUNT = "count/"
_TABLES = ("pods", "services", "persistentvolumeclaims", "configmaps", "secrets", "replicationcontrollers", QUOTAS)


class QuotaController(DocumentController):
    """Reconciles quotas; keys are ``namespace/name``."""

    def begin(self, now_ns: int) -> None:
        """Queue all quotas."""
        for item in self.documents.table(QUOTAS).items():
            self.enqueue(f"{item.namespace}/{item.name}", now_ns)

    def follow(self, write: Write, now_ns: int) -> None:
        """Queue a changed quota, and all quotas of a namespace in which an object was deleted or a pod ended."""
        if not self.documents.table(QUOTAS):
            return
        item = write.new
        if write.table == QUOTAS:
            if write.type != DELETED:
                self.enqueue(f"{item.namespace}/{item.name}", now_ns)
        elif item.namespace and (write.type == DELETED or _has_ended(write)):
            for quota in self.documents.between(QUOTAS, item.namespace):
                self.enqueue(f"{quota.namespace}/{quota.name}", now_ns)

    def reconcile(self, key: str, now_ns: int) -> int | None:
        """Recount a quota, update its status, and return the time of the next resync.

        Raises:
            WriteRejected: the API rejects the write.
        """
        namespace, _, name = key.partition("/")
        item = self.documents.get(QUOTAS, (namespace, name))
        if item is None:
            return None
        document = decode_item(item)
        hard = part(part(document, "spec"), "hard")
        quota = replace(quota_of(document), hard=amounts_of(hard))
        used = recount(quota, self._usages(namespace, quota.hard))
        status = {"hard": hard, "used": {name: str(amount) for name, amount in used.items()}}
        if part(document, "status") != status:
            self.object_writer.change(QUOTAS, (namespace, name), {"status": status}, "status")
        return now_ns + RESYNC_NS

    def _usages(self, namespace: str, hard: object) -> list[Usage]:
        """Return the usage of each object in a namespace, for the kinds that quotas can count."""
        assert isinstance(hard, dict)
        tables = dict.fromkeys(_TABLES)
        for name in hard:
            resource, _, group = name.removeprefix(_COUNT).partition(".")
            if name.startswith(_COUNT):
                tables[f"{group}/{resource}" if group else resource] = None
        found = []
        known = set(self.documents.table_names())
        for table in tables:
            if table in known:
                resource_of = self.object_writer.resource(table)
                items = self.documents.between(table, namespace)
                found += [usage_of(resource_of, decode_item(item)) for item in items]
        return found


def _has_ended(write: Write) -> bool:
    """Return whether a write sets a pod's phase to Succeeded or Failed."""
    old: Item | None = write.old
    if write.table != "pods" or old is None:
        return False
    return write.new.fields.get("status.phase") in _OVER and old.fields.get("status.phase") not in _OVER
