"""The attributes of a request that admission hooks use: operation, resource, objects, options, user."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from bayplan.apiserver.admission.outgoing import Outgoing
from bayplan.apiserver.kinds.conversion import served_form, stored_form
from bayplan.apiserver.model.errors import ApiError, forbidden
from bayplan.apiserver.model.resources import Resource, ResourceRegistry
from bayplan.apiserver.model.users import User
from bayplan.apiserver.store.store import Store
from bayplan.base.plain_data import Document, part

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"


class GroupVersionKind(NamedTuple):
    """A kind in an API version."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The apiVersion: ``apps/v1``, or ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class Match(NamedTuple):
    """The resource and kind under which a hook receives a request.

    With match policy `Equivalent`, they can differ from the resource and kind of the request.
    """

    resource: Resource
    kind: GroupVersionKind


class ObjectLister(Protocol):
    """Reads stored objects for admission."""

    @property
    def registry(self) -> ResourceRegistry:
        """The served resources."""

    def find(self, table: str, namespace: str, name: str) -> Document | None:
        """Return a decoded object in the stored version, or None if it does not exist."""

    def all(self, table: str) -> list[Document]:
        """Return the decoded objects of a table, sorted by key; callers must not change them."""


class Server(ObjectLister, Protocol):
    """The parts of the server that admission and conversion need: `ObjectLister`, the store, and webhook calls."""

    @property
    def store(self) -> Store:
        """The store. Hooks are compiled again when the version of one of their tables changes."""

    @property
    def outgoing(self) -> Outgoing:
        """The allowed webhook calls, and their responses."""


@dataclass(slots=True, eq=False)
class Attributes:
    """One request in the form that admission hooks use.

    Attributes:
        lister: the stored objects.
        operation: ``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``.
        resource: the resource in the path.
        subresource: the subresource, or empty.
        namespace: the namespace of the object; for a Namespace, its own name.
        name: the name of the object; empty if it is not generated yet.
        user: the user.
        dry_run: whether nothing will be stored.
        options: the options of the operation, such as a CreateOptions object.
        object: the new object, in the API version of the request; None for a deletion.
        old: the current object; None for a create.
        kind: the kind of the objects; for some subresources not the kind of the resource.
        read: decodes an object that a hook has changed, and applies defaults to it.
        warnings: the warnings for the client.
    """

    lister: ObjectLister
    operation: str
    resource: Resource
    subresource: str
    namespace: str
    name: str
    user: User
    dry_run: bool
    options: Document
    object: Document | None
    old: Document | None
    kind: GroupVersionKind
    read: Callable[[Document], Document]
    warnings: list[str] = field(default_factory=list)

    def versions(self, match: Match) -> tuple[Document | None, Document | None]:
        """Return the new and the old object in the API version that a hook expects; None for an object that does not exist."""
        return self._version(self.object, match), self._version(self.old, match)

    def _version(self, document: Document | None, match: Match) -> Document | None:
        if document is None:
            return None
        if match.resource is not self.resource and not self.is_special:
            document = served_form(match.resource, stored_form(self.resource, document))
        envelope = {"apiVersion": match.kind.api_version, "kind": match.kind.kind}
        return {**envelope, **{name: value for name, value in document.items() if name not in envelope}}

    def replace_object(self, match: Match, document: Document) -> None:
        """Replace the new object with a hook's result, converted to the request's API version."""
        new = self.read(document) if match.resource is self.resource or self.is_special else None
        if new is None:
            new = served_form(self.resource, stored_form(match.resource, document))
            new = self.read({**new, "apiVersion": self.kind.api_version, "kind": self.kind.kind})
        self.object = new

    @property
    def is_special(self) -> bool:
        """Whether the objects have a kind other than the resource's, such as Scale, Binding or Eviction."""
        return self.kind.kind != self.resource.kind

    def forbidden(self, why: str) -> ApiError:
        """Return the error 403 with which an admission plugin denies the request."""
        metadata = part(self.object or {}, "metadata")
        name = self.name or str(metadata.get("name") or metadata.get("generateName") or "Unknown")
        return forbidden(self.resource.name, self.resource.group, name, why)


def kind_of(resource: Resource, subresource: str) -> GroupVersionKind:
    """Return the kind of the objects of a resource, or of one of its subresources."""
    facts = resource.subresources.get(subresource)
    if facts is None:
        return GroupVersionKind(resource.group, resource.version, resource.kind)
    return GroupVersionKind(
        facts.group or ("" if facts.version else resource.group), facts.version or resource.version, facts.kind
    )
