"""Strategies: the steps of a write that differ between kinds. `Strategy` has the default for each step.

The steps of a create are: decode, set defaults, compute field ownership, `admit`, `allocate`, `prepare_create`,
`validate`, `warnings`. An update has `prepare_update` and `validate_update` instead of the steps for creates, and no
`admit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

import msgspec

from bayplan.apiserver.fields.compare import has_empties
from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.object_warnings import object_warnings
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.model.requests import APPROVAL
from bayplan.apiserver.model.resources import Resource
from bayplan.apiserver.model.users import User
from bayplan.apiserver.schema.emptied import Emptied
from bayplan.base.plain_data import Document, part, texts


class KindRules(Protocol):
    """The validation rules of a kind, which `bayplan.apiserver.validation` implements."""

    @property
    def create(self) -> Callable[[Document, str, list[Cause]], None]:
        """The function that appends the errors of a new object, given the object and its path."""

    @property
    def update(self) -> Callable[[Document, Document, list[Cause]], None]:
        """The function that appends the errors of an update, given the new and the old object."""

    @property
    def status(self) -> Callable[[Document, Document, list[Cause]], None]:
        """The function that appends the errors of a status update, given the new and the old object."""

    @property
    def metadata(self) -> tuple[str, ...]:
        """The additional metadata checks of an update: ``object`` as for a create, ``change`` as for every update."""

    @property
    def status_metadata(self) -> tuple[str, ...]:
        """The additional metadata checks of a status update."""


class Cluster(Protocol):
    """The cluster state that strategies can read, and the allocators."""

    @property
    def admits_service_accounts(self) -> bool:
        """Whether the plugin ServiceAccount is enabled: pods run under service accounts and mount their tokens."""

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded object in the stored version, or None if it does not exist."""

    def all(self, table: str) -> list[Document]:
        """Return the decoded objects of a table; callers must not change them."""

    def labelled(self, table: str, namespace: str, key: str, value: str) -> list[Document]:
        """Return the decoded objects of a namespace with this label value. Other objects are not decoded."""

    def now(self) -> str:
        """Return the current time as an RFC 3339 timestamp in whole seconds."""

    def allocate_address(self) -> str:
        """Return an unused cluster address."""

    def addresses_in_use(self) -> set[str]:
        """Return the `clusterIP` of all services."""

    def allocate_node_port(self, taken: Iterable[int]) -> int:
        """Return a node port that no service uses and that is not in ``taken``."""

    def node_ports_in_use(self) -> set[int]:
        """Return the node ports and health check node ports of all services."""

    def new_uid(self) -> str:
        """Return a new random uid."""

    def generate_name(self, prefix: str) -> str:
        """Return the prefix followed by random characters."""


class Context(msgspec.Struct, frozen=True):
    """The context of one write.

    Attributes:
        resource: the resource of the object.
        cluster: the cluster state.
        rules: the validation rules of the kind.
        namespace: the namespace of the request.
        subresource: the subresource, or empty.
        dry_run: whether nothing will be stored.
        imported: whether the object comes from a file or another cluster, whose address ranges may differ.
        user: the user of the request; None for components of the cluster.
    """

    resource: Resource
    cluster: Cluster
    rules: KindRules
    namespace: str = ""
    subresource: str = ""
    dry_run: bool = False
    imported: bool = False
    user: User | None = None

    @property
    def is_status(self) -> bool:
        """Whether the write changes the status, or the approval, which is part of the status."""
        return self.subresource in ("status", APPROVAL)


