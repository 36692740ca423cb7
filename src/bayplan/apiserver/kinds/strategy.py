"""What a kind does when its objects are written. The base does what every kind does; kinds override single steps.

The order of a create is: decode, default, note the owners of fields, `admit`, `prepare_create`, `validate`,
then `warnings`; of an update likewise with `prepare_update` and `validate_update`.
"""

from __future__ import annotations

from typing import ClassVar, Protocol, cast

import msgspec

from bayplan.apiserver.fields.field_set import Node
from bayplan.apiserver.rest.errors import Cause
from bayplan.apiserver.rest.resources import Resource
from bayplan.base.plain_data import Document


class Cluster(Protocol):
    """What strategies may read of the store."""

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded document, or None."""

    def all(self, table: str) -> list[Document]:
        """Return the decoded documents of a table."""

    def now(self) -> str:
        """Return the time as a timestamp of whole seconds."""

    def allocate_address(self) -> str:
        """Return a cluster address that no service has."""

    def new_uid(self) -> str:
        """Return a fresh uid."""


class Context(msgspec.Struct, frozen=True):
    """Of one write.

    Attributes:
        resource: that is written.
        cluster: for what strategies look up.
        namespace: of the request.
        subresource: or empty.
    """

    resource: Resource
    cluster: Cluster
    namespace: str = ""
    subresource: str = ""


def part(document: Document, *names: str) -> Document:
    """Return an object inside a document; an empty one where there is none."""
    for name in names:
        found = document.get(name)
        if not isinstance(found, dict):
            return {}
        document = found
    return document


def parts(document: Document, name: str) -> list[Document]:
    """Return a list of objects inside a document; an empty one where there is none."""
    found = document.get(name)
    return cast("list[Document]", found) if isinstance(found, list) else []


def texts(document: Document, name: str) -> list[str]:
    """Return a list of texts inside a document; an empty one where there is none."""
    found = document.get(name)
    return cast("list[str]", found) if isinstance(found, list) else []


class Strategy:
    """A kind without rules of its own.

    Attributes:
        graceful: deletion waits for somebody who stops what runs.
        returns_deleted: a deletion answers with the object and not with a Status.
        create_on_update: an update of what is not there creates it.
        unconditional_update: an update may leave the resource version out.
        counts_generations: ``metadata.generation`` moves with the spec.
        generation_fields: what moves it.
        name_check: what names must be: ``subdomain``, ``label`` or ``path``.
        status_reset: what the status endpoint never changes, besides the spec.
    """

    graceful = False
    returns_deleted = False
    create_on_update = False
    unconditional_update = True
    counts_generations = False
    generation_fields: tuple[str, ...] = ("spec",)
    name_check = "subdomain"
    keeps_status_on_create = False
    status_reset: ClassVar[Node] = {}

    def admit(self, context: Context, document: Document) -> None:
        """Change a new object as admission plugins do; refuse it with `ApiError`."""

    def admit_whole(self, context: Context, document: Document) -> None:
        """Likewise for an object that comes from another cluster as it is there, with its status."""
        self.admit(context, document)

    def prepare_create(self, context: Context, document: Document) -> None:
        """Set what users may not set on a new object."""
        if context.resource.has_status and not self.keeps_status_on_create:
            reset_status(context.resource, document)
        if self.counts_generations:
            part(document, "metadata")["generation"] = 1

    def prepare_update(self, context: Context, new: Document, old: Document) -> None:
        """Undo what users may not change through the main endpoint."""
        if context.resource.has_status:
            copy_part(new, old, "status")
        if self.counts_generations and any(new.get(name) != old.get(name) for name in self.generation_fields):
            raise_generation(new, old)

    def prepare_status(self, context: Context, new: Document, old: Document) -> None:
        """Undo what users may not change through the status endpoint."""
        for name in ("spec", *(each for each in old if each not in _ENVELOPE)):
            copy_part(new, old, name)
        for name in self.status_reset.get("f:metadata", {}):
            field = name.removeprefix("f:")
            if field != "deletionTimestamp":
                copy_part(part(new, "metadata"), part(old, "metadata"), field)

    def validate(self, context: Context, document: Document) -> list[Cause]:
        """Return what is wrong with a new object."""
        return []

    def validate_update(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return what is wrong with a change."""
        return self.validate(context, new)

    def validate_status(self, context: Context, new: Document, old: Document) -> list[Cause]:
        """Return what is wrong with a change of status."""
        return []

    def warnings(self, context: Context, document: Document) -> list[str]:
        """Return what a writer should know about a new object."""
        return []

    def grace_seconds(self, document: Document, wanted: int | None) -> int | None:
        """Return how long a deletion waits; None where the kind knows no grace."""
        return None

    def reset_fields(self, resource: Resource, subresource: str) -> Node:
        """Return the fields that an endpoint never lets a writer own."""
        if subresource == "status":
            return {"f:spec": {}, **self.status_reset}
        return {"f:status": {}} if resource.has_status else {}


_ENVELOPE = ("apiVersion", "kind", "metadata", "status")


def reset_status(resource: Resource, document: Document) -> None:
    """Give an object the status of a new one."""
    document.pop("status", None)
    if resource.shape is not None and "status" in resource.shape.shown:
        document["status"] = resource.shape.shown["status"]()


def copy_part(new: Document, old: Document, name: str) -> None:
    """Make a part of a document what it was before."""
    if name in old:
        new[name] = old[name]
    else:
        new.pop(name, None)


def raise_generation(new: Document, old: Document) -> None:
    """Count a change of what an object asks for."""
    generation = part(old, "metadata").get("generation", 0)
    part(new, "metadata")["generation"] = (generation if isinstance(generation, int) else 0) + 1
