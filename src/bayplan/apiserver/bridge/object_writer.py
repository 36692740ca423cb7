"""Writes of controllers and the kubelet: the same defaults, admission, validation and field ownership as for clients.

Reading and writing an object is not interrupted, so there are no conflicts. A rejected write raises `WriteRejected`,
which ends the reconcile of a controller, as errors do upstream.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

from bayplan.apiserver.admission.outgoing import CallsNeededError, awaits_answers
from bayplan.apiserver.codec.decode_error import DecodeError
from bayplan.apiserver.fields import managed
from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.model.errors import ApiError
from bayplan.apiserver.model.requests import DeleteOptions, RequestInfo, WriteOptions
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.rest import deleting, updates, writing
from bayplan.apiserver.rest.backend import Backend
from bayplan.apiserver.rest.body_types import target_of
from bayplan.apiserver.rest.decoding import decode_value, read_value
from bayplan.apiserver.store.item import Item
from bayplan.apiserver.store.table import Key
from bayplan.base.errors import InvariantError
from bayplan.base.plain_data import Document, part, texts
from bayplan.controllers.writer import AwaitsAnswers, WriteRejected

CONTROLLERS = "kube-controller-manager"
KUBELET = "kubelet"

_NOT_FOUND = 404


class ObjectWriter:
    """Writes untyped objects of any kind through the API.

    Args:
        backend: the backend of the API.

    Attributes:
        manager: the field manager of the next writes.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._resources: dict[str, Resource] = {}
        self._alike: dict[tuple[str, Hashable], Node] = {}
        self.manager = CONTROLLERS

    def now(self) -> str:
        """Return the current time as a timestamp."""
        return self._backend.now()

    def resource(self, table: str) -> Resource:
        """Return a served resource whose objects are in this table.

        Raises:
            InvariantError: no such resource is served.
        """
        found = self._resources.get(table)
        registry = self._backend.registry
        if found is None or registry.find(found.group, found.version, found.name) is not found:
            # Prefer a version that needs no webhook. A changed definition replaces the resources, so the cached resource may
            # be outdated.
            served = [each for each in registry.all() if each.table == table]
            found = next((each for each in served if each.converter is None), served[0] if served else None)
            if found is None:
                raise InvariantError(f"no served resource is stored in {table}")
            self._resources[table] = found
        return found

    def document(self, table: str, item: Item) -> Document:
        """Return the object of an item, in the API version of `resource`."""
        return self._backend.document(self.resource(table), item)

    def create(self, table: str, namespace: str, document: Document) -> None:
        """Create an object.

        Raises:
            WriteRejected: the API rejects the object.
        """
        resource = self.resource(table)
        try:
            decoded = decode_value(target_of(resource), document, [], "Ignore")
            info = RequestInfo("create", resource, namespace)
            writing.create(self._backend, info, decoded.document, WriteOptions(manager=self.manager))
        except CallsNeededError as needed:
            raise AwaitsAnswers(f"{resource.kind} in {namespace}", awaits_answers(needed).message) from None
        except ApiError as problem:
            name = part(document, "metadata").get("name")
            raise WriteRejected(f"{resource.kind} {namespace}/{name}", problem.message) from None

    def create_alike(self, table: str, namespace: str, document: Document, likeness: Hashable) -> None:
        """Create an object that is already decoded, and has the same set of fields as earlier objects.

        Args:
            table, namespace: the table and the namespace.
            document: the complete object, with all defaults set.
            likeness: equal for objects with the same set of fields, whose field ownership is computed only once.

        Raises:
            WriteRejected: the API rejects the object.
        """
        resource = self.resource(table)
        info, options = RequestInfo("create", resource, namespace), WriteOptions(manager=self.manager)
        try:
            writing.check_namespace(self._backend, info, str(part(document, "metadata").get("name") or ""))
            owner = writing.ownership(self._backend, info, options)
            fields = self._alike.get((table, likeness))
            if fields is None:
                zero = writing.zero_document(resource)
                managers = managed.after_create(owner, zero, document, {})
                fields = self._alike[(table, likeness)] = next(iter(managers.values())).fields
            who = managed.Manager(owner.manager, managed.UPDATE, owner.api_version)
            managers = {who: managed.Owned(fields, owner.api_version, owner.time)}
            writing.store_new(self._backend, info, document, managers, options)
        except CallsNeededError as needed:
            raise AwaitsAnswers(f"{resource.kind} in {namespace}", awaits_answers(needed).message) from None
        except ApiError as problem:
            raise WriteRejected(f"{resource.kind} in {namespace}", problem.message) from None

    def change(
        self,
        table: str,
        key: Key,
        changes: Mapping[str, object],
        subresource: str = "",
        *,
        old: Document | None = None,
    ) -> None:
        """Update an object: replace some of its top-level fields (``metadata``, ``spec``, ``status``, ...).

        Args:
            table, key: the table and key of the object.
            changes: the new values of the fields.
            subresource: the subresource, or empty.
            old: the current object, if the caller has already read it.

        Raises:
            WriteRejected: the API rejects the change, or the object does not exist.
        """
        resource = self.resource(table)
        info = RequestInfo("update", resource, *key, subresource)
        options = WriteOptions(manager=self.manager)
        try:
            if old is None:
                old = self.document(table, self._item(table, key))
            new = self._read(resource, old, changes, subresource)
            managers = updates.managers_after(self._backend, info, old, new, options)
            writing.change(self._backend, info, old, new, managers, options)
        except CallsNeededError as needed:
            raise AwaitsAnswers(
                f"{resource.kind} {'/'.join(filter(None, key))}", awaits_answers(needed).message
            ) from None
        except (ApiError, DecodeError) as problem:
            refusal = problem if isinstance(problem, ApiError) else ApiError(400, str(problem))
            raise WriteRejected(f"{resource.kind} {'/'.join(filter(None, key))}", refusal.message) from None

    def _read(self, resource: Resource, old: Document, changes: Mapping[str, object], subresource: str) -> Document:
        """Return the changed object as the API would decode it from a client's request."""
        if subresource == "status" and resource.shape is not None:
            # Only the status changes, so decode only the status.
            inner = resource.shape.fields["status"].inner
            if inner is not None and tuple(changes) == ("status",):
                status = changes["status"]
                return {**old, "metadata": dict(part(old, "metadata")), "status": inner.read(status)}
        if tuple(changes) == ("metadata",):
            return {**old, **changes}
        return read_value(target_of(resource), {**old, **changes}, [], "Ignore")[0]

    def _item(self, table: str, key: Key) -> Item:
        item = self._backend.store.get(table, key)
        if item is None:
            raise ApiError(_NOT_FOUND, f'{table} "{key[1]}" not found')
        return item

    def delete(
        self,
        table: str,
        key: Key,
        *,
        grace_seconds: int | None = None,
        propagation: str = "Background",
        uid: str | None = None,
    ) -> None:
        """Delete an object, unless it does not exist or has a uid other than `uid`.

        Raises:
            WriteRejected: the API rejects the deletion.
        """
        resource = self.resource(table)
        item = self._backend.store.get(table, key)
        if item is None or (uid is not None and item.uid != uid):
            return
        info = RequestInfo("delete", resource, *key)
        try:
            deleting.delete(self._backend, info, DeleteOptions(grace_seconds, uid=uid, propagation=propagation))
        except CallsNeededError as needed:
            raise AwaitsAnswers(
                f"{resource.kind} {'/'.join(filter(None, key))}", awaits_answers(needed).message
            ) from None
        except ApiError as problem:
            raise WriteRejected(f"{resource.kind} {'/'.join(filter(None, key))}", problem.message) from None

    def drop_finalizer(self, table: str, key: Key, finalizer: str) -> None:
        """Remove a finalizer from an object. This deletes a terminating object without other finalizers.

        Raises:
            WriteRejected: the API rejects the write.
        """
        item = self._backend.store.get(table, key)
        if item is None:
            return
        metadata = dict(part(self.document(table, item), "metadata"))
        left = [name for name in texts(metadata, "finalizers") if name != finalizer]
        if left:
            metadata["finalizers"] = left
        else:
            metadata.pop("finalizers", None)
        self.change(table, key, {"metadata": metadata})