class Strategy:
    """The default behavior of a kind in writes.

    Attributes:
        graceful: whether a deletion waits until a kubelet has stopped the pod.
        returns_deleted: whether the response to a deletion is the object instead of a Status.
        orphans_by_default: whether a deletion without propagation policy keeps the dependents.
        is_garbage_collected: whether propagation policies of deletions have an effect.
        create_on_update: whether an update of a missing object, or of its status, creates it.
        created_by_applied_status: whether an applied configuration of a missing object's status creates it.
        unconditional_update: whether an update may omit the resource version.
        counts_generations: whether ``metadata.generation`` is maintained.
        generation_fields: the top-level fields whose changes increment the generation.
        empties_count: whether an empty list or map that a client sends in one of these fields increments the generation.
        name_check: the format of names, see `bayplan.apiserver.model.object_meta.check_name`.
        checks_own_metadata: whether the kind checks the metadata of new objects itself; then they are checked again only if
            it reports no errors.
        keeps_status_on_create: whether a create may set the status.
        delete_warning: the warning for a deletion without propagation policy, or empty.
        keeps_metadata_of_status: whether the status endpoint ignores labels, annotations, finalizers and owner
            references.
        status_reset: the fields that the status endpoint ignores, in addition to the spec.
    """

    graceful = False
    returns_deleted = False
    orphans_by_default = False
    is_garbage_collected = True
    create_on_update = False
    created_by_applied_status = False
    unconditional_update = True
    counts_generations = False
    generation_fields: tuple[str, ...] = ("spec",)
    empties_count = False
    name_check = "subdomain"
    checks_own_metadata = False
    keeps_status_on_create = False
    delete_warning = ""
    keeps_metadata_of_status = False
    status_reset: ClassVar[Node] = {}

    def admit(self, context: Context, document: Document) -> None:
        """Change a new object as built-in admission plugins do, or raise `ApiError` to deny the write."""

    def admit_imported(self, context: Context, document: Document) -> None:
        """Admit a new object that is imported from another cluster with its status."""
        self.admit(context, document)

    def allocate(self, context: Context, document: Document, before: Document | None) -> None:
        """Allocate limited resources, such as addresses, for an object in place, before it is prepared and validated.

        Args:
            context: the context of the write.
            document: the admitted object.
            before: the current object, None for a create.

        Raises:
            ApiError: a requested resource is not available.
        """

    def admit_valid(self, context: Context, new: Document, old: Document | None) -> None:
        """Check or complete an object that validation accepts; `old` is None for a create.

        Raises:
            ApiError: admission refuses the object.
        """

    def prepare_create(self, context: Context, document: Document) -> None:
        """Reset the fields of a new object that clients must not set."""
        if context.resource.has_status and not self.keeps_status_on_create:
            reset_status(context.resource, document)
        if self.counts_generations:
            part(document, "metadata")["generation"] = 1

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that clients must not change through the main endpoint."""
        if context.resource.has_status:
            copy_part(new, old, "status")
        if self.counts_generations and any(self._is_changed(new, old, name) for name in self.generation_fields):
            raise_generation(new, old)

    def _is_changed(self, new: Document, old: Document, name: str) -> bool:
        if new.get(name) != old.get(name):
            return True
        return self.empties_count and (has_empties(new.get(name)) or (isinstance(new, Emptied) and name in new.empties))

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that clients must not change through the status endpoint."""
        for name in ("spec", *(each for each in old if each not in _ENVELOPE)):
            copy_part(new, old, name)
        reset = [name.removeprefix("f:") for name in self.status_reset.get("f:metadata", {})]
        for field in (*reset, *(_STATUS_METADATA if self.keeps_metadata_of_status else ())):
            if field != "deletionTimestamp":
                copy_part(part(new, "metadata"), part(old, "metadata"), field)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return the errors of a new object, except those of its metadata."""
        causes: list[Cause] = []
        context.rules.create(document, "", causes)
        return causes

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of an update, except those of its metadata."""
        causes: list[Cause] = []
        context.rules.update(new, old, causes)
        return causes

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of a status update, except those of its metadata."""
        causes: list[Cause] = []
        context.rules.status(new, old, causes)
        return causes

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Return the additional metadata checks of an update, see `KindRules.metadata`."""
        return context.rules.status_metadata if context.is_status else context.rules.metadata

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the warnings for the client about a new object, or about an update if `before` is not None."""
        return object_warnings(context.resource.table, document, before)

    def preparation_warnings(self, document: Document) -> list[str]:
        """Return the warnings about a new object before its preparation. A rejected object gets these warnings, too."""
        return []

    def status_warnings(self, document: Document) -> list[str]:
        """Return the warnings about an object whose status changes."""
        return []

    def grace_seconds(self, document: Document, wanted: int | None) -> int | None:
        """Return the grace period of a deletion in seconds, or None if the kind has no graceful deletion.

        `wanted` is the requested grace period, or None.
        """
        return None

    def reset_fields(self, resource: Resource, subresource: str) -> Node:
        """Return the fields that an endpoint ignores, so that no client can own them through it."""
        if subresource == "status":
            metadata: Node = {"f:metadata": {}} if self.keeps_metadata_of_status else {}
            return {"f:spec": {}, **self.status_reset, **metadata}
        return {"f:status": {}} if resource.has_status else {}


_STATUS_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "generation")
_ENVELOPE = ("apiVersion", "kind", "metadata", "status")


def add_finalizer(document: Document, finalizer: str) -> None:
    """Add a finalizer to an object unless it is already present."""
    metadata = part(document, "metadata")
    finalizers = texts(metadata, "finalizers")
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def reset_status(resource: Resource, document: Document) -> None:
    """Set the status of a new object to the zero value of its type."""
    document.pop("status", None)
    if resource.shape is not None and "status" in resource.shape.shown:
        document["status"] = resource.shape.shown["status"]()


def copy_part(new: Document, old: Document, name: str) -> None:
    """Set a field of `new` to its value in `old`, or remove it if `old` lacks it."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def raise_generation(new: Document, old: Document) -> None:
    """Set the generation of `new` to the generation of `old` plus 1."""
    generation = part(old, "metadata").get("generation", 0)
    part(new, "metadata")["generation"] = (generation if isinstance(generation, int) else 0) + 1
