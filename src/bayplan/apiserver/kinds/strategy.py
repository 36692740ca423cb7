"""Write strategies of kinds. The base class has the steps of every kind; kinds override single steps.

The order of a create is: decode, default, compute field ownership, `admit`, `allocate`, `prepare_create`, `validate`,
`warnings`; an update has `prepare_update` and `validate_update` instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Protocol

import msgspec

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.kinds.object_warnings import object_warnings
from bayplan.apiserver.model.errors import Cause
from bayplan.apiserver.model.resources import Resource
from bayplan.base.plain_data import Document, part, texts


class KindRules(Protocol):
    """The validation rules of a kind; `bayplan.apiserver.validation` implements them."""

    @property
    def create(self) -> Callable[[Document, str, list[Cause]], None]:
        """Check a new object."""

    @property
    def update(self) -> Callable[[Document, Document, list[Cause]], None]:
        """Check a change, given the new and the old object."""

    @property
    def status(self) -> Callable[[Document, Document, list[Cause]], None]:
        """Check a change through the status endpoint."""

    @property
    def metadata(self) -> tuple[str, ...]:
        """Second metadata check of an update: ``object`` as on create, ``change`` as on every update."""


class Cluster(Protocol):
    """The part of the store that strategies may read."""

    @property
    def admits_service_accounts(self) -> bool:
        """Whether pods run under service accounts and mount their tokens (the plugin ServiceAccount)."""

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded document, or None."""

    def all(self, table: str) -> list[Document]:
        """Return the decoded documents of a table."""

    def now(self) -> str:
        """Return the time as a timestamp of whole seconds."""

    def allocate_address(self) -> str:
        """Return a free cluster address."""

    def addresses_in_use(self) -> set[str]:
        """Return the cluster addresses of all services."""

    def allocate_node_port(self, taken: Iterable[int]) -> int:
        """Return a node port that no service has and that is not in ``taken``."""

    def node_ports_in_use(self) -> set[int]:
        """Return the node ports of all services."""

    def new_uid(self) -> str:
        """Return a fresh uid."""

    def generate_name(self, prefix: str) -> str:
        """Return a name that begins with a prefix."""


class Context(msgspec.Struct, frozen=True):
    """The context of one write.

    Attributes:
        resource: the resource that is written.
        cluster: the cluster state that strategies read.
        rules: the validation rules of the kind.
        namespace: the namespace of the request.
        subresource: the subresource, or empty.
        dry_run: whether nothing will be stored.
        imported: whether the object comes from a file or another cluster, with addresses of possibly different ranges.
        user: the user of the request.
    """

    resource: Resource
    cluster: Cluster
    rules: KindRules
    namespace: str = ""
    subresource: str = ""
    dry_run: bool = False
    imported: bool = False
    user: str = ""


class Strategy:
    """A kind without special rules.

    Attributes:
        graceful: whether deletion waits until a kubelet has stopped the pod.
        returns_deleted: whether a deletion returns the object instead of a Status.
        orphans_by_default: whether dependents stay unless the deletion sets a propagation policy.
        delete_warning: the warning for a deletion without a propagation policy.
        keeps_metadata_of_status: whether the status endpoint leaves labels, annotations, finalizers and owners unchanged.
        create_on_update: whether an update of a missing object creates it.
        unconditional_update: whether an update may omit the resource version.
        counts_generations: whether ``metadata.generation`` is incremented when the spec changes.
        generation_fields: the fields whose changes increment the generation.
        name_check: the format of names: ``subdomain``, ``label`` or ``path``.
        status_reset: the fields that the status endpoint never changes, in addition to the spec.
    """

    graceful = False
    returns_deleted = False
    orphans_by_default = False
    create_on_update = False
    unconditional_update = True
    counts_generations = False
    generation_fields: tuple[str, ...] = ("spec",)
    name_check = "subdomain"
    keeps_status_on_create = False
    delete_warning = ""
    keeps_metadata_of_status = False
    status_reset: ClassVar[Node] = {}

    def admit(self, context: Context, document: Document) -> None:
        """Change a new object as admission plugins do; raise `ApiError` to deny it."""

    def admit_whole(self, context: Context, document: Document) -> None:
        """Admit an object imported from another cluster with its status."""
        self.admit(context, document)

    def allocate(self, context: Context, document: Document, before: Document | None) -> None:
        """Allocate limited resources for an object, such as addresses; raise `ApiError` if one is not available.

        Called before the object is prepared and validated.

        Args:
            context: the context of the write.
            document: the admitted object; changed in place.
            before: the stored object, None for a create.
        """

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set the fields that users may not set on a new object."""
        if context.resource.has_status and not self.keeps_status_on_create:
            reset_status(context.resource, document)
        if self.counts_generations:
            part(document, "metadata")["generation"] = 1

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that users may not change through the main endpoint."""
        if context.resource.has_status:
            copy_part(new, old, "status")
        if self.counts_generations and any(new.get(name) != old.get(name) for name in self.generation_fields):
            raise_generation(new, old)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Restore the fields that users may not change through the status endpoint."""
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
        """Return the errors of an update."""
        causes: list[Cause] = []
        context.rules.update(new, old, causes)
        return causes

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return the errors of a status update."""
        causes: list[Cause] = []
        context.rules.status(new, old, causes)
        return causes

    def metadata_steps(self, context: Context) -> tuple[str, ...]:
        """Return how an update checks metadata once more, see `KindRules.metadata`."""
        return context.rules.metadata

    def warnings(self, context: Context, document: Document, before: Document | None) -> list[str]:
        """Return the warnings about an object; about a new object if `before` is None."""
        return object_warnings(context.resource.table, document, before)

    def grace_seconds(self, document: Document, wanted: int | None) -> int | None:
        """Return the grace period of a deletion, or None if the kind has none."""
        return None

    def reset_fields(self, resource: Resource, subresource: str) -> Node:
        """Return the fields that no client can own through an endpoint."""
        if subresource == "status":
            metadata: Node = {"f:metadata": {}} if self.keeps_metadata_of_status else {}
            return {"f:spec": {}, **self.status_reset, **metadata}
        return {"f:status": {}} if resource.has_status else {}


_STATUS_METADATA = ("labels", "annotations", "finalizers", "ownerReferences", "generation")
_ENVELOPE = ("apiVersion", "kind", "metadata", "status")


def add_finalizer(document: Document, finalizer: str) -> None:
    """Add a finalizer unless the object has it."""
    metadata = part(document, "metadata")
    finalizers = texts(metadata, "finalizers")
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def reset_status(resource: Resource, document: Document) -> None:
    """Set the status of a new object."""
    document.pop("status", None)
    if resource.shape is not None and "status" in resource.shape.shown:
        document["status"] = resource.shape.shown["status"]()


def copy_part(new: Document, old: Document, name: str) -> None:
    """Restore a part of a document."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def raise_generation(new: Document, old: Document) -> None:
    """Increment the generation if the spec changed."""
    generation = part(old, "metadata").get("generation", 0)
    part(new, "metadata")["generation"] = (generation if isinstance(generation, int) else 0) + 1
