"""The common parts of Kubernetes objects: metadata, owners, label selectors; the struct options of this layer.

Structs store timestamps as RFC 3339 text; `parse_time_ns` converts them to integer nanoseconds where their order
matters.
"""

from collections.abc import Callable
from operator import is_
from typing import Annotated, TypeVar

import msgspec

from bayplan.objects.quantity import QUANTITY_PATTERN

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
IntOrString = Int32 | str
QuantityText = Annotated[str, msgspec.Meta(pattern=QUANTITY_PATTERN)] | int | float
ResourceList = dict[str, QuantityText]


class ApiStruct(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True, rename="camel"):
    """Base of every typed part of the Kubernetes API: immutable, keyword-only, camelCase in documents.

    Unknown fields of a document are ignored here; the loader reports them. Every field has a default, which is what an
    absent or null field means in Kubernetes (see `bayplan.objects.kinds`).
    """


Struct = TypeVar("Struct", bound=ApiStruct)
Element = TypeVar("Element")


def changed(item: Struct, **fields: object) -> Struct:
    """Return a copy of a struct with these fields changed, or the same struct if all values are equal."""
    for name, value in fields.items():
        before = getattr(item, name)
        if value is not before and value != before:
            return msgspec.structs.replace(item, **fields)
    return item


def mapped(function: Callable[[Element], Element], items: tuple[Element, ...]) -> tuple[Element, ...]:
    """Apply a function to every element; return the same tuple if no element changes."""
    if not items:
        return items
    results = tuple([function(item) for item in items])
    return items if all(map(is_, results, items)) else results


class OwnerReference(ApiStruct, frozen=True, kw_only=True):
    """A reference to the owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(ApiStruct, frozen=True, kw_only=True):
    """Standard metadata of an object. Timestamps are RFC 3339 text, or None."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    def controller(self) -> OwnerReference | None:
        """Return the owner that controls the object (the first with `controller: true`), or None."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None


class LabelSelectorRequirement(ApiStruct, frozen=True, kw_only=True):
    """One expression of a label selector. Operator: In, NotIn, Exists, DoesNotExist."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(ApiStruct, frozen=True, kw_only=True):
    """A label query: all of `match_labels` and `match_expressions` must hold.

    An empty selector matches everything; None in place of a selector matches nothing.
    """

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class Condition(ApiStruct, frozen=True, kw_only=True):
    """One condition in the status of an object."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0
    last_transition_time: str | None = None


class ObjectReference(ApiStruct, frozen=True, kw_only=True):
    """A reference to another object."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class KubernetesObject(ApiStruct, frozen=True, kw_only=True):
    """Base of every object with its own kind (see the table in `bayplan.objects.kinds`)."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """Return `namespace/name`, or the name alone if the object has no namespace."""
        metadata = self.metadata
        return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name

    def is_version_of(self, other: "KubernetesObject") -> bool:
        """Return whether this is the other object itself, or has the same resource version."""
        version = self.metadata.resource_version
        return self is other or (version != "" and version == other.metadata.resource_version)
